//! Quoting for a shell.

use std::borrow::Cow;

/// `stacklift` with these arguments, quoted for a shell.
pub fn command(arguments: &[&str]) -> String {
    let words = ["stacklift"].iter().chain(arguments);
    let words: Vec<_> = words.map(|word| shell_word(word)).collect();
    words.join(" ")
}

/// A text as one word of a shell command, in POSIX shells and in fish.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    // In fish, single quotes do not make these literal.
    if text.contains(['\\', '\'']) && !text.contains('\0') {
        let words = text.chars().map(|c| match c {
            '\\' | '\'' => format!("'\\{c}'"),
            _ => c.to_string(),
        });
        return Cow::Owned(format!("'{}'", words.collect::<String>()));
    }
    // Only a NUL cannot be quoted, and no argument or path contains one.
    shlex::try_quote(text).unwrap_or(Cow::Borrowed("''"))
}

/// Names as the last words of a shell command. One that begins with `-` does not become an option (B45).
pub fn operands(names: &[&str]) -> String {
    let words: Vec<_> = names.iter().map(|name| shell_word(name)).collect();
    let mark = if names.iter().any(|name| name.starts_with('-')) {
        "-- "
    } else {
        ""
    };
    format!("{mark}{}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b45_a_name_is_no_option() {
        assert_eq!(operands(&["web", "a b"]), "web 'a b'");
        assert_eq!(operands(&["web", "--pull"]), "-- web --pull");
    }

    #[test]
    fn a_word_is_the_same_in_every_shell() {
        for (text, word) in [
            ("books-db", "books-db"),
            ("a b", "'a b'"),
            ("$(x)", "'$(x)'"),
            ("it's", r"'it'\''s'"),
            (r"a\'; x", r"'a'\\''\''; x'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
            assert_eq!(shlex::split(word), Some(vec![text.to_owned()]));
        }
    }
}
