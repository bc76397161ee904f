#compdef stacklift
# Completions of stacklift for Zsh.

_stacklift() {
    local program=${~${(Q)words[1]}} paths
    local -a before candidates
    before=("${(@Q)words[2,CURRENT-1]}")
    ((CURRENT > 2)) || before=()
    candidates=("${(@f)$($program .complete zsh -- "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
    paths=$candidates[1]
    shift candidates
    (($#candidates)) && _describe -V -t values stacklift candidates
    [[ $paths == (files|directories) ]] && compset -P '--*='
    case $paths in
        files) _files ;;
        directories) _files -/ ;;
    esac
}

if [[ $funcstack[1] == _stacklift ]]; then
    _stacklift "$@"
else
    compdef _stacklift stacklift
fi
