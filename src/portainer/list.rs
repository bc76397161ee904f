//! Reads a JSON array of any length entry by entry and keeps the entries that are asked for by `Name`.
//!
//! Invariant: an error or a whole list, never a part of it. A list that ends early, or that something
//! follows, is an error.

use std::{
    fmt,
    io::{self, ErrorKind, Read},
};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value, de::SliceRead};

/// The size limits, in bytes (B12).
const LIMITS: Limits = Limits {
    buffer: 256 * 1024,
    entry: 64 * 1024 * 1024,
    list: 1024 * 1024 * 1024,
};

#[derive(Clone, Copy)]
struct Limits {
    /// Of the text that is kept. It doubles for a larger entry.
    buffer: usize,
    /// Of one entry, and of all wanted entries together.
    entry: usize,
    list: usize,
}

/// Why a list cannot be read.
#[derive(Debug)]
pub(super) enum Error {
    /// There is no text.
    Empty,
    /// The text is not an array of JSON, or it is too large.
    Invalid(Box<dyn std::error::Error + Send + Sync>),
    /// The reader failed.
    Read(io::Error),
}

/// Which entries of a list are kept. An entry that is not an object, or whose `Name` is not a string, is never kept.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// Those whose `Name` is one of these.
    Named(&'a [&'a str]),
    All,
}

impl Wanted<'_> {
    fn has(self, name: &Value) -> bool {
        match (name.as_str(), self) {
            (Some(name), Self::Named(names)) => names.contains(&name),
            (name, Self::All) => name.is_some(),
            (None, Self::Named(_)) => false,
        }
    }
}

/// The wanted entries of a list, in order. `null` is an empty list.
///
/// Fails where the text is not an array of JSON, an entry or all wanted entries are larger than 64 MiB, the list is
/// larger than 1 GiB, or `reader` fails.
pub(super) fn entries(reader: impl Read, wanted: Wanted) -> Result<Vec<Value>, Error> {
    limited_entries(reader, wanted, LIMITS)
}

fn limited_entries(reader: impl Read, wanted: Wanted, limits: Limits) -> Result<Vec<Value>, Error> {
    let mut text = Text {
        reader,
        buffer: vec![0; limits.buffer],
        start: 0,
        end: 0,
        is_read: false,
        limits,
    };
    let mut found = Vec::new();
    match text.peek()? {
        None => return Err(Error::Empty),
        Some(b'[') => text.start += 1,
        Some(_) => {
            return match text.parse(|json| Option::<IgnoredAny>::deserialize(json))? {
                None => text.end().map(|()| found),
                Some(_) => Err(invalid("expected a list of stacks")),
            };
        }
    }
    let mut left = limits.entry;
    let mut is_over = text.peek()? == Some(b']');
    while !is_over {
        if let Some(entry) = text.parse(|json| Entry { wanted }.deserialize(json))? {
            let too_many = || {
                invalid(match wanted {
                    Wanted::Named(_) => "too many entries have the name of the stack",
                    Wanted::All => "the entries are too large",
                })
            };
            left = left
                .checked_sub(entry.to_string().len())
                .ok_or_else(too_many)?;
            found.push(entry);
        }
        match text.peek()? {
            Some(b',') => text.start += 1,
            Some(b']') => is_over = true,
            _ => return Err(invalid("expected `,` or `]` after an entry")),
        }
    }
    text.start += 1;
    text.end().map(|()| found)
}

/// Why a text is not JSON, without a part of it.
pub(super) fn not_json(error: &serde_json::Error) -> &'static str {
    if error.is_eof() {
        return "it is incomplete";
    }
    "it is not JSON"
}

fn invalid(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Invalid(reason.into())
}

/// The text that was read and not parsed yet: `serde_json` is several times faster on a slice than on a reader.
struct Text<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether nothing follows.
    is_read: bool,
    /// What may still be read.
    limits: Limits,
}

