//! What a run of the real binary came to.

use std::process::{Command, Output};

use serde_json::Value;

/// The administrator's key. No output may show it.
pub const KEY: &str = "ptr_bench-key-4f9a1c";

/// Part of secret values in `.env`. No output and no other file may contain it.
pub const MARK: &str = "s3cr3t-";

/// Such a value.
pub const MARKED: &str = "s3cr3t-7d1e55a0";

/// One text, or several.
pub trait Texts<'a> {
    fn list(self) -> Vec<&'a str>;
}

impl<'a> Texts<'a> for &'a str {
    fn list(self) -> Vec<&'a str> {
        vec![self]
    }
}

impl<'a> Texts<'a> for &'a String {
    fn list(self) -> Vec<&'a str> {
        vec![self]
    }
}

impl<'a, S: AsRef<str>> Texts<'a> for &'a [S] {
    fn list(self) -> Vec<&'a str> {
        self.iter().map(AsRef::as_ref).collect()
    }
}

impl<'a, S: AsRef<str>, const N: usize> Texts<'a> for &'a [S; N] {
    fn list(self) -> Vec<&'a str> {
        self.as_slice().list()
    }
}

impl<'a, S: AsRef<str>> Texts<'a> for &'a Vec<S> {
    fn list(self) -> Vec<&'a str> {
        self.as_slice().list()
    }
}

/// What a run of the binary came to.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// Runs a command and takes what it prints.
    pub fn of(command: &mut Command) -> Self {
        let run = Self::ended(&command.output().expect("the binary runs"));
        let reveals = command.get_args().any(|argument| argument == "--reveal");
        assert!(
            reveals || !run.all().contains(MARK),
            "a value shows: {run:?}"
        );
        run
    }

    /// What a command that has ended came to.
    pub fn ended(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let run = Self {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        assert!(!run.all().contains(KEY), "the key shows: {run:?}");
        assert!(!run.err.contains("panicked"), "{run:?}");
        run
    }

    /// What was printed as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Both streams.
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// Asserts the exit code.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Asserts that it succeeded and says this.
    #[track_caller]
    pub fn succeeds<'a>(self, says: impl Texts<'a>) -> Self {
        self.code(0).says(says)
    }

    /// Asserts that it failed and says this.
    #[track_caller]
    pub fn fails<'a>(self, says: impl Texts<'a>) -> Self {
        self.code(1).says(says)
    }

    /// Asserts that this is all of standard output.
    #[track_caller]
    pub fn prints(&self, out: impl AsRef<str>) {
        assert_eq!(self.out, out.as_ref(), "{self:#?}");
    }

    /// Asserts that one of the streams says all of `words`.
    #[track_caller]
    pub fn says<'a>(self, words: impl Texts<'a>) -> Self {
        for word in words.list() {
            assert!(self.all().contains(word), "no {word:?} in {self:#?}");
        }
        self
    }

    /// Asserts that it says this, wherever the lines are broken.
    #[track_caller]
    pub fn wraps(&self, said: &str) {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = words(&self.all());
        assert!(all.contains(&words(said)), "no {said:?} in {self:#?}");
    }

    /// Asserts that neither stream says any of `words`.
    #[track_caller]
    pub fn hides<'a>(self, words: impl Texts<'a>) -> Self {
        for word in words.list() {
            assert!(!self.all().contains(word), "{word:?} in {self:#?}");
        }
        self
    }
}
