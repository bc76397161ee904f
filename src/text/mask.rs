//! Hides the values of `.env` in text that Portainer or Compose returns (C55, B13).

use std::{cmp::Reverse, collections::BTreeSet, ops::Range};

use serde_json::{Value, json};

use super::{percent_encoded, replace_credentials};

/// What is shown in place of a value.
pub const HIDDEN: &str = "***";
/// Shorter values stay visible: hiding them would hide ordinary words. In characters.
const SHORTEST: usize = 8;
/// The shortest line of a multi-line value that is hidden on its own, in characters.
const SHORTEST_LINE: usize = 4;
const QUOTES: [char; 2] = ['"', '\''];

/// The values to hide. Its `Debug` output shows none of them.
#[derive(Clone, Default)]
pub struct Mask {
    secrets: Vec<Secret>,
}

impl Mask {
    /// Hides each of `values` that has at least eight characters, with or without its quotes. Hides each line of a
    /// multi-line value as well, if the line has at least four characters, and the parts of a quoted value that contains its
    /// quote: what follows that quote is a name to Compose.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hidden: Vec<&str> = Vec::new();
        for value in values {
            let bare = value.trim();
            let quote = bare.chars().next().filter(|first| QUOTES.contains(first));
            let parts = quote.map(|quote| bare.split(quote)).into_iter().flatten();
            for text in [value, bare, bare.trim_matches(QUOTES)]
                .into_iter()
                .chain(parts)
            {
                if text.chars().count() < SHORTEST {
                    continue;
                }
                hidden.push(text);
                if text.contains('\n') {
                    let lines = text.lines().map(str::trim);
                    hidden.extend(lines.filter(|line| line.chars().count() >= SHORTEST_LINE));
                }
            }
        }
        hidden.sort_unstable();
        hidden.dedup();
        Self {
            secrets: hidden.into_iter().map(Secret::new).collect(),
        }
    }

    /// `text` with every value hidden, also where it is escaped, and without the credentials of URLs.
    pub fn hide(&self, text: &str) -> String {
        let hidden = self.hide_unless(text, |_, _| false);
        replace_credentials(&hidden, |_| HIDDEN.to_owned()).into_owned()
    }

    /// `text` with every value hidden, also where it is escaped, unless it `stays` at its place. The second argument says whether it
    /// is a path, or a few words such as `postgres` or `Europe/Berlin`.
    pub fn hide_unless(&self, text: &str, stays: impl Fn(&Range<usize>, bool) -> bool) -> String {
        let mut places: Vec<Range<usize>> = Vec::new();
        for secret in &self.secrets {
            let found = secret
                .forms
                .iter()
                .flat_map(|form| text.match_indices(form));
            let found = found.map(|(start, form)| start..start + form.len());
            places.extend(found.filter(|place| !stays(place, secret.is_plain)));
        }
        places.sort_by_key(|place| (place.start, Reverse(place.end)));
        let (mut shown, mut done) = (String::new(), 0);
        for span in places {
            // Of values that overlap, nothing stays visible.
            if span.start >= done {
                shown.push_str(&text[done..span.start]);
                shown.push_str(HIDDEN);
            }
            done = done.max(span.end);
        }
        shown + &text[done..]
    }

    /// A response body for display, with every value hidden: formatted if it is JSON, otherwise unchanged.
    pub fn hide_body(&self, body: &[u8]) -> String {
        match serde_json::from_slice::<Value>(body) {
            Ok(mut json) => {
                self.hide_json(&mut json);
                serde_json::to_string_pretty(&json).unwrap_or_default()
            }
            Err(_) => self.hide(&String::from_utf8_lossy(body)),
        }
    }

    // serde_json limits the nesting depth, and with it this recursion.
    fn hide_json(&self, json: &mut Value) {
        match json {
            Value::String(text) => *text = self.hide(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_json(item)),
            Value::Object(fields) => {
                let hidden = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                    self.hide_json(&mut value);
                    (self.hide(&key), value)
                });
                *fields = hidden.collect();
            }
            Value::Number(number) => {
                if self.hide(&number.to_string()) == HIDDEN {
                    *json = Value::String(HIDDEN.to_owned());
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask({} values)", self.secrets.len())
    }
}

/// A text to hide.
#[derive(Clone)]
struct Secret {
    /// The text itself, with its `$` doubled as in a Compose file, with its quotes doubled as in YAML, and as a part of a URL, each
    /// also in JSON, as serde and as Go write it.
    forms: BTreeSet<String>,
    is_plain: bool,
}

impl Secret {
    fn new(text: &str) -> Self {
        let in_url = percent_encoded(text);
        let mut forms = BTreeSet::from([
            text.to_owned(),
            text.replace('$', "$$"),
            text.replace('\'', "''"),
            in_url.replace("%20", "+"),
            in_url,
        ]);
        for form in forms.clone() {
            let quoted = json!(form).to_string();
            let json = &quoted[1..quoted.len() - 1];
            let escapes = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")];
            let escape = |text: String, (c, escape)| text.replace(c, escape);
            forms.extend([
                json.to_owned(),
                escapes.into_iter().fold(json.to_owned(), escape),
            ]);
        }
        Self {
            forms,
            is_plain: is_plain(text),
        }
    }
}

