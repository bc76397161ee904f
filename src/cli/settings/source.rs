//! Where the value of a setting comes from, as `config` shows it and as `config --output json` prints it.

use std::{fmt, path::Path};

use schemars::JsonSchema;
use serde::Serialize;

use crate::finding::Finding;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
    pub(in crate::cli) const DEFAULT: Self = Self {
        kind: SourceKind::Default,
        name: None,
        line: None,
    };

    fn new(kind: SourceKind, name: String, line: Option<usize>) -> Self {
        let name = Some(name);
        Self { kind, name, line }
    }

    pub(super) fn flag(key: &str) -> Self {
        Self::new(SourceKind::Flag, format!("--{key}"), None)
    }

    pub(in crate::cli) fn variable(name: &str) -> Self {
        Self::new(SourceKind::Variable, name.to_owned(), None)
    }

    pub(super) fn file(path: &Path, line: usize) -> Self {
        Self::new(SourceKind::File, path.display().to_string(), Some(line))
    }

    pub(super) fn is_file(&self, path: &str) -> bool {
        self.kind == SourceKind::File && self.name.as_deref() == Some(path)
    }

    /// The setting `key` from this source, in an error.
    pub(super) fn of(&self, key: &str) -> String {
        let name = self.name.as_deref().unwrap_or("the default");
        match self.kind {
            SourceKind::File => format!("{key} in {name}"),
            _ => name.to_owned(),
        }
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

/// A setting.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct SettingEntry {
    /// The key in a settings file, and the name of the flag.
    pub name: &'static str,
    /// The value as text; null if there is none, or if it is invalid.
    pub value: Option<String>,
    pub source: Source,
    /// Why the value is invalid; null if it is valid.
    pub error: Option<Finding>,
}

/// A settings file.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct FileEntry {
    pub path: String,
    /// Whether something exists at this path.
    pub exists: bool,
    /// Why its settings are not used; null if they are, or if there is no file.
    pub error: Option<Finding>,
}
