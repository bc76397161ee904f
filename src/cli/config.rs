//! `stacklift config`: every setting, its value and where it comes from.

use std::path::Path;

use super::{
    Common, Console, Ended,
    arguments::{ConfigAction, ConfigArguments, Output},
    options,
    settings::{
        API_KEY, KeySource, Origin, Picked, Problem, STATE_DIR, Sourced, api_key_is_given,
        state_folder,
    },
};
use crate::failure::Failure;

mod format;
mod init;
mod template;

pub(super) use format::Config;

use format::{ApiKeyEntry, FileEntry, SettingEntry, Source, StateDirectoryEntry};

/// The version of the format.
const VERSION: u32 = 1;

pub(super) fn run(
    arguments: &ConfigArguments,
    common: &Common,
    console: &Console,
) -> Result<(), Ended> {
    if let Some(ConfigAction::Init(arguments)) = &arguments.action {
        return Ok(init::run(*arguments, common, console)?);
    }
    let (config, problems) = config(common, console);
    match arguments.output {
        Output::Text => show(&config, console),
        Output::Json => console.json(&config)?,
    }
    for Problem { message, hint } in &problems {
        let failure = Failure::new(message);
        let failure = match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        };
        console.error(&failure.into(), None);
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Ended::Verdict(1))
    }
}

/// The settings, and everything that is invalid.
fn config(common: &Common, console: &Console) -> (Config, Vec<Problem>) {
    let sourced = Sourced::load(common);
    let (api_key, key_problem) = api_key(&sourced.picked, common, console);
    let (state_directory, state_problem) = state_directory();
    let of_files = sourced.files.iter().map(|file| file.error.clone());
    let of_settings = sourced.picked.iter().map(|picked| picked.error.clone());
    let problems = of_files.chain(of_settings);
    let problems = problems.chain([key_problem, state_problem]).flatten();
    let problems = problems.collect();
    let message = |error: Option<Problem>| error.map(|problem| problem.message);
    let config = Config {
        version: VERSION,
        api_key,
        state_directory,
        settings: sourced
            .picked
            .into_iter()
            .map(|picked| SettingEntry {
                name: picked.key.to_owned(),
                value: picked.value,
                source: Source::of(&picked.origin),
                error: message(picked.error),
            })
            .collect(),
        files: sourced
            .files
            .into_iter()
            .map(|file| FileEntry {
                path: file.path.display().to_string(),
                exists: file.exists,
                error: message(file.error),
            })
            .collect(),
    };
    (config, problems)
}

/// Where the API key comes from. Reads it, to mask it and to report a file that cannot be used.
fn api_key(
    picked: &[Picked],
    common: &Common,
    console: &Console,
) -> (ApiKeyEntry, Option<Problem>) {
    let file = picked
        .iter()
        .find(|one| one.key == options::API_KEY_FILE.key);
    let named = file.and_then(|one| one.value.as_deref()).map(Path::new);
    let path = common.api_key_file.as_deref().or(named);
    let origin = match file {
        // A missing key is not an invalid setting: some commands need none.
        _ if path.is_none() && !api_key_is_given() => return (ApiKeyEntry::default(), None),
        Some(file) if !api_key_is_given() => file.origin.clone(),
        _ => Origin::Variable(API_KEY),
    };
    let problem = match KeySource::of(path).and_then(KeySource::read) {
        Ok(key) => {
            console.hide(&key);
            None
        }
        Err(error) => Some(Problem::of(&error)),
    };
    let entry = ApiKeyEntry {
        is_set: problem.is_none(),
        source: Some(Source::of(&origin)),
        error: problem.as_ref().map(|problem| problem.message.clone()),
    };
    (entry, problem)
}

fn state_directory() -> (StateDirectoryEntry, Option<Problem>) {
    let is_given = std::env::var_os(STATE_DIR).is_some_and(|folder| !folder.is_empty());
    let origin = if is_given {
        Origin::Variable(STATE_DIR)
    } else {
        Origin::Default
    };
    let found = state_folder();
    let problem = found.as_ref().err().map(Problem::of);
    let entry = StateDirectoryEntry {
        path: found.ok().map(|path| path.display().to_string()),
        source: Source::of(&origin),
        error: problem.as_ref().map(|problem| problem.message.clone()),
    };
    (entry, problem)
}

/// Prints a table.
fn show(config: &Config, console: &Console) {
    let mut rows = vec![["SETTING", "VALUE", "SOURCE"].map(str::to_owned).to_vec()];
    let value = |value: &Option<String>| value.as_deref().unwrap_or("-").to_owned();
    let source = |source: &Source, error: &Option<String>| match error {
        Some(_) => format!("{source} (invalid)"),
        None => source.to_string(),
    };
    for setting in &config.settings {
        rows.push(vec![
            setting.name.clone(),
            value(&setting.value),
            source(&setting.source, &setting.error),
        ]);
    }
    let key = &config.api_key;
    rows.push(match &key.source {
        Some(from) => {
            let is_set = if key.is_set { "set" } else { "-" };
            vec![
                "API key".to_owned(),
                is_set.to_owned(),
                source(from, &key.error),
            ]
        }
        None => ["API key", "-", "not set"].map(str::to_owned).to_vec(),
    });
    let state = &config.state_directory;
    rows.push(vec![
        "state directory".to_owned(),
        value(&state.path),
        source(&state.source, &state.error),
    ]);
    for file in &config.files {
        let state = match &file.error {
            Some(_) => "invalid: its settings are not shown",
            None if file.exists => "read",
            None => "not found",
        };
        rows.push(vec![
            "settings file".to_owned(),
            file.path.clone(),
            state.to_owned(),
        ]);
    }
    console.result_table(rows);
}
