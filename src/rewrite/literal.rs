//! The literal rewrite (C30–C33): deletes lines and replaces `./` without parsing the text.
//!
//! Invariant: byte for byte the output of this `sed` script in the C locale:
//! `/^[[:space:]]*env_file:/d`, `/^[[:space:]]*-[[:space:]]\{1,\}\.env[[:space:]]*$/d`,
//! `s|\./|{stack_dir}/|g`, with `stack_dir` taken literally.
//!
//! A blank is a space, tab, vertical tab, form feed or CR. So a line that ends in CRLF matches like one that ends in LF,
//! and is deleted with both bytes. A line ends at LF; a lone CR is a blank inside a line. Non-ASCII blanks do not count,
//! as in YAML.

use std::ops::Range;

use super::replaced;

const KEY: &str = "env_file:";
const FILE: &str = ".env";
const PATH: &str = "./";

/// Rewrites `text`, a Compose file in `stack_dir`.
///
/// `./` is replaced from left to right, and the inserted text is not searched again: `.//` becomes
/// `{stack_dir}//`, `../x` becomes `.{stack_dir}/x`, `.././` becomes `.{stack_dir}/{stack_dir}/`.
pub fn rewrite(text: &str, stack_dir: &str) -> String {
    let changes = edits(text).map(|edit| match edit {
        TextEdit::Delete(line) => (line, ""),
        // The slash stays.
        TextEdit::Replace { dot } => (dot..dot + 1, stack_dir),
    });
    replaced(text, changes)
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

/// The changes that `text` needs, in the order of the text.
pub fn edits(text: &str) -> impl Iterator<Item = TextEdit> {
    let mut end = 0;
    text.split_inclusive('\n').flat_map(move |line| {
        let start = end;
        end += line.len();
        let deleted = is_deleted(line).then_some(TextEdit::Delete(start..end));
        let kept = if deleted.is_some() { "" } else { line };
        let paths = kept.match_indices(PATH);
        let replaced = paths.map(move |(at, _)| TextEdit::Replace { dot: start + at });
        deleted.into_iter().chain(replaced)
    })
}

/// The line of `text` that is this line of its rewrite. Both are counted from 1.
pub fn original_line(text: &str, line: usize) -> Option<usize> {
    let lines = text.split_inclusive('\n').zip(1..);
    let mut kept = lines.filter(|(line, _)| !is_deleted(line));
    kept.nth(line.checked_sub(1)?).map(|(_, number)| number)
}

/// Whether the first text of a line is `env_file:` (C30), or the line holds only a list item `.env` (C31).
fn is_deleted(line: &str) -> bool {
    let line = line.trim_end_matches('\n').trim_start_matches(is_blank);
    let item = line.strip_prefix('-').and_then(|item| {
        let file = item.trim_start_matches(is_blank);
        let rest = file.strip_prefix(FILE)?;
        (file.len() < item.len()).then_some(rest)
    });
    line.starts_with(KEY) || item.is_some_and(|rest| rest.trim_start_matches(is_blank).is_empty())
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0B' | '\x0C' | '\r')
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    use proptest::prelude::*;

    use super::{original_line, rewrite};

    #[test]
    fn a_line_of_the_result_is_one_of_the_original() {
        let text = "a:\n  env_file:\n    - .env\n  b:\n  env_file: x\n  c:\n";
        let lines = [0, 1, 2, 3, 4].map(|line| original_line(text, line));
        assert_eq!(lines, [None, Some(1), Some(4), Some(6), None]);
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

    fn near_misses() -> impl Strategy<Value = String> {
        "(env_file:|- \\.env|\\.env|\\./|-|\\.|/| |\t|\r|\n|\r\n|\u{b}|\u{a0}|ü|x|env_file| - ){0,40}"
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
