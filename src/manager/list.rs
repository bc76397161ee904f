//! A JSON array read entry by entry, so that its length does not show in the memory.
//!
//! Entries are parsed where they lie in the buffer; one that is cut by the buffer's end is parsed again
//! when more of it has come. The whole array is checked: what is cut off or goes on behind its end is an
//! error, never a shorter list.

use std::{
    borrow::Cow,
    io::{self, Read},
    ops::Range,
};

use memchr::{memchr, memmem::Finder};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Deserializer;

/// How much is asked of the reader at a time.
const CHUNK: usize = 64 * 1024;
/// The longest entry that is taken.
const LONGEST: usize = 64 * 1024 * 1024;

/// What each entry is looked at for.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "Name", borrow)]
    name: Cow<'a, str>,
}

/// Gives the JSON of each entry whose `Name` is one of `names` to `take`, in order. `null` is an empty
/// list.
pub(super) fn entries(
    reader: impl Read,
    names: &[&str],
    mut take: impl FnMut(&[u8]),
) -> io::Result<()> {
    let finders: Vec<Finder> = names
        .iter()
        .map(|name| Finder::new(name.as_bytes()))
        .collect();
    // Most entries are seen not to be it without looking for their name. An escape can hide one.
    let may_be = |json: &[u8]| {
        finders.iter().any(|name| name.find(json).is_some()) || memchr(b'\\', json).is_some()
    };
    let mut list = List {
        reader,
        buffer: Vec::new(),
        at: 0,
        ended: false,
    };
    match list.next_byte()? {
        Some(b'[') => list.at += 1,
        Some(b'n') => {
            list.at = list.value()?.end;
            return list.end();
        }
        Some(_) => return Err(not_a_list("it is no array")),
        None => return Err(not_a_list("it is empty")),
    }
    let mut first = true;
    loop {
        match list.next_byte()? {
            Some(b']') => {
                list.at += 1;
                return list.end();
            }
            Some(b',') if !first => list.at += 1,
            Some(_) if first => {}
            Some(_) => return Err(not_a_list("there is no comma between two entries")),
            None => return Err(not_a_list("it is cut off")),
        }
        first = false;
        let entry = list.value()?;
        list.at = entry.end;
        let json = &list.buffer[entry];
        let is_wanted = |head: Head| names.contains(&&*head.name);
        if may_be(json) && serde_json::from_slice(json).is_ok_and(is_wanted) {
            take(json);
        }
    }
}

struct List<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where the next byte is in `buffer`.
    at: usize,
    /// Whether the reader has ended.
    ended: bool,
}

impl<R: Read> List<R> {
    /// The next byte that is no blank; it is not taken.
    fn next_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            let rest = &self.buffer[self.at..];
            let blank = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            if let Some(found) = rest.iter().position(blank) {
                self.at += found;
                return Ok(Some(self.buffer[self.at]));
            }
            self.at = self.buffer.len();
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Where the next value lies in the buffer, whole.
    fn value(&mut self) -> io::Result<Range<usize>> {
        if self.next_byte()?.is_none() {
            return Err(not_a_list("it is cut off"));
        }
        let mut seen = None;
        loop {
            let rest = &self.buffer[self.at..];
            let mut values = Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
            let parsed = values.next();
            let end = values.byte_offset();
            match parsed {
                // A number that ends with the buffer may go on.
                Some(Ok(_)) if self.ended || end < rest.len() => {
                    return Ok(self.at..self.at + end);
                }
                Some(Err(error)) if self.ended => return Err(error.into()),
                Some(Err(error)) => {
                    // A number that is cut is an error, too: one that stays with more to read is real.
                    let place = Some((error.line(), error.column()));
                    if !error.is_eof() && std::mem::replace(&mut seen, place) == place {
                        return Err(error.into());
                    }
                    self.fill()?
                }
                // There is something: only a number at the buffer's end comes here.
                Some(Ok(_)) | None => self.fill()?,
            };
        }
    }

    /// Reads more; `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let held = self.buffer.len();
        if held > LONGEST {
            return Err(not_a_list("an entry is longer than 64 MiB"));
        }
        self.buffer.resize(held + CHUNK.max(held), 0);
        let read = self.reader.read(&mut self.buffer[held..]);
        let count = *read.as_ref().unwrap_or(&0);
        self.buffer.truncate(held + count);
        self.ended = read? == 0;
        Ok(!self.ended)
    }

    /// Nothing but blanks may follow.
    fn end(&mut self) -> io::Result<()> {
        match self.next_byte()? {
            None => Ok(()),
            Some(_) => Err(not_a_list("something follows its end")),
        }
    }
}

fn not_a_list(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives at most so many bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(to.len()).min(self.0.len());
            to[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn read(text: &str, step: usize) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        entries(Drip(text.as_bytes(), step), &["web", "other"], |json| {
            found.push(String::from_utf8_lossy(json).into_owned());
        })
        .map_err(|error| error.to_string())?;
        Ok(found)
    }

    #[test]
    fn entries_are_found_however_the_text_is_cut() {
        let text = r#" [ {"Name":"a","x":[1,{"y":"]}"}]} , 12, null, "web", {"Name":1},
            {"Id":1,"Name":"\u0077eb"},{"Name":"web","Name2":-1.5e3}, 3] "#;
        for step in [1, 2, 7, 64, 100_000] {
            let found = read(text, step).expect("a list");
            let expected = [
                r#"{"Id":1,"Name":"\u0077eb"}"#,
                r#"{"Name":"web","Name2":-1.5e3}"#,
            ];
            assert_eq!(found, expected, "step {step}");
            assert_eq!(read("null", step), Ok(Vec::new()));
            assert_eq!(read("[]", step), Ok(Vec::new()));
        }
    }

    #[test]
    fn what_is_no_whole_list_is_an_error() {
        for text in [
            "",
            " ",
            "{}",
            "1",
            "[",
            "[1",
            "[1,",
            "[1 2]",
            "[,]",
            "[1,]",
            "[1]]",
            "[1] x",
            "nul",
            "nullx",
            "null,",
            r#"[{"Name":"web"}"#,
            r#"[{"Name":"web""#,
            r#"[{"Name":}]"#,
            "[tru]",
            "<html>",
        ] {
            for step in [1, 100] {
                assert!(read(text, step).is_err(), "{text:?}");
            }
        }
    }
}
