//! How values are written in `stack.env`, so that Compose reads them back (M08, N11).

use std::collections::HashMap;

use composefile::{dotenv, reader::Reader};

use crate::{model::Variable, rewrite::env::contract_env};

/// The `env` to send: the variables of `.env`, as `stack.env` needs them.
pub(super) fn payload(reader: &Reader<'_, '_>) -> Vec<Variable> {
    let kept = kept(reader.env_text.unwrap_or_default(), reader.env);
    let entries = reader.env.iter().zip(kept);
    entries
        .filter(|((name, _), _)| !name.is_empty())
        .map(|((name, value), kept)| Variable {
            name: name.clone(),
            value: kept.map_or_else(|| encoded(name, value), str::to_owned),
        })
        .collect()
}

/// The text after `NAME=` that Compose reads as `value`: without quotes if that is safe, else quoted as N11 needs.
pub fn encoded(name: &str, value: &str) -> String {
    if is_plain(value) && reads_as(name, value, value) {
        return value.to_owned();
    }
    quoted(value)
}

/// The present text of each variable of a `.env`, if it can stay: on a single line, without interpolation, and the
/// same for every Compose version.
fn kept<'t>(text: &'t str, values: &[(String, String)]) -> Vec<Option<&'t str>> {
    let mut written = HashMap::new();
    for whole in text.split('\n') {
        let line = whole.trim_end_matches('\r');
        if contract_env(line).variables.len() == 1
            && let Some((name, raw)) = line.split_once('=')
        {
            // Compose uses the last value of a name.
            written.insert(name, raw);
        }
    }
    let raw = |(name, value): &(String, String)| {
        let raw = *written.get(name.as_str())?;
        (may_stay(raw) && reads_as(name, raw, value)).then_some(raw)
    };
    values.iter().map(raw).collect()
}

fn may_stay(raw: &str) -> bool {
    if raw.starts_with('\'') {
        return raw.ends_with('\'') && !raw.contains(['\\', '\r']);
    }
    !raw.contains(['$', '#', '\\', '\r']) && raw.trim() == raw
}

fn is_plain(value: &str) -> bool {
    !value.contains(['$', '#', '\\', '\'', '"', '\n', '\r', '`']) && value.trim() == value
}

fn quoted(value: &str) -> String {
    let backslashes = value.len() - value.trim_end_matches('\\').len();
    // A backslash right before the closing quote would escape it.
    if !value.contains('\'') && backslashes.is_multiple_of(2) {
        return format!("'{value}'");
    }
    let escaped = value.replace('\\', r"\\").replace('$', r"\$");
    format!("\"{}\"", escaped.replace('"', "\\\""))
}

fn reads_as(name: &str, raw: &str, value: &str) -> bool {
    let line = format!("{name}={raw}\n");
    // The lookup answers every name, so that an accidental interpolation shows.
    dotenv::parse(&line, &|_| Some(format!("not {value}")))
        .is_ok_and(|read| matches!(&read[..], [(n, v)] if n == name && v == value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{encoded, kept};
    use composefile::dotenv;

    #[test]
    fn n11() {
        for (value, expected) in [
            ("plain value", "plain value"),
            ("", ""),
            ("a#b", "'a#b'"),
            ("x # y $HOME", "'x # y $HOME'"),
            ("l1\nl2", "'l1\nl2'"),
            ("it's \"$5\" \\", "\"it's \\\"\\$5\\\" \\\\\""),
            ("end\\", "\"end\\\\\""),
            (" x ", "' x '"),
            ("{\"a\":1}", "'{\"a\":1}'"),
        ] {
            assert_eq!(encoded("A", value), expected);
        }
    }

    #[test]
    fn safe_values_stay_as_written() {
        let text =
            "A=\"x y\"\nB='$1'\nC=x # c\nexport D=1\nE=1\nE='2'\nF: 3\nG=\"a\nb\"\nH=\"1\"H\n";
        let values = dotenv::parse(text, &|_| None).expect("read");
        assert_eq!(
            kept(text, &values),
            [
                Some("\"x y\""),
                Some("'$1'"),
                None,
                None,
                Some("'2'"),
                None,
                None,
                None
            ]
        );
    }

    proptest! {
        #[test]
        fn every_value_arrives(values in prop::collection::vec("([ -~\n\r\tä]|[\\\\'\"$#{}])*", 1..6)) {
            let line = |(at, value): (usize, &String)| format!("V{at}={}\n", encoded("V", value));
            let text: String = values.iter().enumerate().map(line).collect();
            let read = dotenv::parse(&text, &|_| None).expect("read");
            let found: Vec<_> = read.into_iter().map(|(_, value)| value).collect();
            prop_assert_eq!(found, values);
        }
    }
}
