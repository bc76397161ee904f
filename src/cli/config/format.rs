//! The format of the settings: what `--output json` prints. `docs/schemas/config-v1.json` is its schema.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::settings::Origin;

/// What `stacklift config --output json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift config --output json`")]
pub(in crate::cli) struct Config {
    /// The version of this format: 1.
    pub version: u32,
    /// Every setting that a flag, a variable and a settings file can give.
    pub settings: Vec<SettingEntry>,
    pub api_key: ApiKeyEntry,
    pub state_directory: StateDirectoryEntry,
    /// The settings files that were looked for. If several contain a setting, the first one takes precedence.
    pub files: Vec<FileEntry>,
}

/// A setting.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct SettingEntry {
    /// The key in a settings file, and the name of the flag.
    pub name: String,
    /// The value as text; null if there is none.
    pub value: Option<String>,
    pub source: Source,
    /// Why the value is invalid; null if it is valid.
    pub error: Option<String>,
}

/// The API key, without its value.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(in crate::cli) struct ApiKeyEntry {
    /// Whether there is a key.
    pub is_set: bool,
    /// Where the key comes from; null if no source names one.
    pub source: Option<Source>,
    /// Why it cannot be read.
    pub error: Option<String>,
}

/// The directory for snapshots.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct StateDirectoryEntry {
    /// Its absolute path; null if it is unknown.
    pub path: Option<String>,
    pub source: Source,
    /// Why it is unknown.
    pub error: Option<String>,
}

/// A settings file.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct FileEntry {
    pub path: String,
    /// Whether something exists at this path.
    pub exists: bool,
    /// Why its settings are not used; null if they are, or if there is no file.
    pub error: Option<String>,
}

/// Where a value comes from.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Source {
    pub kind: SourceKind,
    /// The flag, the variable, or the path of the file; null for a default.
    pub name: Option<String>,
    /// The line in the file, if it is known.
    pub line: Option<usize>,
}

/// The kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli) enum SourceKind {
    Flag,
    Variable,
    File,
    Default,
}

impl Source {
    pub(super) fn of(origin: &Origin) -> Self {
        let (kind, name, line) = match origin {
            Origin::Flag(key) => (SourceKind::Flag, Some(format!("--{key}")), None),
            Origin::Variable(name) => (SourceKind::Variable, Some((*name).to_owned()), None),
            Origin::File { path, line } => {
                (SourceKind::File, Some(path.display().to_string()), *line)
            }
            Origin::Default => (SourceKind::Default, None, None),
        };
        Self { kind, name, line }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or("default"))?;
        match self.line {
            Some(line) => write!(f, ", line {line}"),
            None => Ok(()),
        }
    }
}
