# Completions of stacklift for fish.

function __stacklift_complete
    # fish before 4 has no -x.
    set -l words (commandline -xpc 2>/dev/null; or commandline -opc)
    set -l word (commandline -ct)
    set word (string unescape -- "$word"; or string trim --left --chars '"\'' -- "$word")
    $words[1] .complete -- $words[2..-1] "$word" 2>/dev/null
end

complete --command stacklift --no-files --keep-order --arguments '(__stacklift_complete)'
