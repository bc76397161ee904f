//! A JSON array read entry by entry, so that its length does not show in the memory.
//!
//! Entries are looked at where they lie in the buffer; one that is cut by the buffer's end is gone on with when
//! more of it has come. The whole array is checked: what is cut off or goes on behind its end is an error,
//! never a shorter list.

use std::{
    borrow::Cow,
    io::{self, Read},
    ops::Range,
};

use memchr::memmem::Finder;
use serde::Deserialize;

use super::scan::{Found, Scan, is_blank};

/// How much is held at first: several of the pieces that TLS gives.
const HELD: usize = 64 * 1024;
/// How much room there must be to ask the reader for more.
const ROOM: usize = 16 * 1024;
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
    let mut sought = names.to_vec();
    sought.dedup();
    let finders: Vec<Finder> = sought.iter().map(Finder::new).collect();
    let mut list = List {
        reader,
        buffer: vec![0; HELD],
        start: 0,
        end: 0,
        scan: Scan::new(),
    };
    match list.next_byte()? {
        Some(b'[') => list.start += 1,
        Some(b'n') => {
            list.null()?;
            return list.end();
        }
        Some(_) => return Err(not_a_list("it is no array")),
        None => return Err(not_a_list("it is empty")),
    }
    let mut first = true;
    loop {
        match list.next_byte()? {
            Some(b']') => {
                list.start += 1;
                return list.end();
            }
            Some(b',') if !first => list.start += 1,
            Some(_) if first => {}
            Some(_) => return Err(not_a_list("there is no comma between two entries")),
            None => return Err(not_a_list("it is cut off")),
        }
        first = false;
        let entry = list.value()?;
        list.start = entry.end;
        let json = &list.buffer[entry];
        // Most entries are seen not to be it without looking for their name. An escape can hide one.
        let may_be =
            list.scan.has_escapes() || finders.iter().any(|name| name.find(json).is_some());
        let is_wanted = |head: Head| names.contains(&&*head.name);
        if may_be && serde_json::from_slice(json).is_ok_and(is_wanted) {
            take(json);
        }
    }
}

struct List<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where what is not taken yet starts in `buffer`.
    start: usize,
    /// Where what has been read ends.
    end: usize,
    scan: Scan,
}

impl<R: Read> List<R> {
    /// The next byte that is no blank; it is not taken.
    fn next_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            let rest = &self.buffer[self.start..self.end];
            if let Some(found) = rest.iter().position(|&byte| !is_blank(byte)) {
                self.start += found;
                return Ok(Some(self.buffer[self.start]));
            }
            self.start = self.end;
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Takes `null`.
    fn null(&mut self) -> io::Result<()> {
        while self.end - self.start < 4 && self.fill()? {}
        if !self.buffer[self.start..self.end].starts_with(b"null") {
            return Err(not_a_list("it is no array"));
        }
        self.start += 4;
        Ok(())
    }

    /// Where the next value lies in the buffer, whole.
    fn value(&mut self) -> io::Result<Range<usize>> {
        if self.next_byte()?.is_none() {
            return Err(not_a_list("it is cut off"));
        }
        self.scan.restart();
        loop {
            match self.scan.go_on(&self.buffer[self.start..self.end]) {
                Found::End(length) => return Ok(self.start..self.start + length),
                Found::Fault => return Err(not_a_list("it is no JSON")),
                Found::More => {
                    if !self.fill()? {
                        return Err(not_a_list("it is cut off"));
                    }
                }
            }
        }
    }

    /// Reads more; `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let held = self.end - self.start;
        if held > LONGEST {
            return Err(not_a_list("an entry is longer than 64 MiB"));
        }
        if self.buffer.len() - self.end < ROOM {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, held);
        }
        if self.buffer.len() - self.end < ROOM {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let read = self.reader.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read != 0)
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
