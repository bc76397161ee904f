//! Terminal output: steps go to standard output, warnings and errors to standard error.
//!
//! Invariant: the API key and the values of `--header-file` are masked in all output (C56), and control characters in text from outside are
//! escaped. A closed pipe ends the output, not the run.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write, stderr, stdin},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, Result};
use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use crate::{
    failure::Failure,
    model::Container,
    text::{Mask, needs_escaping, printable},
    trace::{Exchange, Peer, Trace},
};

/// The exit code of an interrupted run: 128 + SIGINT, as in shells.
pub(super) const INTERRUPTED: i32 = 130;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Prints steps, warnings and errors.
pub(super) struct Console {
    quiet: bool,
    verbose: bool,
    /// Whether steps and tables go to standard error, because standard output has another use.
    to_stderr: AtomicBool,
    secrets: Mutex<Vec<Mask>>,
    spinner: Mutex<Option<ProgressBar>>,
}

impl Console {
    pub(super) fn new(quiet: bool, verbose: bool) -> Self {
        Self {
            quiet,
            verbose,
            to_stderr: AtomicBool::new(false),
            secrets: Mutex::default(),
            spinner: Mutex::new(None),
        }
    }

    /// Prints steps and tables to standard error from now on.
    pub(super) fn steps_to_stderr(&self) {
        self.to_stderr.store(true, Ordering::Relaxed);
    }

    /// Masks `key`, and its escaped forms, in all output from now on (C56).
    pub(super) fn hide(&self, key: &SecretString) {
        self.hide_all(&[key.expose_secret()]);
    }

    /// Masks further secrets, and their escaped forms, in all output from now on.
    pub(super) fn hide_all(&self, secrets: &[&str]) {
        lock(&self.secrets).push(Mask::new(secrets.iter().copied()));
    }

    /// Prints a step: a verb and its object.
    pub(super) fn step(&self, verb: &str, about: &str) {
        if !self.quiet {
            self.progress(&format!("{GOOD}{verb:>9}{GOOD:#} {}", printable(about)));
        }
    }

    /// Prints the result of a command, even with `--quiet`.
    pub(super) fn line(&self, text: &str) {
        self.out(&lines(text));
    }

    /// Prints a line of styled parts, even with `--quiet`.
    pub(super) fn parts(&self, parts: &[(Style, String)]) {
        let parts = parts
            .iter()
            .map(|(style, text)| format!("{style}{}{style:#}", printable(text)));
        self.out(&parts.collect::<String>());
    }

    /// Prints a heading.
    pub(super) fn heading(&self, text: &str) {
        if !self.quiet {
            self.out(&format!("\n{HINT}{text}{HINT:#}"));
        }
    }

    /// Prints a warning of one or more lines.
    pub(super) fn warning(&self, text: &str) {
        self.err(&format!("{WARNING}warning:{WARNING:#} {}", lines(text)));
    }

    /// Prints an error: the message with its causes, details, the state of the stack and a hint.
    pub(super) fn error(&self, error: &anyhow::Error, state: Option<&str>) {
        self.done();
        self.err(&format!(
            "{ERROR}error:{ERROR:#} {}",
            printable(&format!("{error:#}"))
        ));
        if let Some(details) = Failure::details_of(error) {
            self.err(&lines(details));
        }
        if let Some(state) = state {
            self.state(state);
        }
        if let Some(hint) = Failure::hint_of(error) {
            self.hint(hint);
        }
    }

    /// Prints the state of the stack.
    pub(super) fn state(&self, state: &str) {
        self.err(&format!("{HINT}state:{HINT:#} {}", printable(state)));
    }

    /// Asks a yes-or-no question on the terminal. Anything but `y` and `yes` is a no, and so is the end of the input.
    pub(super) fn ask(&self, question: &str) -> bool {
        self.done();
        let question = self.without_secrets(&printable(question));
        {
            let mut terminal = anstream::stderr().lock();
            let _ = write!(terminal, "{HINT}{question}{HINT:#} [y/N] ");
            let _ = terminal.flush();
        }
        let mut answer = String::new();
        let read = stdin().read_line(&mut answer);
        if !answer.ends_with('\n') {
            self.err("");
        }
        let answer = answer.trim();
        read.is_ok()
            && ["y", "yes"]
                .iter()
                .any(|yes| answer.eq_ignore_ascii_case(yes))
    }

    /// Asks for a text on the terminal: one line, without blanks around it. `None` at the end of the input.
    pub(super) fn ask_text(&self, question: &str) -> Option<String> {
        self.done();
        {
            let mut terminal = anstream::stderr().lock();
            let _ = write!(terminal, "{HINT}{}{HINT:#} ", printable(question));
            let _ = terminal.flush();
        }
        let mut answer = String::new();
        let read = stdin().read_line(&mut answer);
        if !answer.ends_with('\n') {
            self.err("");
            return None;
        }
        read.ok().map(|_| answer.trim().to_owned())
    }

