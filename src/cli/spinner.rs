//! One line on a terminal that says what the program waits for, and for how long. Elsewhere, a long wait is printed once.

use std::{
    env,
    io::{IsTerminal as _, Write as _, stderr},
    mem,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use super::columns::{cut, of_terminal};
use crate::parallel::lock;

/// The columns that stay free: a terminal that adds `^C` to a full line continues on the next one, and what removes the
/// spinner would then miss its line.
const FREE: usize = "^C".len() + 1;
/// What comes before the text, at its widest.
const NEXT: usize = "/ 100m ".len();
/// The time between two pictures, and before the first one: for a shorter wait, the line would only flash.
const TICK: Duration = Duration::from_millis(120);
/// After this time, what the program waits for is printed once where nothing can be drawn.
const PRINTED_AFTER: Duration = Duration::from_secs(30);
/// Characters that every console has.
const TICKS: &str = r"|/-\";
/// Moves to the start of the line, and erases it.
const ERASE: &str = "\r\x1b[2K";

/// A spinner on standard error.
#[derive(Clone)]
pub(super) struct Spinner {
    line: Arc<Mutex<Line>>,
    /// Whether standard error is a terminal.
    is_drawn: bool,
}

struct Line {
    /// `None` when the spinner has ended.
    text: Option<String>,
    is_shown: bool,
}

impl Spinner {
    /// Shows a spinner; `None` on a terminal that cannot erase a line.
    pub(super) fn start(text: &str) -> Option<Self> {
        let can_erase = env::var_os("TERM").is_some_and(|term| term != "dumb");
        let is_drawn = stderr().is_terminal();
        if is_drawn && !can_erase {
            return None;
        }
        let line = Line {
            text: Some(text.to_owned()),
            is_shown: false,
        };
        let line = Arc::new(Mutex::new(line));
        let (shown, began) = (Arc::clone(&line), Instant::now());
        thread::spawn(move || {
            for tick in TICKS.chars().cycle() {
                thread::sleep(TICK);
                if is_drawn {
                    if !lock(&shown).draw(tick, began.elapsed().as_secs()) {
                        return;
                    }
                    continue;
                }
                // Not locked while it waits for the reader of a pipe.
                let Some(text) = lock(&shown).text.clone() else {
                    return;
                };
                if began.elapsed() >= PRINTED_AFTER {
                    return write(&format!("{text}\n"));
                }
            }
        });
        Some(Self { line, is_drawn })
    }

    /// Changes the text.
    pub(super) fn say(&self, text: &str) {
        if let Some(now) = &mut lock(&self.line).text {
            text.clone_into(now);
        }
    }

    /// Prints while the spinner is hidden.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        if !self.is_drawn {
            return print();
        }
        let mut line = lock(&self.line);
        line.erase();
        print();
    }

    /// Removes the line.
    pub(super) fn end(&self) {
        let mut line = lock(&self.line);
        line.erase();
        line.text = None;
    }
}

impl Line {
    /// Draws the line after this many seconds. Returns whether the spinner still runs.
    fn draw(&mut self, tick: char, seconds: u64) -> bool {
        let Some(text) = &self.text else {
            return false;
        };
        let elapsed = match seconds {
            0..90 => format!("{seconds}s"),
            _ => format!("{}m", (seconds + 30) / 60),
        };
        let all = of_terminal(stderr()).unwrap_or_default();
        let columns = all.saturating_sub(FREE).max(1);
        let fitting = cut(text.clone(), Some(columns.saturating_sub(NEXT)));
        let line = cut(format!("{tick} {elapsed:>3} {fitting}"), Some(columns));
        self.is_shown = true;
        write(&format!("{ERASE}{line}"));
        true
    }

    fn erase(&mut self) {
        if mem::take(&mut self.is_shown) {
            write(ERASE);
        }
    }
}

/// Writes to standard error at once.
fn write(text: &str) {
    let _ = stderr().lock().write_all(text.as_bytes());
}
