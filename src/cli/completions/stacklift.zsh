#compdef stacklift
# Completions of stacklift for Zsh.

_stacklift() {
    local program=${~${(Q)words[1]}} line value about
    local -a before values directories
    before=("${(@Q)words[2,CURRENT-1]}")
    ((CURRENT > 2)) || before=()
    for line in "${(@f)$($program .complete -- "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        value=${${line%%$'\t'*}//(#m)[\\:]/\\$MATCH}
        case $value in
            '') ;;
            */) directories+=("${value%/}") ;;
            *) about=${line#*$'\t'} && values+=("$value${about:+:$about}") ;;
        esac
    done
    (($#directories)) && _describe -V -t values stacklift directories -S / -r /
    (($#values)) && _describe -V -t values stacklift values
}

if [[ $funcstack[1] == _stacklift ]]; then
    _stacklift "$@"
else
    compdef _stacklift stacklift
fi
