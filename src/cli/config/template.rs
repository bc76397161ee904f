//! The text of a settings file with every setting, made from the settings and their help.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use crate::cli::options::{self, Setting};

const HEADER: &str = "\
# Settings of stacklift. To change a setting, remove the # in front of it.
# Precedence: flags, environment variables, ~/.config/stacklift.toml, /etc/stacklift.toml.
# Show the settings and where they come from: stacklift config
# Check them: stacklift doctor
";

/// The text. A setting in `values` has that value; the others are comments with their defaults.
pub(super) fn settings_file(values: &BTreeMap<&str, String>) -> String {
    let mut text = HEADER.to_owned();
    for setting in &options::ALL {
        let (help, placeholder) = (setting.help, setting.placeholder);
        let (comment, value) = match values.get(setting.key) {
            Some(value) => ("", value.as_str()),
            None if setting.default.is_empty() => ("#", placeholder),
            None => ("#", setting.default),
        };
        let (key, value) = (setting.key, toml(setting, value));
        // Writing to a String does not fail.
        let _ = write!(text, "\n# {help}\n{comment}{key} = {value}\n");
    }
    text
}

/// The ID of an environment, or a quoted text.
fn toml(setting: &Setting, value: &str) -> String {
    if setting.key == options::ENDPOINT.key && value.parse::<i64>().is_ok() {
        return value.to_owned();
    }
    // TOML quotes like JSON, but does not allow this character.
    Value::from(value).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_a_comment_with_its_default() {
        let text = settings_file(&BTreeMap::new());
        assert!(
            text.lines()
                .all(|line| line.is_empty() || line.starts_with('#')),
            "{text}"
        );
        for setting in &options::ALL {
            assert!(text.contains(&format!("\n#{} = ", setting.key)), "{text}");
        }
        let mut keys = text.lines().filter(|line| line.starts_with("#base-url"));
        assert_eq!(keys.next(), Some("#base-url = \"https://localhost:9443\""));
    }

    #[test]
    fn a_value_is_read_as_it_was_given() {
        for (key, value) in [
            ("stacks-root", "/a b\"c\\d\u{7f}\n"),
            ("timeout", "20"),
            ("endpoint", "7"),
            ("endpoint", "auto"),
        ] {
            let text = settings_file(&BTreeMap::from([(key, value.to_owned())]));
            let table: toml::Table = toml::from_str(&text).expect("TOML");
            let read = match &table[key] {
                toml::Value::Integer(number) if key == "endpoint" => number.to_string(),
                other => other.as_str().expect("a string").to_owned(),
            };
            assert_eq!((read.as_str(), table.len()), (value, 1));
        }
    }
}
