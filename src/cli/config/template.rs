//! The text of a settings file with every setting, made from the settings and their help.

use std::{collections::BTreeMap, fmt::Write as _, ops::Range, path::Path};

use anyhow::Result;
use serde_json::Value;
use toml::de::DeTable;

use crate::cli::{
    options::{self, Setting},
    settings::parse_settings,
};

const HEADER: &str = "\
# Settings of stacklift. To change a setting, remove the # in front of it.
# Precedence: flags, environment variables, ~/.config/stacklift.toml, /etc/stacklift.toml.
# Show the settings and where they come from: stacklift config
# Check them: stacklift doctor
";

/// The text. Each setting is a comment, with its default.
pub(super) fn settings_file() -> String {
    let mut text = HEADER.to_owned();
    for setting in &options::ALL {
        let (help, key) = (setting.help, setting.key);
        let value = match setting.default {
            "" => setting.placeholder,
            default => default,
        };
        let value = toml(setting, value);
        // Writing to a String does not fail.
        let _ = write!(text, "\n# {help}\n#{key} = {value}\n");
    }
    text
}

/// The text of a settings file with these values. Everything else in it stays. A setting that is only in a comment takes the
/// place of that comment. Fails if the file cannot be parsed.
pub(super) fn edited(path: &Path, text: &str, values: &BTreeMap<&str, String>) -> Result<String> {
    parse_settings(path, text)?;
    let mut edited = text.to_owned();
    let given = options::ALL.iter();
    for (setting, value) in given.filter_map(|setting| Some((setting, values.get(setting.key)?))) {
        let line = format!("{} = {}", setting.key, toml(setting, value));
        let place = assignment(&edited, setting.key).or_else(|| comment(&edited, setting.key));
        if let Some(place) = place {
            edited.replace_range(place, &line);
        } else {
            if !edited.is_empty() && !edited.ends_with('\n') {
                edited.push('\n');
            }
            edited.extend([line.as_str(), "\n"]);
        }
    }
    Ok(edited)
}

/// The key and the value of a setting.
fn assignment(text: &str, key: &str) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let (key, value) = table.get_ref().get_key_value(key)?;
    Some(key.span().start..value.span().end)
}

/// The line with a setting as a comment, such as those of [`settings_file`].
fn comment(text: &str, key: &str) -> Option<Range<usize>> {
    // The line feed before a line has the place of the line in the text without the first one.
    let start = format!("\n{text}").find(&format!("\n#{key} = "))?;
    let line = text[start..].lines().next()?.trim_end();
    Some(start..start + line.len())
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
        let text = settings_file();
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
    fn a_file_is_edited_in_place() {
        let text = "# mine\ntool = \"podman\" # why\n#stacks-root = \"/opt/stacks\"\nendpoint = 2";
        let values = [
            ("tool", "docker"),
            ("stacks-root", "/srv"),
            ("endpoint", "7"),
            ("tls", "pin"),
        ];
        let values = values.map(|(key, value)| (key, value.to_owned())).into();
        let edited = |text: &str| super::edited(Path::new("x"), text, &values);
        assert_eq!(
            edited(text).expect("settings"),
            "# mine\ntool = \"docker\" # why\nstacks-root = \"/srv\"\nendpoint = 7\ntls = \"pin\"\n"
        );
        let once = edited(text).expect("settings");
        assert_eq!(edited(&once).expect("settings"), once);
        assert!(edited("other = 1\n").is_err());
    }

    #[test]
    fn a_value_is_read_as_it_was_given() {
        for (key, value) in [
            ("stacks-root", "/a b\"c\\d\u{7f}\n"),
            ("timeout", "20"),
            ("endpoint", "7"),
            ("endpoint", "auto"),
        ] {
            let values = BTreeMap::from([(key, value.to_owned())]);
            let text = edited(Path::new("x"), &settings_file(), &values).expect("settings");
            let table: toml::Table = toml::from_str(&text).expect("TOML");
            let read = match &table[key] {
                toml::Value::Integer(number) if key == "endpoint" => number.to_string(),
                other => other.as_str().expect("a string").to_owned(),
            };
            assert_eq!((read.as_str(), table.len()), (value, 1));
        }
    }
}