impl<R: Read> Text<R> {
    /// Parses a value. A value that ends with the buffer may be a part of one: it is parsed again with more text.
    fn parse<T>(
        &mut self,
        parse: impl Fn(&mut serde_json::Deserializer<SliceRead>) -> serde_json::Result<T>,
    ) -> Result<T, Error> {
        loop {
            let text = &self.buffer[self.start..self.end];
            let mut json = serde_json::Deserializer::from_slice(text);
            let value = parse(&mut json);
            let length = json.into_iter::<IgnoredAny>().byte_offset();
            if length < text.len() || self.is_read {
                self.start += length;
                return value.map_err(|error| invalid(not_json(&error)));
            }
            self.read()?;
        }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Result<Option<u8>, Error> {
        loop {
            let text = &self.buffer[self.start..self.end];
            let is_space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
            if let Some(at) = text.iter().position(|byte| !is_space(byte)) {
                self.start += at;
                return Ok(Some(self.buffer[self.start]));
            }
            self.start = self.end;
            if self.is_read {
                return Ok(None);
            }
            self.read()?;
        }
    }

    /// Fails if anything but white space follows.
    fn end(mut self) -> Result<(), Error> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(invalid("trailing characters")),
        }
    }

    /// Fills the buffer, or reads to the end.
    fn read(&mut self) -> Result<(), Error> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end >= self.limits.entry {
            return Err(invalid("an entry is too large"));
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        while self.end < self.buffer.len() && !self.is_read {
            let count = match self.reader.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.map_err(Error::Read)?,
            };
            self.end += count;
            self.is_read = count == 0;
            let left = self.limits.list.checked_sub(count);
            self.limits.list = left.ok_or_else(|| invalid("the list is too large"))?;
        }
        Ok(())
    }
}

