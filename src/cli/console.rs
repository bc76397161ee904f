//! Terminal output: steps go to standard output, warnings and errors to standard error.
//!
//! Invariant: the API key and the values of `--header-file` are masked in all output (C56), and control characters in text from outside are
//! escaped. A closed pipe ends the output, not the run.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind, IsTerminal, Write, stderr, stdin, stdout},
    mem,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context as _, Result};
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use super::{
    arguments::{Common, Output},
    columns::{of_terminal, readable, width, wrap, wrap_lines},
    signals::on_signal,
    spinner::Spinner,
    style::Meaning,
    table::{self, Part, TableRow, plain},
};
use crate::{
    failure::Failure,
    model::Container,
    parallel::lock,
    run::State,
    text::{Mask, counted, needs_escaping, printable, without_error_numbers},
    trace::Trace,
};

/// A verb is right-aligned in a column of this width.
const VERBS: usize = 9;
/// The least width of the text of an item. If less is left, the rest is indented by [`NARROW`].
const LEAST: usize = 30;
const NARROW: usize = 4;
/// The answers to a question, the default one in upper case.
const ANSWER: &str = " [y/N] ";

/// Prints steps, warnings and errors.
#[derive(Default)]
pub(super) struct Console {
    /// Whether only warnings and errors are printed.
    pub(super) quiet: bool,
    /// Whether every step is shown, and the bodies of responses.
    pub(super) verbose: bool,
    /// Whether steps and tables go to standard error, because standard output has another use.
    to_stderr: AtomicBool,
    /// Whether a part of a result could not be written.
    is_incomplete: AtomicBool,
    secrets: Mutex<Vec<Mask>>,
    /// Starts of paths, and what is shown in their place.
    renamed: Mutex<Vec<(String, String)>>,
    spinner: Mutex<Option<Spinner>>,
    /// What is printed later, because another console is shown; `None` if it is printed at once.
    held: Mutex<Option<Held>>,
    /// Notified when that is printed.
    released: Condvar,
}

#[derive(Default)]
struct Held {
    lines: Vec<(Stream, String)>,
    /// What the spinner would say now.
    waiting: Option<String>,
}

#[derive(Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

impl Console {
    pub(super) fn new(common: &Common) -> Self {
        Self {
            quiet: common.quiet,
            verbose: common.verbose,
            ..Self::default()
        }
    }

    /// The same for a stack whose turn comes later: it prints nothing until it is released.
    pub(super) fn held(&self) -> Self {
        Self {
            quiet: self.quiet,
            verbose: self.verbose,
            to_stderr: AtomicBool::new(self.to_stderr.load(Ordering::Relaxed)),
            secrets: Mutex::new(lock(&self.secrets).clone()),
            held: Mutex::new(Some(Held::default())),
            ..Self::default()
        }
    }

    /// Prints what was held, and everything else at once.
    pub(super) fn release(&self) {
        let mut held = lock(&self.held);
        let Held { lines, waiting } = held.take().unwrap_or_default();
        for (stream, text) in lines {
            // A run does not fail because its steps cannot be shown.
            let _ = stream.print(&text);
        }
        if let Some(what) = waiting {
            self.spin(&what);
        }
        self.released.notify_all();
    }

    /// Waits until it is released.
    fn await_release(&self) {
        let held = lock(&self.held);
        let released = self.released.wait_while(held, |held| held.is_some());
        drop(released.unwrap_or_else(PoisonError::into_inner));
    }

    /// Prints steps and tables to standard error from now on.
    pub(super) fn steps_to_stderr(&self) {
        self.to_stderr.store(true, Ordering::Relaxed);
    }

    /// Masks `key`, also in JSON, in all output from now on (C56).
    pub(super) fn hide(&self, key: &SecretString) {
        self.hide_all(&[key.expose_secret()]);
    }

    /// Masks further secrets, also in JSON, in all output from now on.
    pub(super) fn hide_all(&self, secrets: &[&str]) {
        lock(&self.secrets).push(Mask::new(secrets.iter().copied()));
    }

    /// Shows paths that start with `from` as such that start with `to`, in all output from now on.
    pub(super) fn rename(&self, from: &str, to: &str) {
        lock(&self.renamed).push((from.to_owned(), to.to_owned()));
    }

    /// Prints a step: a verb and its object.
    pub(super) fn step(&self, verb: &str, about: &str) {
        let about = hanging(about, VERBS + 1, self.steps_width());
        let style = Meaning::of_step(verb).style().bold();
        self.progress(&format!("{style}{verb:>VERBS$}{style:#} {about}"));
    }

    /// Prints the result of a command, even with `--quiet`.
    pub(super) fn line(&self, text: &str) {
        self.out(&lines(text));
    }

