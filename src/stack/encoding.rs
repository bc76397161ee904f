//! Files that are not UTF-8. Compose reads the bytes of env files as they are, but the APIs of Portainer and the engine use
//! JSON, which cannot carry them. Compose replaces each such byte by U+FFFD.

use std::path::Path;

use anyhow::Result;
use composefile::dotenv;

use crate::{failure::Failure, text::shell_word};

const REPLACEMENT: char = '\u{fffd}';

/// A text that must be UTF-8 (C34).
pub(super) fn strict(what: &str, path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        not_utf8(what, path, error.as_bytes(), offset, "").into()
    })
}

/// An env file. Bytes that are not UTF-8 become U+FFFD in comments and in the values of unused variables. Such bytes in
/// any other place are an error.
pub(super) fn lenient(
    path: &Path,
    bytes: Vec<u8>,
    is_used: impl Fn(&str, &str) -> bool,
) -> Result<String> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let text = replaced(&bytes);
    // A variable that refers to another one is not read through it: both are looked for in the text.
    let read = dotenv::parse(&text, &|_| Some("set".to_owned()));
    let is_lost =
        |(name, value): &(String, String)| value.contains(REPLACEMENT) && is_used(name, &text);
    if read.is_ok_and(|variables| !variables.iter().any(is_lost)) {
        return Ok(text);
    }
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let mut start = 0;
    let mut offsets = lines.filter_map(|line| {
        let from = start;
        start += line.len();
        let valid = std::str::from_utf8(line).err()?.valid_up_to();
        Some((line.trim_ascii_start().starts_with(b"#"), from + valid))
    });
    let all: Vec<_> = offsets.by_ref().collect();
    let of_value = all.iter().find(|(is_comment, _)| !is_comment);
    let &(_, offset) = of_value.or(all.first()).unwrap_or(&(false, 0));
    let place = ", in a place that the stack may use";
    Err(not_utf8("env file", path, &bytes, offset, place).into())
}

/// Replaces each byte that is not UTF-8 as Compose does: one by one.
fn replaced(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| REPLACEMENT));
    }
    text
}

fn not_utf8(what: &str, path: &Path, bytes: &[u8], offset: usize, place: &str) -> Failure {
    let line = memchr::memchr_iter(b'\n', &bytes[..offset]).count() + 1;
    let shown = path.display().to_string();
    let file = shell_word(&shown);
    Failure::new(format!(
        "the {what} {shown} is not UTF-8 at byte {offset} (line {line}){place}: it cannot be sent as JSON"
    ))
    .hint(format!(
        "convert it to UTF-8, then run the command again. If it is in Latin-1: `text=$(iconv -f LATIN1 -t UTF-8 {file}) && printf '%s\\n' \"$text\" >{file}`"
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::lenient;

    fn read(bytes: &[u8]) -> Result<String, String> {
        let is_used = |name: &str, _: &str| name == "USED";
        lenient(Path::new("/s/it's/.env"), bytes.to_vec(), is_used)
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn bytes_that_nothing_uses_become_replacement_characters() {
        for (bytes, text) in [
            (
                &b"# caf\xe9\nUSED=1 # \xe2\x82\n"[..],
                "# caf\u{fffd}\nUSED=1 # \u{fffd}\u{fffd}\n",
            ),
            (
                b"OTHER=\xff\nUSED=\xc3\xa9\n",
                "OTHER=\u{fffd}\nUSED=\u{e9}\n",
            ),
            (b"USED=\xff\nUSED=1\n", "USED=\u{fffd}\nUSED=1\n"),
        ] {
            assert_eq!(read(bytes).as_deref(), Ok(text));
        }
    }

    #[test]
    fn other_bytes_are_refused_with_their_line() {
        for (bytes, place) in [
            (&b"# \xe9\nA=1\nUSED=caf\xe9\n"[..], "byte 16 (line 3)"),
            (b"USED='a\n# \xe9'\n", "byte 10 (line 2)"),
            (b"N\xe9=1\n", "byte 1 (line 1)"),
            (b"\xff\xfeA\0=\0", "byte 0 (line 1)"),
        ] {
            let error = read(bytes).expect_err("refused");
            assert!(error.contains(place), "{error}");
            assert!(!error.contains("caf"), "{error}");
        }
    }
}
