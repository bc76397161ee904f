# Completions of stacklift for fish.

function __stacklift_complete
    # fish before 4 has no -x.
    set -l words (commandline -xpc 2>/dev/null; or commandline -opc)
    set -l word (commandline -ct)
    set word (string unescape -- "$word"; or string trim --left --chars '"\'' -- "$word")
    set -l candidates ($words[1] .complete fish -- $words[2..-1] "$word" 2>/dev/null)
    set -l paths $candidates[1]
    set -e candidates[1]
    printf '%s\n' $candidates
    set -l flag (string match --regex '^--[^=]*=' -- "$word")
    set -l path (string replace --regex '^--[^=]*=' '' -- "$word")
    switch "$paths"
        case files
            printf '%s\n' "$flag"(__fish_complete_path "$path")
        case directories
            printf '%s\n' "$flag"(__fish_complete_directories "$path" '')
    end
end

complete -c stacklift -f -k -a '(__stacklift_complete)'