    /// Prints a line of parts that mean something, even with `--quiet`.
    pub(super) fn parts(&self, parts: &[Part]) {
        self.out(&painted(parts));
    }

    /// Prints the command to run next.
    pub(super) fn next(&self, command: &str) {
        self.parts(&[]);
        let label = (Meaning::Name, "Next: ".to_owned());
        self.parts(&[label, (Meaning::Command, command.to_owned())]);
    }

    /// Prints text for reading, broken at the width of the terminal, even with `--quiet`.
    pub(super) fn text(&self, text: &str) {
        self.out(&wrap_lines(&lines(text), 0, Self::width()));
    }

    /// The width of what the results are printed on; `None` if it is not a terminal.
    pub(super) fn width() -> Option<usize> {
        of_terminal(stdout())
    }

    fn steps_width(&self) -> Option<usize> {
        if self.to_stderr.load(Ordering::Relaxed) {
            of_terminal(stderr())
        } else {
            Self::width()
        }
    }

    /// Prints a heading.
    pub(super) fn heading(&self, text: &str) {
        let text = wrap_lines(&lines(text), 0, self.steps_width());
        self.progress(&format!("\n{}", Meaning::Label.paint(&text)));
    }

    /// Prints a warning of one or more lines.
    pub(super) fn warning(&self, text: &str) {
        self.labeled(Meaning::Warning, "warning", &lines(text));
    }

    /// Prints what to know about a stack on standard error, like a warning.
    pub(super) fn remark(&self, text: &str) {
        self.labeled(Meaning::Label, "note", &lines(text));
    }

    /// Prints an error: the message with its causes, details, the state of the stack, and what to do.
    pub(super) fn error(&self, error: &anyhow::Error, state: Option<&State>) {
        self.done();
        let message = format!("{error:#}");
        self.labeled(Meaning::Error, "error", &printable(&message));
        if let Some(details) = Failure::details_of(error) {
            self.details(&lines(details));
        }
        if let Some(body) = Failure::body_of(error).filter(|_| self.verbose) {
            self.details(&lines(body));
        }
        if let Some(state) = state {
            self.state(state);
        }
        if let Some(hint) = Failure::hint_of(error) {
            self.hint(hint);
        }
    }

    /// Prints the state of the stack.
    pub(super) fn state(&self, state: &State) {
        let text = state.to_string();
        if state.is_told() {
            self.details(&printable(&sentence(&text)));
        } else {
            self.labeled(Meaning::Label, "state", &printable(&text));
        }
    }

    /// Asks a yes-or-no question on the terminal. Anything but `y` and `yes` is a no, and so is the end of the input.
    pub(super) fn ask(&self, question: &str) -> bool {
        let answer = self.prompt(question, ANSWER).1;
        answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes")
    }

    /// Asks for a text on the terminal: one line, without blanks around it. `None` at the end of the input.
    pub(super) fn ask_text(&self, question: &str) -> Option<String> {
        let (is_whole, answer) = self.prompt(question, " ");
        is_whole.then_some(answer)
    }

    /// Asks a question. What was typed before is no answer (B41). Returns whether a whole line was read, and the line without
    /// blanks around it.
    fn prompt(&self, question: &str, answers: &str) -> (bool, String) {
        self.await_release();
        self.done();
        // Fails if it is no terminal.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        let most = of_terminal(stderr()).map(|columns| columns.saturating_sub(answers.len()));
        let question = self.shown(&wrap_lines(&printable(question), 0, most));
        {
            let mut terminal = anstream::stderr().lock();
            let _ = write!(terminal, "{}{answers}", Meaning::Label.paint(&question));
            let _ = terminal.flush();
        }
        let mut answer = String::new();
        let read = stdin().read_line(&mut answer);
        let is_whole = read.is_ok() && answer.ends_with('\n');
        if !is_whole {
            self.err("");
        }
        (is_whole, answer.trim().to_owned())
    }