    /// Asks for a secret, which the terminal does not show. `None` at the end of the input.
    pub(super) fn ask_secret(&self, question: &str) -> Result<Option<SecretString>> {
        let failed = "failed to hide what is typed on the terminal";
        let shown = tcgetattr(stdin()).context(failed)?;
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        hidden.local_modes.insert(LocalModes::ECHONL);
        let restore = move || {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &shown);
        };
        let interrupted = restore.clone();
        // Without this, an interrupt would leave a terminal that shows nothing.
        ctrlc::set_handler(move || {
            interrupted();
            std::process::exit(INTERRUPTED);
        })
        .context(failed)?;
        tcsetattr(stdin(), OptionalActions::Now, &hidden).context(failed)?;
        let answer = self.ask_text(question);
        restore();
        Ok(answer.map(SecretString::from))
    }

    /// Prints a hint.
    pub(super) fn hint(&self, hint: &str) {
        self.err(&format!("{HINT}hint:{HINT:#} {}", printable(hint)));
    }

    /// Prints a result as JSON.
    pub(super) fn json(&self, result: &impl Serialize) -> Result<()> {
        let json = serde_json::to_string_pretty(result).context("failed to write JSON")?;
        self.line(&plain(&json));
        Ok(())
    }

    /// Prints a remark about the result.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            self.err(&format!("{DIM}{}{DIM:#}", printable(text)));
        }
    }

    /// Prints containers as a table of Names, Image and Status (C54).
    pub(super) fn containers(&self, containers: &[Container]) {
        if self.quiet {
            return;
        }
        let mut rows = vec![["Names", "Image", "Status"].map(str::to_owned).to_vec()];
        for container in containers {
            let names = if container.names.is_empty() {
                container.id.clone()
            } else {
                container.names.join(",")
            };
            rows.push(vec![
                names,
                container.image.clone(),
                container.status.clone(),
            ]);
        }
        self.table(rows);
    }

    /// Prints a table whose first row is its header.
    pub(super) fn table(&self, rows: Vec<Vec<String>>) {
        self.progress(&table(rows));
    }

    /// Prints a table whose first row is its header as the result of a command, even with `--quiet`.
    pub(super) fn result_table(&self, rows: Vec<Vec<String>>) {
        self.out(&table(rows));
    }

    /// Whether only warnings and errors are printed.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    fn progress(&self, text: &str) {
        if self.to_stderr.load(Ordering::Relaxed) {
            self.err(text);
        } else {
            self.out(text);
        }
    }

    /// Shows a spinner, on a terminal only.
    pub(super) fn waiting(&self, what: &str) {
        self.done();
        if self.quiet || !stderr().is_terminal() {
            return;
        }
        let spinner = ProgressBar::new_spinner().with_message(printable(what).into_owned());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(120));
        *lock(&self.spinner) = Some(spinner);
    }

    /// Changes what the spinner says, if there is one.
    pub(super) fn still_waiting(&self, what: &str) {
        if let Some(spinner) = &*lock(&self.spinner) {
            spinner.set_message(printable(what).into_owned());
        }
    }

    /// Starts a new line on a terminal, where a question or `^C` may stand on the current one.
    pub(super) fn end_line(&self) {
        let has_spinner = lock(&self.spinner).is_some();
        self.done();
        if !has_spinner && stderr().is_terminal() {
            self.err("");
        }
    }

    /// Ends the spinner.
    pub(super) fn done(&self) {
        if let Some(spinner) = lock(&self.spinner).take() {
            spinner.finish_and_clear();
        }
    }

    /// The requests that `-v` prints.
    pub(super) fn trace(self: &std::sync::Arc<Self>) -> Trace {
        if !self.verbose {
            return Trace::off();
        }
        let console = std::sync::Arc::clone(self);
        Trace::to(move |exchange| console.exchange(exchange))
    }

    /// Prints a line that only `-v` shows.
    pub(super) fn detail(&self, text: &str) {
        if self.verbose {
            self.err(&format!("{DIM}{}{DIM:#}", printable(text)));
        }
    }

    fn exchange(&self, exchange: &Exchange) {
        let peer = match exchange.peer {
            Peer::Portainer => "portainer",
            Peer::Engine => "engine",
            Peer::Compose => "compose",
        };
        self.detail(&format!(
            "{peer}: {} {} -> {} in {:.1} ms",
            exchange.method,
            exchange.path,
            exchange.outcome,
            exchange.elapsed.as_secs_f64() * 1000.0
        ));
    }

    fn out(&self, text: &str) {
        let text = self.without_secrets(text);
        self.paused(|| {
            let _ = writeln!(anstream::stdout().lock(), "{text}");
        });
    }

    fn err(&self, text: &str) {
        let text = self.without_secrets(text);
        self.paused(|| {
            let _ = writeln!(anstream::stderr().lock(), "{text}");
        });
    }

    /// Prints while the spinner is hidden.
    fn paused(&self, print: impl FnOnce()) {
        match &*lock(&self.spinner) {
            Some(spinner) => spinner.suspend(print),
            None => print(),
        }
    }

    fn without_secrets(&self, text: &str) -> String {
        let hide = |text: String, mask: &Mask| mask.hide(&text);
        lock(&self.secrets).iter().fold(text.to_owned(), hide)
    }
}

/// The text of a table without lines.
fn table(rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell).into_owned()));
    }
    table.trim_fmt()
}

/// Escapes the control characters of each line.
fn lines(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().split('\n').map(printable).collect();
    lines.join("\n")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same JSON with every character that could control a terminal as a `\u` escape.
fn plain(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !needs_escaping(c) {
            plain.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String does not fail.
                let _ = write!(plain, "\\u{unit:04x}");
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c56_the_key_is_masked_in_escaped_forms() {
        let console = Console::new(false, false);
        console.hide(&"ptr_a+b/c12345=".into());
        for text in [
            "ptr_a+b/c12345=",
            "ptr_a%2Bb%2Fc12345%3D",
            "ptr_a\\u002bb/c12345=",
        ] {
            assert_eq!(console.without_secrets(text), "***", "{text}");
        }
    }
}
