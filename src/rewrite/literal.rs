//! The literal rewrite (C30–C33): deletes lines and replaces `./` without parsing the text.
//!
//! Invariant: byte for byte the output of this `sed` script in the C locale:
//! `/^[[:space:]]*env_file:/d`, `/^[[:space:]]*-[[:space:]]\{1,\}\.env[[:space:]]*$/d`,
//! `s|\./|{stack_dir}/|g`, with `stack_dir` taken literally.
//!
//! A blank is a space, tab, vertical tab, form feed or CR. So a line that ends in CRLF matches like one that ends in LF,
//! and is deleted with both bytes. A line ends at LF; a lone CR is a blank inside a line. Non-ASCII blanks do not count,
//! as in YAML.
#![deny(clippy::disallowed_methods)]

use std::ops::Range;

use memchr::memmem::Finder;

const KEY: &str = "env_file:";
const FILE: &str = ".env";
const PATH: &str = "./";

/// Rewrites `text`, a Compose file in `stack_dir`.
///
/// `./` is replaced from left to right, and the inserted text is not searched again: `.//` becomes
/// `{stack_dir}//`, `../x` becomes `.{stack_dir}/x`, `.././` becomes `.{stack_dir}/{stack_dir}/`.
pub fn rewrite(text: &str, stack_dir: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8 + stack_dir.len());
    let mut done = 0;
    for edit in TextEdits::new(text) {
        match edit {
            TextEdit::Delete(line) => {
                out.push_str(&text[done..line.start]);
                done = line.end;
            }
            // The slash stays.
            TextEdit::Replace { dot } => {
                out.push_str(&text[done..dot]);
                out.push_str(stack_dir);
                done = dot + 1;
            }
        }
    }
    out.push_str(&text[done..]);
    out
}

/// One change of the rewrite, in the bytes of the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextEdit {
    /// A line, including its end (C30, C31).
    Delete(Range<usize>),
    /// The dot of a `./`, which the directory replaces (C32).
    Replace {
        /// The position of the dot.
        dot: usize,
    },
}

/// The changes of the rewrite, in the order of the text.
///
/// Three searches run side by side, and the nearest match comes next. Lines are only searched around a match: no deleted
/// line has a `./` before its match.
pub struct TextEdits<'t> {
    text: &'t str,
    keys: Search,
    files: Search,
    paths: Search,
}

impl<'t> TextEdits<'t> {
    /// The changes that `text` needs.
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            keys: Search::new(text, KEY),
            files: Search::new(text, FILE),
            paths: Search::new(text, PATH),
        }
    }

    /// Continues after a deleted line.
    fn skip_to(&mut self, end: usize) {
        for search in [&mut self.keys, &mut self.files, &mut self.paths] {
            if search.next < end {
                search.advance(self.text, end);
            }
        }
    }
}

impl Iterator for TextEdits<'_> {
    type Item = TextEdit;

    fn next(&mut self) -> Option<TextEdit> {
        let text = self.text;
        loop {
            let (key, file, path) = (self.keys.next, self.files.next, self.paths.next);
            let nearest = key.min(file).min(path);
            if nearest == usize::MAX {
                return None;
            }
            if nearest == path {
                self.paths.advance(text, path + PATH.len());
                return Some(TextEdit::Replace { dot: path });
            }
            let line = if nearest == key {
                self.keys.advance(text, key + KEY.len());
                key_line(text, key)
            } else {
                self.files.advance(text, file + FILE.len());
                item_line(text, file)
            };
            if let Some(line) = line {
                self.skip_to(line.end);
                return Some(TextEdit::Delete(line));
            }
        }
    }
}

/// The matches of one needle.
struct Search {
    finder: Finder<'static>,
    /// The start of the next match; `usize::MAX` if there is none.
    next: usize,
}

impl Search {
    fn new(text: &str, needle: &'static str) -> Self {
        let mut search = Self {
            finder: Finder::new(needle),
            next: 0,
        };
        search.advance(text, 0);
        search
    }

    fn advance(&mut self, text: &str, from: usize) {
        let found = self.finder.find(&text.as_bytes()[from..]);
        self.next = found.map_or(usize::MAX, |at| from + at);
    }
}

/// The line whose first text is the `env_file:` at `at` (C30).
fn key_line(text: &str, at: usize) -> Option<Range<usize>> {
    let start = line_start(text, at)?;
    Some(start..line_end(text, at))
}

/// The line that holds only a list item with the `.env` at `at` (C31).
fn item_line(text: &str, at: usize) -> Option<Range<usize>> {
    let before = &text.as_bytes()[..at];
    let hyphen = before.iter().rposition(|&byte| !is_blank(byte))?;
    if before[hyphen] != b'-' || hyphen + 1 == at {
        return None;
    }
    let start = line_start(text, hyphen)?;
    let after = at + FILE.len();
    let blanks = text.as_bytes()[after..]
        .iter()
        .take_while(|&&byte| is_blank(byte));
    let end = after + blanks.count();
    match text.as_bytes().get(end) {
        None => Some(start..end),
        Some(b'\n') => Some(start..end + 1),
        Some(_) => None,
    }
}

/// The start of the line, if it has only blanks before `at`.
fn line_start(text: &str, at: usize) -> Option<usize> {
    let before = &text.as_bytes()[..at];
    match before.iter().rposition(|&byte| !is_blank(byte)) {
        None => Some(0),
        Some(last) if before[last] == b'\n' => Some(last + 1),
        Some(_) => None,
    }
}

