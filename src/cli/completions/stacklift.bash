# Completions of stacklift for Bash.

_stacklift() {
    local paths
    {
        read -r paths
        mapfile -t COMPREPLY
    } < <("${1/#\~/"$HOME"}" .complete bash -- "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    # These apply only if there is no candidate.
    case $paths in
        files) compopt -o default ;;
        directories) compopt -o dirnames ;;
    esac
}

# Bash before 4.4 has no nosort.
complete -o nosort -F _stacklift stacklift 2>/dev/null || complete -F _stacklift stacklift
