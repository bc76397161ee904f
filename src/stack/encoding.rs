//! The text of a stack's files, which JSON carries only as UTF-8.

use std::path::Path;

use anyhow::Result;

use crate::{failure::Failure, text::shell_word};

/// The text of a file. Fails with the place of the first byte that is not UTF-8 (C34).
pub(super) fn strict(what: &str, path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let line = memchr::memchr_iter(b'\n', &error.as_bytes()[..offset]).count() + 1;
        let shown = path.display().to_string();
        let file = shell_word(&shown);
        let (if_, from) = match error.as_bytes() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ("It is in UTF-16:", "UTF-16"),
            _ => ("If it is in Latin-1:", "LATIN1"),
        };
        Failure::new(format!(
            "the {what} {shown} is not UTF-8 at byte {offset} (line {line}): it cannot be sent as JSON"
        ))
        .hint(format!(
            "convert it to UTF-8, then run the command again. {if_} `text=$(iconv -f {from} -t UTF-8 {file}) && printf '%s\\n' \"$text\" >{file}`"
        ))
        .into()
    })
}
