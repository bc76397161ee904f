//! Reads the list of Portainer's stacks entry by entry, however long it is, and keeps those that are asked for by name.
//!
//! Invariant: an error or a whole list, never a part of it. A list that ends early, or that something follows, is an error.

use std::{
    fmt,
    io::{BufReader, Read},
};

use serde::{
    Deserialize, Deserializer as _,
    de::{Error, SeqAccess, Visitor},
};
use serde_json::{Deserializer, Value, value::RawValue};

/// The size limit of a list, in bytes: a longer one ends early (B12). 100,000 stacks are 52 MB.
pub(super) const LARGEST_LIST: u64 = 256 << 20;

/// What is read first of an entry.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    name: String,
}

/// The entries whose `Name` is one of these, or any text.
struct Wanted<'a>(Option<&'a [&'a str]>);

/// The entries of a list whose `Name` is one of `names`, or any text, in order. `null` is an empty list. An entry that is not
/// an object, or whose `Name` is not a string, is never kept.
///
/// Fails where the text is not an array of JSON, or `reader` fails.
pub(super) fn entries(
    reader: impl Read,
    names: Option<&[&str]>,
) -> Result<Vec<Value>, serde_json::Error> {
    let reader = BufReader::with_capacity(64 << 10, reader.take(LARGEST_LIST));
    let mut json = Deserializer::from_reader(reader);
    let found = json.deserialize_any(Wanted(names))?;
    json.end().map(|()| found)
}

impl<'de> Visitor<'de> for Wanted<'_> {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of stacks")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(entry) = list.next_element::<Box<RawValue>>()? {
            let is_object = entry.get().starts_with('{');
            let named = serde_json::from_str(entry.get());
            let is_wanted = |name: &str| self.0.is_none_or(|names| names.contains(&name));
            if is_object && named.is_ok_and(|Named { name }| is_wanted(&name)) {
                found.push(serde_json::from_str(entry.get()).map_err(A::Error::custom)?);
            }
        }
        Ok(found)
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
            entries(text.as_bytes(), NAMES).expect("a list"),
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
        assert_eq!(entries(&text[..], None).expect("a list"), expected);
    }

    #[test]
    fn entries_that_do_not_match_may_hold_any_json() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for value in [&deep, "1e999", r#""\ud800""#, "\"\u{7f}\""] {
            let text = format!(r#"[{{"Name":"a","x":{value}}},{{"Name":"web"}},{deep}]"#);
            let found = entries(text.as_bytes(), NAMES).expect("a list");
            assert_eq!(found, [json!({"Name": "web"})]);
        }
    }

    #[test]
    fn other_texts_are_errors() {
        let objects = [r#"[{"Name":"web"}"#, r#"[{"Name":"web""#, r#"[{"Name":}]"#];
        let others = [
            "", " ", "{}", "1", "\"\"", "[", "[1", "[1,", "[1 2]", "[,]", "[1,]", "[1]]", "[1] x",
            "nul", "nullx", "null,", "[tru]", "<html>",
        ];
        for text in objects.iter().chain(&others) {
            assert!(entries(text.as_bytes(), NAMES).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let _ = entries(&bytes[..], NAMES);
        }
    }
}