/// The position after the LF that ends the line of `at`, or the end of the text.
fn line_end(text: &str, at: usize) -> usize {
    let found = memchr::memchr(b'\n', &text.as_bytes()[at..]);
    found.map_or(text.len(), |length| at + length + 1)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0B | 0x0C | b'\r')
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    use proptest::prelude::*;

    use super::{is_blank, rewrite};

    fn check(text: &str, expected: &str) {
        assert_eq!(rewrite(text, "/s/web"), expected, "{text:?}");
    }

    #[test]
    fn c30_lines_that_start_with_env_file_go() {
        check("a:\n  env_file:\n    - x\n", "a:\n    - x\n");
        check("\tenv_file: [./a]\nb", "b");
        check("env_file:", "");
        check("a\r\n env_file: .env\r\nb\r\n", "a\r\nb\r\n");
        check(
            "env_file:x\nenv_file :\nenv_filex:\n",
            "env_file :\nenv_filex:\n",
        );
        check(
            "# env_file: a\n- env_file: b\n\"env_file\": c\n",
            "# env_file: a\n- env_file: b\n\"env_file\": c\n",
        );
        check("x: env_file: y\nenv_file: env_file:\n", "x: env_file: y\n");
    }

    #[test]
    fn c31_lines_that_are_only_the_item_go() {
        check("a:\n  - .env\n  -   .env \t\n-\t.env\n", "a:\n");
        check("- .env", "");
        check("- .env\r\nb", "b");
        check(
            "-.env\n- .env # c\n- '.env'\n- .env.local\n- x.env\n- - .env\n",
            "-.env\n- .env # c\n- '.env'\n- .env.local\n- x.env\n- - .env\n",
        );
        check("-\n .env\n", "-\n .env\n");
        check("- ./.env\n", "- /s/web/.env\n");
        check("- .env .env\n", "- .env .env\n");
    }

    #[test]
    fn c32_every_dot_slash_is_replaced() {
        check("./", "/s/web/");
        check(
            "# ./a 'x./y' https://h./p",
            "# /s/web/a 'x/s/web/y' https://h/s/web/p",
        );
        check("../a", "./s/web/a");
        check(".././", "./s/web//s/web/");
        check(".//..//...///", "/s/web//./s/web//../s/web///");
        check("./././", "/s/web//s/web//s/web/");
        check(". / .\n/", ". / .\n/");
    }

    #[test]
    fn c33_everything_else_stays() {
        for text in [
            "",
            "\n",
            "\u{feff}a: 1\r\n\r\n# ü\0\t \rb",
            "a: 1",
            "a\n\n\n",
        ] {
            check(text, text);
        }
        check("\u{feff}env_file: a\n", "\u{feff}env_file: a\n");
        check("a\n  env_file: x", "a\n");
    }

    #[test]
    fn blanks_are_ascii_and_a_lone_cr_is_one() {
        check("\r\u{b}\u{c}env_file: x\r\ra\nb", "b");
        check(
            "\u{a0}env_file: x\n\u{3000}- .env\n",
            "\u{a0}env_file: x\n\u{3000}- .env\n",
        );
        check("- .env\u{a0}\n", "- .env\u{a0}\n");
    }

    #[test]
    fn the_directory_is_literal_and_not_read_again() {
        for dir in [
            "/a&b",
            "/a|b",
            r"/a\1\n",
            "/a\nb",
            "./",
            "",
            "env_file:",
            "/ü $x",
        ] {
            assert_eq!(rewrite("x: ./y\n", dir), format!("x: {dir}/y\n"));
        }
    }

    /// The rules, applied line by line.
    fn naive(text: &str, dir: &str) -> String {
        let kept = text.split_inclusive('\n').filter(|line| {
            let content = line.strip_suffix('\n').unwrap_or(line);
            let content = content.trim_start_matches(|c: char| c.is_ascii() && is_blank(c as u8));
            let item = content.strip_prefix('-').map(|rest| {
                let text = rest.trim_matches(|c: char| c.is_ascii() && is_blank(c as u8));
                text == ".env" && !rest.starts_with('.')
            });
            !content.starts_with("env_file:") && item != Some(true)
        });
        kept.collect::<String>().replace("./", &format!("{dir}/"))
    }

    fn near_misses() -> impl Strategy<Value = String> {
        "(env_file:|- \\.env|\\.env|\\./|-|\\.|/| |\t|\r|\n|\r\n|\u{b}|ü|x|env_file| - ){0,40}"
    }

    proptest! {
        #[test]
        fn is_what_the_rules_say(text in near_misses(), dir in "[/a.&|\\\\\n]{0,6}") {
            prop_assert_eq!(rewrite(&text, &dir), naive(&text, &dir));
        }

        #[test]
        fn is_what_the_rules_say_of_any_text(text in any::<String>()) {
            prop_assert_eq!(rewrite(&text, "/s"), naive(&text, "/s"));
        }
    }

    /// The output of the `sed` script. Needs GNU sed.
    #[allow(clippy::disallowed_methods, reason = "a test may run the reference")]
    fn sed(text: &str) -> String {
        let mut child = Command::new("sed")
            .env("LC_ALL", "C")
            .args(["-e", "/^[[:space:]]*env_file:/d"])
            .args([
                "-e",
                r"/^[[:space:]]*-[[:space:]]\{1,\}\.env[[:space:]]*$/d",
            ])
            .args(["-e", r"s|\./|/s/web/|g"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sed starts");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(text.as_bytes()).expect("sed reads");
        drop(input);
        let output = child.wait_with_output().expect("sed ends");
        assert!(output.status.success(), "GNU sed accepts the script");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn is_what_sed_gives(texts in prop::collection::vec(near_misses(), 1..8)) {
            let text = texts.join("\n");
            prop_assert_eq!(rewrite(&text, "/s/web"), sed(&text));
        }
    }
}