/// Whether a value is a path, or short and made of words and small numbers: it may occur in other words and names.
fn is_plain(value: &str) -> bool {
    let is_word = |part: &str| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let lower = letters.chars().skip(1).all(|c| c.is_ascii_lowercase());
        let upper = letters.chars().all(|c| c.is_ascii_uppercase());
        let starts = letters.chars().take(1).all(|c| c.is_ascii_alphabetic());
        let digits = if letters.is_empty() { 4 } else { 2 };
        part.len() - letters.len() <= digits && starts && (lower || upper)
    };
    let roots = ["/", "./", "../", "~/"];
    let is_path =
        roots.iter().any(|root| value.starts_with(root)) && !value.contains(['+', '=', ':', '@']);
    let mut words = value.split(['/', '.', '-', '_', ':', ' ']);
    is_path || (value.len() < 2 * SHORTEST && words.all(is_word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hides_values_of_eight_characters_or_more() {
        let mask = Mask::new([
            "\"quoted-secret\"",
            "short",
            "12345678",
            "quoted-secret-longer",
        ]);
        assert_eq!(
            mask.hide("short quoted-secret quoted-secret-longer"),
            "short *** ***"
        );
        assert_eq!(
            mask.hide_body(br#"{"message":"bad quoted-secret","n":12345678}"#),
            "{\n  \"message\": \"bad ***\",\n  \"n\": \"***\"\n}"
        );
        assert_eq!(mask.hide_body(b"not json 12345678"), "not json ***");
        assert_eq!(format!("{mask:?}"), "Mask(4 values)");
    }

    #[test]
    fn b34_a_plain_value_is_a_path_or_a_few_words() {
        for (value, expected) in [
            ("postgres", true),
            ("Europe/Berlin", true),
            ("immich_db-2", true),
            ("192.168.1.10", true),
            ("./library", true),
            ("/mnt/Tank2/ISOs/of all years", true),
            ("12345678", false),
            ("summer2024", false),
            ("correct-horse-battery", false),
            ("hUnTeRhunter", false),
            ("a1b2c3d4", false),
            ("/9j4AAQSk+ZJRg==", false),
            ("//user:password@host/share", false),
        ] {
            assert_eq!(is_plain(value), expected, "{value}");
        }
    }

    #[test]
    fn b13_nothing_stays_of_values_that_overlap() {
        let mask = Mask::new(["secret-one", "one-secret", "secret-one-long"]);
        assert_eq!(mask.hide("<secret-one-secret>"), "<***>");
        assert_eq!(mask.hide("secret-one-long secret-one"), "*** ***");
    }

    #[test]
    fn b13_hides_the_lines_of_a_value() {
        let mask = Mask::new(["\"first line\nabc\n  four\r\nlast\""]);
        for (text, hidden) in [
            ("near \"first line\"", "near ***\""),
            ("abc four last", "abc *** ***"),
            ("first line\nabc\n  four\r\nlast", "***"),
            (r"first line\nabc\n  four\r\nlast", "***"),
        ] {
            assert_eq!(mask.hide(text), hidden, "{text}");
        }
        let quoted = Mask::new(["\"first\"second part\""]);
        assert_eq!(quoted.hide(r#"name "second part\""#), r#"name "***\""#);
        // The whole value is too short.
        assert_eq!(Mask::new(["abcd\nef"]).hide("abcd"), "abcd");
    }

    #[test]
    fn b13_hides_escaped_values() {
        let mask = Mask::new(["p\"a's$w <ö>&/\\x"]);
        for text in [
            r#"p"a's$w <ö>&/\x"#,
            // JSON, Compose, and both.
            r#"p\"a's$w <ö>&/\\x"#,
            r#"p\"a's$w \u003cö\u003e\u0026/\\x"#,
            r#"p"a's$$w <ö>&/\x"#,
            r#"p\"a's$$w <ö>&/\\x"#,
            // YAML and URLs.
            r#"p"a''s$w <ö>&/\x"#,
            "p%22a%27s%24w+%3C%C3%B6%3E%26%2F%5Cx",
            "p%22a%27s%24w%20%3C%C3%B6%3E%26%2F%5Cx",
        ] {
            assert_eq!(mask.hide(&format!("<{text}>")), "<***>", "{text}");
        }
    }

    proptest! {
        #[test]
        fn b13_no_form_of_a_value_stays(
            value in "[a-c\"'$\\\\ \n\t<&%é\u{1f600}]{8,12}",
            before in "[a-c\"'$\\\\ \n<&%é]{0,4}",
        ) {
            let json = serde_json::to_string(&value).expect("JSON");
            let mask = Mask::new([value.as_str()]);
            for escaped in [
                value.clone(),
                json[1..json.len() - 1].to_owned(),
                value.replace('$', "$$"),
            ] {
                let hidden = mask.hide(&format!("{before}|{escaped}|"));
                prop_assert!(hidden.contains(HIDDEN), "{escaped} in {hidden}");
            }
        }
    }
}