    /// Asks for a secret, which the terminal does not show. `None` at the end of the input.
    pub(super) fn ask_secret(&self, question: &str) -> Result<Option<SecretString>> {
        let failed = "failed to turn off the terminal's echo";
        let shown = tcgetattr(stdin()).context(failed)?;
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        hidden.local_modes.insert(LocalModes::ECHONL);
        let restore = move || {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &shown);
        };
        let interrupted = restore.clone();
        // Without this, an interrupt would leave the terminal's echo off.
        on_signal(move |code| {
            interrupted();
            let _ = writeln!(anstream::stderr());
            std::process::exit(code);
        })
        .context(failed)?;
        tcsetattr(stdin(), OptionalActions::Now, &hidden).context(failed)?;
        let answer = self.ask_text(question);
        restore();
        Ok(answer.map(SecretString::from))
    }

    /// Prints what to do next.
    pub(super) fn hint(&self, hint: &str) {
        self.labeled(Meaning::Label, "hint", &printable(hint));
    }

    /// Prints a row of a plan: for whom, and what happens.
    pub(super) fn row(&self, start: &Part, text: &str) {
        self.progress(&item(std::slice::from_ref(start), text, self.steps_width()));
    }

    /// Prints a sentence of a plan or of a result. What does not fit is indented.
    pub(super) fn told(&self, text: &str) {
        self.progress(&wrap_lines(&lines(text), 0, self.steps_width()));
    }

    /// Prints what a run has done, and to what.
    pub(super) fn outcome(&self, verb: &str, about: &str) {
        let about = wrap_lines(&lines(about), width(verb) + 1, self.steps_width());
        let verb = Meaning::Done.paint(verb);
        self.progress(&format!("{verb} {about}"));
    }

    /// Prints `label: text`, broken at the width of the terminal.
    fn labeled(&self, meaning: Meaning, label: &str, text: &str) {
        let label = format!("{label}:");
        let text = wrap_lines(text, label.len() + 1, of_terminal(stderr()));
        self.err(&format!("{} {text}", meaning.paint(&label)));
    }

    /// Prints a text without a label on standard error.
    pub(super) fn details(&self, text: &str) {
        self.err(&wrap_lines(text, 0, of_terminal(stderr())));
    }

    /// Prints a result as JSON, or with `as_text`.
    pub(super) fn result<R: Serialize>(
        &self,
        output: Output,
        result: &R,
        as_text: impl FnOnce(&R, &Self),
    ) -> Result<()> {
        match output {
            Output::Json => self.json(result)?,
            Output::Text => as_text(result, self),
        }
        Ok(())
    }

    /// Prints a result as JSON.
    pub(super) fn json(&self, result: &impl Serialize) -> Result<()> {
        let json = serde_json::to_string_pretty(result).context("failed to write JSON")?;
        self.line(&escaped(&json));
        Ok(())
    }

    /// Prints a remark about the result.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            let text = wrap_lines(&printable(text), 0, of_terminal(stderr()));
            self.err(&Meaning::Remark.paint(&text));
        }
    }

    /// Prints containers as a table of Names, Image and Status (C54).
    pub(super) fn containers(&self, containers: &[Container]) {
        if self.quiet {
            return;
        }
        let row = |container: &Container| {
            let (image, status) = (container.image_name(), container.told_status());
            plain([container.name(), image, status].map(str::to_owned))
        };
        self.table(&["Names", "Image", "Status"], containers.iter().map(row));
    }

    /// Prints a table, even with `--quiet`.
    pub(super) fn table(&self, header: &[&str], rows: impl IntoIterator<Item: Into<TableRow>>) {
        for line in table::lines(header, rows, self.steps_width()) {
            self.to_steps(&line);
        }
    }

    /// Prints a table as the result of a command, even with `--quiet`.
    pub(super) fn result_table(
        &self,
        header: &[&str],
        rows: impl IntoIterator<Item: Into<TableRow>>,
    ) {
        for line in table::lines(header, rows, Self::width()) {
            self.out(&line);
        }
    }

    /// Prints a text after a start, broken at the width of the terminal, even with `--quiet`. What does not fit is below the
    /// text.
    pub(super) fn item(&self, start: &[Part], text: &str) {
        self.out(&item(start, text, Self::width()));
    }

    /// Prints a text among the steps, which `--quiet` hides.
    fn progress(&self, text: &str) {
        if !self.quiet {
            self.to_steps(text);
        }
    }

    fn to_steps(&self, text: &str) {
        if self.to_stderr.load(Ordering::Relaxed) {
            self.err(text);
        } else {
            // A run does not fail because its steps cannot be shown.
            let _ = self.write(text);
        }
    }

    /// Shows a spinner with the time that has passed on a terminal; elsewhere, a long wait is printed once. It replaces the one before.
    pub(super) fn waiting(&self, what: &str) {
        match &mut *lock(&self.held) {
            Some(held) => held.waiting = Some(what.to_owned()),
            None => self.spin(what),
        }
    }

    fn spin(&self, what: &str) {
        let next = (!self.quiet).then(|| Spinner::start(&printable(what)));
        // Another thread may have started one.
        if let Some(before) = mem::replace(&mut *lock(&self.spinner), next.flatten()) {
            before.end();
        }
    }

    /// Changes what the spinner says, if there is one.
    fn still_waiting(&self, what: &str) {
        if let Some(spinner) = &*lock(&self.spinner) {
            spinner.say(&printable(what));
        }
    }

    /// Says how many of all stacks are planned.
    pub(super) fn planning(&self) -> impl Fn(usize, usize) + Sync {
        |done, all| {
            self.still_waiting(&format!("planned {done} of {}", counted(all, "stack")));
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
        if let Some(held) = &mut *lock(&self.held) {
            held.waiting = None;
        }
        if let Some(spinner) = lock(&self.spinner).take() {
            spinner.end();
        }
    }

    /// The requests that `-v` prints.
    pub(super) fn trace(self: &std::sync::Arc<Self>) -> Trace {
        if !self.verbose {
            return Trace::off();
        }
        let console = std::sync::Arc::clone(self);
        Trace::to(move |exchange| {
            console.detail(&format!(
                "{}: {} -> {} in {:.1} ms",
                exchange.peer,
                exchange.request,
                exchange.outcome,
                exchange.elapsed.as_secs_f64() * 1000.0
            ));
        })
    }

    /// Prints a line that only `-v` shows.
    pub(super) fn detail(&self, text: &str) {
        if self.verbose {
            self.err(&Meaning::Remark.paint(&printable(text)));
        }
    }

    fn out(&self, text: &str) {
        // A closed pipe is not an error.
        if let Err(error) = self.write(text)
            && error.kind() != ErrorKind::BrokenPipe
        {
            self.is_incomplete.store(true, Ordering::Relaxed);
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.print(Stream::Stdout, text)
    }

    fn print(&self, stream: Stream, text: &str) -> io::Result<()> {
        let text = self.shown(text);
        if let Some(held) = &mut *lock(&self.held) {
            held.lines.push((stream, text));
            return Ok(());
        }
        let mut printed = Ok(());
        self.paused(|| printed = stream.print(&text));
        printed
    }

    /// Whether a part of a result could not be written to standard output, for example because the disk is full.
    pub(super) fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Relaxed)
    }

    fn err(&self, text: &str) {
        let _ = self.print(Stream::Stderr, text);
    }

    /// Removes the spinner in a panic, whose thread may be the one that holds it.
    pub(super) fn panicked(&self) {
        if let Ok(mut spinner) = self.spinner.try_lock()
            && let Some(spinner) = spinner.take()
        {
            spinner.end();
        }
    }

    /// Prints while the spinner is hidden. Without one, nothing is locked: a thread that waits for the reader of a pipe
    /// must not keep a signal from ending the program.
    fn paused(&self, print: impl FnOnce()) {
        let spinner = lock(&self.spinner).clone();
        match spinner {
            Some(spinner) => spinner.suspend(print),
            None => print(),
        }
    }

    /// What is printed: without secrets, without the numbers of the operating system's errors, and with the paths that the user knows.
    fn shown(&self, text: &str) -> String {
        let text = without_error_numbers(text);
        let hide = |text: String, mask: &Mask| mask.hide(&text);
        let text = lock(&self.secrets).iter().fold(text.into_owned(), hide);
        let rename = |text: String, (from, to): &(String, String)| text.replace(from, to);
        lock(&self.renamed).iter().fold(text, rename)
    }
}

