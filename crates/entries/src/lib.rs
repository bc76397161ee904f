//! Reads a JSON array of any length entry by entry and keeps the entries that are asked for by `Name`.
//!
//! Invariant: an error or a whole list, never a part of it. A list that ends early, or that something
//! follows, is an error.
//!
//! A crate of its own, because it is optimized for speed, and the program for size.

use std::{
    cell::Cell,
    fmt,
    io::{self, BufReader, ErrorKind, Read},
};

use serde::{
    Deserialize,
    de::{Deserializer as _, Error as _, SeqAccess, Visitor},
};
use serde_json::{Deserializer, Value, error::Category, value::RawValue};

/// The bytes of one entry, and of all wanted entries together (B12).
const MOST: u64 = 64 << 20;

/// The bytes of a list: a larger one ends early.
const MOST_OF_LIST: u64 = 1 << 30;

/// Why a list cannot be read.
#[derive(Debug)]
pub enum Error {
    /// There is no text.
    Empty,
    /// The text is not an array of JSON, or it is too large: why, without a part of it.
    Invalid(&'static str),
    /// The reader failed.
    Read(io::Error),
}

/// What is read first of an entry.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    name: String,
}

/// The entries of a list whose `Name` is one of `names`, or any text, in order. `null` is an empty list. An entry that is not
/// an object, or whose `Name` is not a string, is never kept.
///
/// Fails where the text is not an array of JSON, an entry or all wanted entries are larger than 64 MiB, the list is
/// larger than 1 GiB, or `reader` fails.
pub fn entries(reader: &mut dyn Read, names: Option<&[&str]>) -> Result<Vec<Value>, Error> {
    entries_of(reader.take(MOST_OF_LIST), names, MOST)
}

fn entries_of(reader: impl Read, names: Option<&[&str]>, most: u64) -> Result<Vec<Value>, Error> {
    let left = Cell::new(most);
    let reader = Limited {
        reader,
        left: &left,
    };
    let mut json = Deserializer::from_reader(BufReader::with_capacity(64 << 10, reader));
    let list = List { names, left: &left };
    let found = json.deserialize_any(list);
    let ended = found.and_then(|found| json.end().map(|()| found));
    ended.map_err(|error| match error.classify() {
        Category::Io => match io::Error::from(error) {
            error if error.kind() == ErrorKind::FileTooLarge => {
                Error::Invalid("an entry, or all entries together, are too large")
            }
            error => Error::Read(error),
        },
        Category::Eof if (error.line(), error.column()) == (1, 0) => Error::Empty,
        // An entry and its fields may be any JSON.
        Category::Data => Error::Invalid("expected a list of stacks"),
        _ => Error::Invalid(not_json(&error)),
    })
}

/// Why a text is not JSON, without a part of it.
pub fn not_json(error: &serde_json::Error) -> &'static str {
    if error.is_eof() {
        return "it is incomplete";
    }
    "it is not JSON"
}

/// A reader that fails once nothing is left.
struct Limited<'a, R> {
    reader: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let left = self.left.get().checked_sub(count as u64);
        self.left.set(left.ok_or(ErrorKind::FileTooLarge)?);
        Ok(count)
    }
}

struct List<'a> {
    names: Option<&'a [&'a str]>,
    left: &'a Cell<u64>,
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        loop {
            let left = self.left.get();
            let Some(entry) = list.next_element::<Box<RawValue>>()? else {
                return Ok(found);
            };
            let named = serde_json::from_str(entry.get());
            let is_wanted = |name: &str| self.names.is_none_or(|names| names.contains(&name));
            let is_object = entry.get().starts_with('{');
            if is_object && named.is_ok_and(|Named { name }| is_wanted(&name)) {
                // What is not kept does not count. What is read ahead counts once it is kept.
                self.left.set(left.saturating_sub(entry.get().len() as u64));
                found.push(serde_json::from_str(entry.get()).map_err(A::Error::custom)?);
            } else {
                self.left.set(left);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NAMES: Option<&[&str]> = Some(&["web", "ü"]);

    #[test]
    fn the_entries_with_a_wanted_name_are_kept() {
        let text = r#" [ {"Name":"a","x":[1,{"y":"]}"}]} , 12, null, "web", {"Name":1}, true, -1, 0.5,
            {"Id":1,"Name":"\u0077eb"},{"Name":"ü","Name2":-1.5e3}, {}, ["Name", "web"], 3] "#;
        assert_eq!(
            entries(&mut text.as_bytes(), NAMES).expect("a list"),
            [
                json!({"Id": 1, "Name": "web"}),
                json!({"Name": "ü", "Name2": -1.5e3}),
            ]
        );
        for empty in ["null", "[]"] {
            let found = entries(&mut empty.as_bytes(), NAMES).expect("a list");
            assert_eq!(found, [Value::Null; 0]);
        }
        let text = br#"[{"Name":"a"}, 12, {"Name":1}, {"Id":1}, {"Id":2,"Name":"web"}, ["Name"]]"#;
        let expected = [json!({"Name": "a"}), json!({"Id": 2, "Name": "web"})];
        assert_eq!(entries(&mut &text[..], None).expect("a list"), expected);
    }

    #[test]
    fn entries_that_do_not_match_may_hold_any_json() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for value in [&deep, "1e999", r#""\ud800""#, "\"\u{7f}\""] {
            let text = format!(r#"[{{"Name":"a","x":{value}}},{{"Name":"web"}},{deep}]"#);
            let found = entries(&mut text.as_bytes(), NAMES).expect("a list");
            assert_eq!(found, [json!({"Name": "web"})]);
        }
    }

    #[test]
    fn b12_one_entry_and_all_wanted_ones_have_a_size_limit() {
        let entry = |name| format!(r#"{{"Name":"{name}","x":"{}"}}"#, "x".repeat(100 << 10));
        let list = |name, count| format!("[{}]", vec![entry(name); count].join(","));
        let read = |list: String| entries_of(list.as_bytes(), NAMES, 300 << 10);
        assert_eq!(read(list("web", 2)).expect("a list").len(), 2);
        assert!(read(list("other", 20)).expect("a list").is_empty());
        let long = format!("[\"{}\"]", "x".repeat(400 << 10));
        for text in [list("web", 4), long] {
            assert!(matches!(read(text), Err(Error::Invalid(why)) if why.ends_with("too large")));
        }
    }

    #[test]
    fn other_texts_are_errors() {
        assert!(matches!(entries(&mut &b""[..], NAMES), Err(Error::Empty)));
        let objects = [r#"[{"Name":"web"}"#, r#"[{"Name":"web""#, r#"[{"Name":}]"#];
        let others = [
            " ", "{}", "1", "\"\"", "[", "[1", "[1,", "[1 2]", "[,]", "[1,]", "[1]]", "[1] x",
            "nul", "nullx", "null,", "[tru]", "<html>",
        ];
        for text in objects.iter().chain(&others) {
            assert!(entries(&mut text.as_bytes(), NAMES).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let _ = entries(&mut &bytes[..], NAMES);
        }
    }
}
