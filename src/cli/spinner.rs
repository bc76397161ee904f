//! One line on a terminal that says what the program waits for, and for how long.

use std::{
    env,
    io::{self, IsTerminal as _, Write as _, stderr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use super::columns::{cut, of_terminal};

/// The columns that stay free: a terminal that adds `^C` to a full line continues on the next one, and what removes the
/// spinner would then miss its line.
const FREE: usize = "^C".len() + 1;
/// What comes before the text, at its widest.
const NEXT: usize = "/ 100m ".len();
/// A shorter wait shows nothing: the line would only flash.
const DELAY: Duration = Duration::from_millis(100);
/// Characters that every console has.
const TICKS: &str = r"|/-\ ";

/// A spinner on standard error.
#[derive(Clone)]
pub(super) struct Spinner(ProgressBar);

impl Spinner {
    /// Shows a spinner; `None` without a terminal that can erase a line.
    pub(super) fn start(text: &str) -> Option<Self> {
        let can_erase = env::var_os("TERM").is_some_and(|term| term != "dumb");
        if !can_erase || !stderr().is_terminal() {
            return None;
        }
        let target = ProgressDrawTarget::term_like(Box::new(Screen::new()));
        let spinner = ProgressBar::with_draw_target(None, target).with_message(fitting(text));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>3} {msg}") {
            spinner.set_style(style.tick_chars(TICKS));
        }
        spinner.enable_steady_tick(Duration::from_millis(120));
        Some(Self(spinner))
    }

    /// Changes the text.
    pub(super) fn say(&self, text: &str) {
        self.0.set_message(fitting(text));
    }

    /// Prints while the spinner is hidden.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    /// Removes the line.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// The columns of standard error that a spinner uses.
fn columns() -> usize {
    let all = of_terminal(stderr()).unwrap_or_default();
    all.saturating_sub(FREE).max(1)
}

fn fitting(text: &str) -> String {
    cut(text.to_owned(), Some(columns().saturating_sub(NEXT)))
}

/// Standard error, which receives each picture in one write.
#[derive(Debug)]
struct Screen {
    began: Instant,
    picture: Mutex<String>,
}

impl Screen {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            picture: Mutex::default(),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "what a terminal returns")]
    fn add(&self, text: &str) -> io::Result<()> {
        let mut picture = self.picture.lock().unwrap_or_else(PoisonError::into_inner);
        picture.push_str(text);
        Ok(())
    }

    fn move_cursor(&self, by: usize, direction: char) -> io::Result<()> {
        match by {
            0 => Ok(()),
            _ => self.add(&format!("\x1b[{by}{direction}")),
        }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        u16::try_from(columns()).unwrap_or(u16::MAX)
    }

    fn move_cursor_up(&self, by: usize) -> io::Result<()> {
        self.move_cursor(by, 'A')
    }

    fn move_cursor_down(&self, by: usize) -> io::Result<()> {
        self.move_cursor(by, 'B')
    }

    fn move_cursor_right(&self, by: usize) -> io::Result<()> {
        self.move_cursor(by, 'C')
    }

    fn move_cursor_left(&self, by: usize) -> io::Result<()> {
        self.move_cursor(by, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.add(&format!("{text}\r\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.add(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.add("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let mut picture = self.picture.lock().unwrap_or_else(PoisonError::into_inner);
        let picture = std::mem::take(&mut *picture);
        if self.began.elapsed() < DELAY {
            return Ok(());
        }
        let mut terminal = stderr().lock();
        terminal.write_all(picture.as_bytes())?;
        terminal.flush()
    }
}