impl Stream {
    fn print(self, text: &str) -> io::Result<()> {
        match self {
            Self::Stdout => writeln!(anstream::stdout().lock(), "{text}"),
            Self::Stderr => writeln!(anstream::stderr().lock(), "{text}"),
        }
    }
}

/// Prints why the arguments are wrong, broken at the width of the terminal.
pub(super) fn print_usage_error(error: &clap::Error) -> io::Result<()> {
    let text = error.render().ansi().to_string();
    let text = wrap_lines(text.trim_end(), 0, of_terminal(stderr()));
    writeln!(anstream::stderr().lock(), "{text}")
}

/// Capitalized, and with a full stop.
fn sentence(text: &str) -> String {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let (first, rest) = text.split_at(first);
    format!("{}{rest}.", first.to_uppercase())
}

/// Parts in the colors of what they mean.
fn painted(parts: &[Part]) -> String {
    let painted = parts
        .iter()
        .map(|(meaning, text)| meaning.paint(&printable(text)));
    painted.collect()
}

/// A text after its start, broken at the width of the terminal.
fn item(start: &[Part], text: &str, columns: Option<usize>) -> String {
    let taken = start.iter().map(|(_, text)| width(&printable(text))).sum();
    painted(start) + &hanging(text, taken, columns)
}

/// A text after a start of this width, on lines of at most this width.
fn hanging(text: &str, start: usize, columns: Option<usize>) -> String {
    let most = readable(columns);
    let indent = if most.saturating_sub(start) < LEAST {
        NARROW
    } else {
        start
    };
    let (first, rest) = (most.saturating_sub(start), most.saturating_sub(indent));
    wrap(&printable(text), first, rest).join(&format!("\n{:indent$}", ""))
}

/// Escapes the control characters of each line.
fn lines(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().split('\n').map(printable).collect();
    lines.join("\n")
}

/// The same JSON with every character that could control a terminal as a `\u` escape.
fn escaped(json: &str) -> String {
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
