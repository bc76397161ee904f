# Completions of stacklift for Nushell. Other programs keep the completer that was set before.

$env.config.completions.external.completer = do {
    let others = $env.config.completions.external.completer?
    {|spans|
        if ($spans.0 | path basename) == "stacklift" {
            try {
                run-external $spans.0 ".complete" "--" ...($spans | skip 1) | lines | split column "\t" value description
                | update value {|it| if $it.value =~ '^[-\w./=]+$' { $it.value } else { $it.value | to nuon } }
            }
        } else if $others != null {
            do $others $spans
        }
    }
}
