# Completions of stacklift for Bash.

_stacklift() {
    local line=${COMP_LINE:0:COMP_POINT} words replaced kept i
    read -ra words <<<"$line"
    [[ $line == *[[:blank:]] ]] && words+=('')
    # Bash replaces only the part of the word after a character such as `=`.
    replaced=${words[-1]}
    kept=${replaced%"$2"}
    mapfile -t COMPREPLY < <("${1/#\~/"$HOME"}" .complete -- "${words[@]:1}" 2>/dev/null | cut -f 1)
    for i in "${!COMPREPLY[@]}"; do
        printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]#"$kept"}"
        [[ ${COMPREPLY[i]} == */ ]] && compopt -o nospace
    done
}

# Bash before 4.4 has no nosort.
complete -o nosort -F _stacklift stacklift 2>/dev/null || complete -F _stacklift stacklift
