//! Reads a JSON array of any length entry by entry and keeps the entries that are asked for by `Name`.
//!
//! Invariant: an error or a whole list, never a part of it. A list that ends early, or that something
//! follows, is an error.

use std::{
    fmt,
    io::{BufReader, Read},
};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::{Value, error::Category, value::RawValue};

const BUFFER: usize = 256 * 1024;

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
/// Fails where the text is not an array of JSON, or `reader` fails.
pub(super) fn entries(reader: impl Read, wanted: Wanted) -> serde_json::Result<Vec<Value>> {
    let reader = BufReader::with_capacity(BUFFER, reader);
    let mut json = serde_json::Deserializer::from_reader(reader);
    let found = json.deserialize_option(List(wanted))?;
    json.end().map(|()| found)
}

/// Why a text is not JSON, without a part of it.
pub(super) fn not_json(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        Category::Eof => "it is incomplete",
        Category::Data => "expected a list of stacks",
        Category::Syntax | Category::Io => "it is not JSON",
    }
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "Name", default)]
    name: Value,
}

struct List<'a>(Wanted<'a>);

impl<'de> Visitor<'de> for List<'_> {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of stacks")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(text) = entries.next_element::<Box<RawValue>>()? {
            // Most entries are of other stacks: only the name of each is read.
            let name = serde_json::from_str::<Named>(text.get());
            if !text.get().starts_with('{') || name.is_ok_and(|entry| !self.0.has(&entry.name)) {
                continue;
            }
            let entry: Value = serde_json::from_str(text.get()).map_err(A::Error::custom)?;
            if self.0.has(&entry["Name"]) {
                found.push(entry);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::json;

    use super::*;

    const NAMES: [&str; 2] = ["web", "ü"];

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
        let found = entries(Drip(text, step), Wanted::Named(&NAMES));
        found.map_err(|error| error.to_string())
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
