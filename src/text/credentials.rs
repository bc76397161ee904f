//! Hides the credentials of URLs.

use std::borrow::Cow;

/// What ends a URL.
const ENDS: [char; 7] = [' ', '\t', '\n', '"', '\'', '<', '>'];

/// `text` with the user, the password and the query of every URL in it replaced by `***`.
pub fn without_credentials(text: &str) -> String {
    let hidden = replace_credentials(text, |_| super::HIDDEN.to_owned());
    let words = hidden.split_inclusive(ENDS).map(|word| {
        let (url, end) = word.split_at(word.trim_end_matches(ENDS).len());
        match url.split_once('?') {
            Some((start, _)) if start.contains("://") => [start, "?", super::HIDDEN, end].concat(),
            _ => word.to_owned(),
        }
    });
    words.collect()
}

/// `text` with the user and the password of every URL in it replaced.
pub fn replace_credentials(text: &str, shown_of: impl Fn(&str) -> String) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '<' | '>');
        let authority = &after[..after.find(ends).unwrap_or(after.len())];
        shown.push_str(before);
        rest = after;
        if let Some(at) = authority.rfind('@') {
            shown.push_str(&shown_of(&authority[..at]));
            rest = &after[at..];
        }
    }
    if shown.is_empty() {
        return Cow::Borrowed(text);
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_passwords_and_queries_of_urls_are_hidden() {
        for (text, expected) in [
            ("https://user:p@ss@host/a@b", "https://***@host/a@b"),
            ("https://token@host", "https://***@host"),
            (
                "git clone https://a:b@h/x: failed, then ssh://git@h.",
                "git clone https://***@h/x: failed, then ssh://***@h.",
            ),
            ("https://host/x?a=b@c", "https://host/x?***"),
            (
                "Get \"http://h?token=://a#b\": no. Is it http://h/ ? Or http://a@h?b",
                "Get \"http://h?***\": no. Is it http://h/ ? Or http://***@h?***",
            ),
            ("git@host:a/b", "git@host:a/b"),
            ("://@", "://***@"),
            ("", ""),
        ] {
            assert_eq!(without_credentials(text), expected);
        }
    }
}
