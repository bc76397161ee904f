# Completions of stacklift for Nushell. Other programs keep the completer that was set before.

$env.config.completions.external.completer = do {
    let others = $env.config.completions.external.completer?
    {|spans|
        if ($spans.0 | path basename) == "stacklift" {
            try { run-external $spans.0 ".complete" "nushell" "--" ...($spans | skip 1) | from json }
        } else if $others != null {
            do $others $spans
        }
    }
}