/// Reads one entry; `None` where it is not wanted.
#[derive(Clone, Copy)]
struct Entry<'a> {
    wanted: Wanted<'a>,
}

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entry<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    // Portainer writes `Name` second, so little is kept of an entry before it is known not to match.
    fn visit_map<A: MapAccess<'de>>(self, mut entry: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = entry.next_key::<String>()? {
            let value: Value = entry.next_value()?;
            if key == "Name" && !self.wanted.has(&value) {
                while entry.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            fields.insert(key, value);
        }
        Ok(fields.contains_key("Name").then_some(Value::Object(fields)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NAMES: [&str; 2] = ["web", "ü"];
    const BUFFER: usize = 1024;

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

    fn read(text: &[u8], step: usize) -> Result<Vec<Value>, String> {
        // So small a buffer cuts the text as well.
        let limits = Limits {
            buffer: step.min(LIMITS.buffer),
            ..LIMITS
        };
        let found = limited_entries(Drip(text, step), Wanted::Named(&NAMES), limits);
        found.map_err(|error| format!("{error:?}"))
    }

    /// What `serde_json` finds in the whole text.
    fn expected(text: &[u8]) -> Option<Vec<Value>> {
        let list: Option<Vec<Value>> = serde_json::from_slice(text).ok()?;
        let is_match = |entry: &Value| entry["Name"].as_str().is_some_and(|n| NAMES.contains(&n));
        Some(list.into_iter().flatten().filter(is_match).collect())
    }

    #[test]
    fn entries_are_found_however_the_text_is_cut() {
        let text = r#" [ {"Name":"a","x":[1,{"y":"]}"}]} , 12, null, "web", {"Name":1}, true, -1, 0.5,
            {"Id":1,"Name":"\u0077eb"},{"Name":"web","Name2":-1.5e3}, {}, ["Name", "web"], 3] "#;
        for step in [1, 2, 7, 64, 100_000] {
            let found = read(text.as_bytes(), step).expect("a list");
            let expected = [
                json!({"Id": 1, "Name": "web"}),
                json!({"Name": "web", "Name2": -1.5e3}),
            ];
            assert_eq!(found, expected, "step {step}");
            assert_eq!(read(b"null", step), Ok(Vec::new()));
            assert_eq!(read(b"[]", step), Ok(Vec::new()));
        }
    }

    #[test]
    fn all_entries_with_a_name_can_be_kept() {
        let text =
            br#"[{"Name":"a"}, 12, null, {"Name":1}, {"Id":1}, {"Id":2,"Name":"web"}, ["Name"]]"#;
        let found = entries(&text[..], Wanted::All).expect("a list");
        assert_eq!(
            found,
            [json!({"Name": "a"}), json!({"Id": 2, "Name": "web"})]
        );
    }

    #[test]
    fn entries_that_do_not_match_may_hold_any_json() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for value in [&deep, "1e999", r#""\ud800""#, "\"\u{7f}\""] {
            let text = format!(r#"[{{"Name":"a","x":{value}}},{{"Name":"web"}}]"#);
            let found = read(text.as_bytes(), 1000).expect("a list");
            assert_eq!(found, [json!({"Name": "web"})]);
        }
        assert_eq!(read(deep.as_bytes(), 1000), Ok(Vec::new()));
        assert_eq!(
            read(b"[{\"Name\":\"a\",\"x\":\"\xff\"}]", 1),
            Ok(Vec::new())
        );
    }

    #[test]
    fn b12_entries_and_the_list_have_a_size_limit() {
        let limits = Limits {
            buffer: BUFFER,
            entry: 4 * BUFFER,
            list: 10 * BUFFER,
        };
        let read = |text: &str| limited_entries(text.as_bytes(), Wanted::Named(&NAMES), limits);
        let padded = |length| format!("{{\"Name\":\"web\",\"x\":{}1}}", " ".repeat(length));
        let list = |length, count| format!("[{}]", vec![padded(length); count].join(","));
        assert_eq!(read(&list(2 * BUFFER, 4)).expect("a list").len(), 4);
        let long = format!("[{{\"Name\":\"web\",\"x\":\"{}\"}}]", "x".repeat(BUFFER));
        assert_eq!(read(&long).expect("a list").len(), 1);
        let long = long.trim_matches(['[', ']']);
        for (text, reason) in [
            (list(4 * BUFFER, 1), "an entry is too large"),
            (list(2 * BUFFER, 6), "the list is too large"),
            (format!("[{}]", [long; 5].join(",")), "too many entries"),
        ] {
            let error = read(&text).expect_err(reason);
            assert!(format!("{error:?}").contains(reason), "{error:?}");
        }
    }

    #[test]
    fn other_texts_are_errors() {
        for text in [
            "",
            " ",
            "{}",
            "1",
            "\"\"",
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
                assert!(read(text.as_bytes(), step).is_err(), "{text:?}");
            }
        }
    }

    /// A few tokens in any order: seldom JSON, often nearly.
    fn soup() -> impl Strategy<Value = Vec<u8>> {
        let token = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\"a\"",
            "\"a\":",
            "\\",
            "\\u",
            "00e9",
            "1",
            "0",
            "-",
            ".",
            "e",
            "null",
            "true",
            " ",
            "\n",
            "abcdefgh",
            "é",
            "\"Name\":\"web\"",
            "\u{7f}",
        ]);
        prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat().into_bytes())
    }

    fn name() -> impl Strategy<Value = Value> {
        prop_oneof![
            3 => prop::sample::select(vec!["web", "ü", "Web", "other", ""]).prop_map(Value::from),
            1 => any::<i64>().prop_map(Value::from),
            1 => Just(Value::Null),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            name(),
            any::<u64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[A-Za-z]{0,4}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// An object with a `Name` anywhere in it, or any other value.
    fn entry() -> impl Strategy<Value = Value> {
        let fields = prop::collection::vec(("[A-Z][a-z]{0,2}", value()), 0..4);
        let named = (fields, name(), any::<prop::sample::Index>()).prop_map(|(rest, name, at)| {
            let mut fields = rest;
            fields.insert(at.index(fields.len() + 1), ("Name".to_owned(), name));
            Value::Object(fields.into_iter().collect())
        });
        prop_oneof![3 => named, 1 => value()]
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json_over_the_whole(
            list in prop::collection::vec(entry(), 0..6),
            pretty: bool,
            step in 1_usize..70,
        ) {
            let list = Value::from(list);
            let text = if pretty { format!("{list:#}") } else { list.to_string() };
            prop_assert_eq!(read(text.as_bytes(), step).ok(), expected(text.as_bytes()));
        }

        #[test]
        fn takes_nothing_but_json(tokens in soup(), step in 1_usize..20) {
            for text in [tokens.clone(), [b"[", &tokens[..], b"]"].concat()] {
                let found = read(&text, step);
                prop_assert_eq!(&found, &read(&text, usize::MAX), "the cut matters");
                let is_list = serde_json::from_slice::<Option<Vec<IgnoredAny>>>(&text).is_ok();
                prop_assert!(is_list || found.is_err());
                if let Some(expected) = expected(&text) {
                    prop_assert_eq!(found, Ok(expected));
                }
            }
        }

        #[test]
        fn takes_any_bytes(bytes: Vec<u8>, step in 1_usize..70) {
            prop_assert_eq!(read(&bytes, step), read(&bytes, usize::MAX));
        }
    }
}
