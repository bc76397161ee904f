//! `stacklift config`: every setting, its value and where it comes from.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Cli, Common, Console, Ended,
    arguments::{ConfigAction, ConfigArguments},
    columns::{pad, width},
    options,
    settings::{
        API_KEY, FileEntry, KeySource, STATE_DIR, SettingEntry, Source, Sourced, api_key_is_given,
        state_folder,
    },
    style::Meaning,
    table::plain,
};

use crate::{failure::Failure, finding::Finding, report::VERSION};

mod init;
mod template;

/// What `stacklift config --output json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift config --output json`")]
pub(super) struct Config {
    /// The version of this format: 1.
    pub version: u32,
    /// Every setting that a flag, a variable and a settings file can give.
    pub settings: Vec<SettingEntry>,
    pub api_key: ApiKeyEntry,
    pub state_directory: StateDirectoryEntry,
    /// The settings files that were looked for. If several contain a setting, the first one takes precedence.
    pub files: Vec<FileEntry>,
}

/// The API key, without its value.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct ApiKeyEntry {
    /// Whether there is a key.
    pub is_set: bool,
    /// Where the key comes from; null if no source names one.
    pub source: Option<Source>,
    /// Why it cannot be read.
    pub error: Option<Finding>,
}

/// The directory for snapshots.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StateDirectoryEntry {
    /// Its absolute path; null if it is unknown.
    pub path: Option<String>,
    pub source: Source,
    /// Why it is unknown.
    pub error: Option<Finding>,
}

pub(super) fn run(arguments: &ConfigArguments, cli: Cli) -> Result<(), Ended> {
    let Cli { common, console } = cli;
    if let Some(ConfigAction::Init(arguments)) = &arguments.action {
        return Ok(init::run(*arguments, cli)?);
    }
    let sourced = Sourced::load(common);
    let config = Config {
        version: VERSION,
        api_key: api_key(&sourced.entries, common, console),
        state_directory: state_directory(),
        settings: sourced.entries,
        files: sourced.files,
    };
    console.result(arguments.output, &config, show)?;
    let of_files = config.files.iter().map(|file| &file.error);
    let of_settings = config.settings.iter().map(|setting| &setting.error);
    let others = [&config.api_key.error, &config.state_directory.error];
    let problems = of_files.chain(of_settings).chain(others).flatten();
    let mut code = 0;
    for problem in problems {
        console.error(&Failure::from(problem).into(), None);
        code = 1;
    }
    Ended::verdict(code)
}

/// Where the API key comes from. Reads it, to mask it and to report a file that cannot be used.
fn api_key(entries: &[SettingEntry], common: &Common, console: &Console) -> ApiKeyEntry {
    let key = options::API_KEY_FILE.key;
    let file = entries.iter().find(|entry| entry.name == key);
    let flag = common.value(key);
    let path = flag.or(file.and_then(|entry| entry.value.as_deref()));
    let source = match file {
        // A missing key is not an invalid setting: some commands need none.
        _ if path.is_none() && !api_key_is_given() => return ApiKeyEntry::default(),
        Some(file) if !api_key_is_given() => file.source.clone(),
        _ => Source::variable(API_KEY),
    };
    let key = KeySource::of(path.map(Path::new)).and_then(KeySource::read);
    if let Ok(key) = &key {
        console.hide(key);
    }
    ApiKeyEntry {
        is_set: key.is_ok(),
        source: Some(source),
        error: key.err().as_ref().map(Finding::of_error),
    }
}

fn state_directory() -> StateDirectoryEntry {
    let given = std::env::var_os(STATE_DIR).filter(|folder| !folder.is_empty());
    let found = state_folder();
    StateDirectoryEntry {
        source: given.map_or(Source::DEFAULT, |_| Source::variable(STATE_DIR)),
        error: found.as_ref().err().map(Finding::of_error),
        path: found.ok().map(|path| path.display().to_string()),
    }
}

/// Prints a table.
fn show(config: &Config, console: &Console) {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let source = |source: &Source, error: &Option<Finding>| match error {
        Some(_) => format!("{source} (invalid)"),
        None => source.to_string(),
    };
    let row = |name: &str, value, from| [name.to_owned(), value, from];
    let (key, state) = (&config.api_key, &config.state_directory);
    let of_key = key.source.as_ref().map(|from| source(from, &key.error));
    let others = [
        row(
            "API key",
            if key.is_set { "set" } else { "-" }.to_owned(),
            of_key.unwrap_or_else(|| "not set".to_owned()),
        ),
        row(
            "state directory",
            value(&state.path),
            source(&state.source, &state.error),
        ),
    ];
    let settings = config.settings.iter().map(|entry| {
        let from = source(&entry.source, &entry.error);
        row(entry.name, value(&entry.value), from)
    });
    let files = config.files.iter().map(|file| {
        let found = match &file.error {
            Some(_) => "invalid: its settings are not shown",
            None if file.exists => "read",
            None => "not found",
        };
        row("settings file", file.path.clone(), found.to_owned())
    });
    let rows: Vec<[String; 3]> = settings.chain(others).chain(files).collect();
    let widths = [0, 1, 2].map(|column| {
        rows.iter()
            .map(|row| width(&row[column]))
            .max()
            .unwrap_or(0)
    });
    let table = widths.iter().sum::<usize>() + 4;
    if Console::width().is_none_or(|terminal| table <= terminal) {
        return console.result_table(&["SETTING", "VALUE", "SOURCE"], rows.into_iter().map(plain));
    }
    // A table would cut the values.
    for [name, value, from] in rows {
        let start = (Meaning::Name, pad(&name, widths[0] + 2));
        console.item(&[start], &format!("{value} ({from})"));
    }
}
