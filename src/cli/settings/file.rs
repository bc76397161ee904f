//! Reads the files that settings name, and the settings files themselves.

use std::{
    collections::BTreeMap,
    fs::{File, Metadata},
    io::{self, Read as _},
    ops::Range,
    os::unix::fs::MetadataExt,
    path::Path,
};

use anyhow::Result;
use toml::de::{DeTable, DeValue};

use crate::{
    cli::options,
    disk::{self, Refused},
    failure::Failure,
    text::near,
};

/// The size limit of a file, in bytes.
const LONGEST: u64 = 64 * 1024;

/// The settings in a file by their keys: the line, and the value as text.
pub(super) type Values = BTreeMap<&'static str, (usize, String)>;

/// Reads the text of a file of secrets, which must be private. `what` is `header file`; `hint` says what it should be.
pub(in crate::cli) fn read_secret(what: &str, path: &Path, hint: &str) -> Result<String> {
    text_of(what, path, disk::open_secret(path), hint)
}

/// The text of a file that was opened.
fn text_of(
    what: &str,
    path: &Path,
    opened: io::Result<(File, Metadata)>,
    hint: &str,
) -> Result<String> {
    let read = opened.and_then(|(file, metadata)| {
        if metadata.len() > LONGEST {
            let why = format!("it is larger than {} KiB", LONGEST / 1024);
            return Err(io::Error::other(why));
        }
        io::read_to_string(file.take(LONGEST))
    });
    read.map_err(|error| {
        let hint = match Refused::of(&error) {
            Some(Refused::Exposed) => {
                format!("check its owner, then run `chmod 600 {}`", path.display())
            }
            _ => hint.to_owned(),
        };
        Failure::new(format!("failed to read the {what} {}", path.display()))
            .source(error)
            .hint(hint)
            .into()
    })
}

/// The text of a settings file and its settings by their keys; `None` if it does not exist.
pub(in crate::cli) fn settings_text(path: &Path) -> Result<Option<(String, Values)>> {
    let opened = match disk::open(path) {
        Err(error) if disk::is_absent(&error) => return Ok(None),
        opened => opened,
    };
    if let Ok((_, metadata)) = &opened
        && (!disk::is_ours(metadata) || metadata.mode() & 0o022 != 0)
    {
        let path = path.display();
        let what = format!(
            "refusing to read the settings file {path}: it must be a file that is owned by you or root and not writable by others"
        );
        let hint = format!("check its owner, then run `chmod go-w {path}`");
        return Err(Failure::new(what).hint(hint).into());
    }
    let hint =
        "it must be a UTF-8 text file that you can read; to write one, run `stacklift config init`";
    let text = text_of("settings file", path, opened, hint)?;
    let values = parse(path, &text)?;
    Ok(Some((text, values)))
}

/// Parses a settings file. The error does not quote the line, which may contain a misplaced API key (C56).
pub(in crate::cli) fn parse(path: &Path, text: &str) -> Result<Values, Failure> {
    let invalid = |place: Option<Range<usize>>, reason: &str, hint: String| {
        let line = place.map(|place| format!("line {}: ", line_of(text, &place)));
        let (path, line) = (path.display(), line.unwrap_or_default());
        Failure::new(format!(
            "cannot parse the settings file {path}: {line}{reason}"
        ))
        .hint(hint)
    };
    let (key, value) = (options::TIMEOUT.key, options::TIMEOUT.default);
    let example = || format!("expected lines such as: {key} = \"{value}\"");
    let table =
        DeTable::parse(text).map_err(|error| invalid(error.span(), error.message(), example()))?;
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut values = Values::new();
    for (key, value) in entries {
        let name: &str = key.get_ref();
        let Some(setting) = options::ALL.iter().find(|setting| setting.key == name) else {
            let reason = format!("unknown key `{name}`");
            return Err(invalid(Some(key.span()), &reason, near_key(name)));
        };
        let text_of_value = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(id) if setting.key == options::ENDPOINT.key => id.to_string(),
            _ => {
                let reason = format!("{name} must be a string in quotes");
                return Err(invalid(Some(value.span()), &reason, example()));
            }
        };
        values.insert(setting.key, (line_of(text, &key.span()), text_of_value));
    }
    Ok(values)
}

/// The line of a place in a text, from 1.
fn line_of(text: &str, place: &Range<usize>) -> usize {
    let before = text.get(..place.start).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// The valid keys, and the one that an unknown key probably misspells.
fn near_key(key: &str) -> String {
    let keys = options::ALL.map(|setting| setting.key);
    let meant = match near(key, keys).first() {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    format!("{meant}valid keys: {}", keys.join(", "))
}
