//! Reads a stack with several files as one text. The Compose program on the host combines the files, then reads the
//! result, which must have the same configuration. Writes nothing.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use serde_json::Value;

use crate::{
    compose::{Input, Profiles, Program, Values, write_omitted},
    finding::{Finding, Kind},
    parallel::side_by_side,
    rewrite::{
        combine::{self, Avoid, Resolved, differences, expected, without_fragments},
        env::{is_secret, secrets},
        faithful::{self, Faithful, Runs},
        portainer::STACK_ENV,
    },
    stack::{Files, FilesRead, Origins, Shell, Stack},
    text::Mask,
};

/// The most candidates that are compared.
const ATTEMPTS: usize = 4;

/// A stack with several files as one text.
pub struct Combined {
    /// The text, its variables, and the scalars that must not be shown.
    pub written: combine::Combined,
    notices: Vec<Finding>,
    /// The files that each service comes from.
    origins: Origins,
    /// The name that Compose gives the project.
    pub project: Option<String>,
    stack: Stack,
}

/// Why there is no such text.
pub enum Uncombined {
    /// The Compose program could not be asked, or it failed.
    Failed(anyhow::Error),
    /// The faithful rewrite of the text is blocked.
    Blocked(Vec<Finding>),
    /// The configuration of the text differs, first at this key.
    Different(String),
}

impl Combined {
    /// The Compose files that it combines.
    pub fn files(&self, passed: &Files) -> Vec<String> {
        let files = all_files(&passed.compose, &self.origins);
        files.into_iter().map(str::to_owned).collect()
    }

    /// Rewrites the text.
    pub fn rewrite(&self, runs: &Runs) -> Result<Faithful, Vec<Finding>> {
        let shell = Shell::of_combined(&self.stack, STACK_ENV);
        let written = &self.written;
        let rewritten =
            faithful::rewrite(&written.text, Some(&written.env), &shell.context(), runs);
        let mut rewrite = rewritten.map_err(without_lines)?;
        rewrite.hide(&written.secret);
        for notice in &mut rewrite.notices {
            notice.position = None;
        }
        rewrite.notices.extend_from_slice(&self.notices);
        Ok(rewrite)
    }
}

/// Removes the positions, because they refer to a text that the user has not seen.
fn without_lines(mut blockers: Vec<Finding>) -> Vec<Finding> {
    for blocker in &mut blockers {
        blocker.position = None;
    }
    blockers
}

/// Combines the files of a stack, which were `read` before. Also returns the rewrite of the text that ignores the running containers.
pub fn combined(
    program: &dyn Program,
    stack: &Stack,
    files: &Files,
    read: FilesRead,
) -> Result<(Combined, Faithful), Uncombined> {
    let name = &*stack.name().portainer_name();
    let on_disk = |project| files_on_disk(stack, files, project);
    let read_in = Shell::of_combined(stack, STACK_ENV);
    let env = read.variables?;
    let values = values(&env, read.env_files.values());
    let mask = &Mask::new(values.iter().map(String::as_str));
    let writable = |input: &Input, profiles, values| {
        let mut config = program.read(input, profiles, values, mask)?.config;
        write_omitted(&mut config, program.version());
        anyhow::Ok(config)
    };
    let config = |input: &Input, profiles| writable(input, profiles, Values::Resolved);
    let of = |profiles| anyhow::Ok((config(&on_disk(Some(name)), profiles)?, profiles));
    // Compose does not read the env files of services whose profiles are inactive.
    let resolve = || of(Profiles::All).or_else(|_| of(Profiles::Active));
    let named = || config(&on_disk(None), Profiles::Active);
    let (resolved, named) = side_by_side(resolve, named);
    let (resolved, profiles) = resolved?;
    let model = writable(&on_disk(Some(name)), profiles, Values::Named);
    let env_file = match files.env.as_slice() {
        [] => Some(stack.dir().join(".env")),
        [one] => Some(stack.dir().join(one)),
        _ => None,
    };
    let input = Resolved {
        config: &resolved,
        model: model.as_ref().ok(),
        project: name,
        env: &env,
        env_file: env_file.as_deref().and_then(Path::to_str),
        shell: read_in.context().shell,
        values: &values,
    };
    let mut avoid = Avoid::default();
    let mut different = String::new();
    for _ in 0..ATTEMPTS {
        let written = combine::combine(&input, &avoid);
        let of_project = named.as_ref().ok();
        let project = of_project.and_then(|config| config["name"].as_str());
        let combined = Combined {
            notices: notices(&files.compose, &read.origins, &input, &written.written),
            origins: read.origins.clone(),
            written,
            project: project.map(str::to_owned),
            stack: stack.clone(),
        };
        let rewritten = combined.rewrite(Runs::NONE);
        let rewrite = rewritten.map_err(Uncombined::Blocked)?;
        let sent = Input::Sent {
            dir: Some(stack.dir()),
            project: name,
            text: &rewrite.text,
            env: &rewrite.stack_env(),
        };
        let before = avoid.clone();
        match config(&sent, profiles) {
            Ok(mut sent) => {
                without_fragments(&mut sent);
                let expected = expected(resolved.clone(), name, &combined.written.env);
                let places = places(&expected, &sent);
                let Some(first) = places.first() else {
                    return Ok((combined, rewrite));
                };
                different.clone_from(first);
                avoid.env_files |= places.iter().any(|place| place.contains(".environment"));
                avoid.keys.extend(places);
            }
            Err(error) if avoid.all => return Err(error.into()),
            Err(_) => (avoid.env_files, avoid.all) = (true, true),
        }
        if avoid == before {
            break;
        }
    }
    Err(Uncombined::Different(different))
}

/// The files of a stack on disk, for a Compose program: by itself, it may find another file.
pub fn files_on_disk<'i>(
    stack: &'i Stack,
    files: &'i Files,
    project: Option<&'i str>,
) -> Input<'i> {
    Input::OnDisk {
        project,
        dir: stack.dir(),
        files: &files.compose,
        env_files: &files.env,
    }
}

/// The values of all env files, which must not be shown.
pub(super) fn values<'f>(
    env: &[(String, String)],
    files: impl Iterator<Item = &'f Arc<[u8]>>,
) -> Vec<String> {
    let values = files.flat_map(|text| secrets(&String::from_utf8_lossy(text)));
    let own = env.iter().filter(|(name, _)| is_secret(name));
    let own = own.map(|(_, value)| value.clone());
    own.chain(values).collect()
}

/// The places that differ, each as up to three keys: `services.web.ports`.
fn places(expected: &Value, sent: &Value) -> Vec<String> {
    let found = differences(expected, sent).into_iter();
    let places = found.map(|(path, ..)| path[..path.len().min(3)].join("."));
    places.collect()
}

/// All Compose files. The files that are passed to Compose come first.
fn all_files<'f>(passed: &'f [String], origins: &'f Origins) -> Vec<&'f str> {
    let all = passed.iter().chain(origins.values().flatten());
    let mut files: Vec<&str> = Vec::new();
    for file in all {
        if !files.contains(&file.as_str()) {
            files.push(file);
        }
    }
    files
}

/// How the text differs from the files, although it means the same.
fn notices(
    files: &[String],
    origins: &Origins,
    resolved: &Resolved,
    written: &[(String, String)],
) -> Vec<Finding> {
    let combines = match all_files(files, origins).as_slice() {
        [one] => format!("Portainer gets {one} as resolved by Compose"),
        files => format!("Portainer gets one file that combines {}", files.join(", ")),
    };
    let combines = format!("{combines}, without comments; the files on disk do not change");
    let mut messages = Vec::new();
    let services = &resolved.config["services"];
    let names = origins.keys().map(String::as_str);
    let inactive: Vec<&str> = names.filter(|name| services.get(name).is_none()).collect();
    if !inactive.is_empty() {
        messages.push(format!(
            "these services of inactive profiles are left out, because Compose cannot read all profiles: {}",
            inactive.join(", ")
        ));
    }
    if resolved.model.is_none() {
        messages.push("Compose cannot print these files with their variables, so the values of env files are written into Portainer's copy, except in `environment`".to_owned());
    }
    messages.extend(written.iter().map(|(name, key)| {
        format!("the value of {name} is written into Portainer's copy ({key}): changing the variable in Portainer has no effect there")
    }));
    let combines = Finding::of_stack(&combines).of_kind(Kind::Resolved);
    let others = messages.iter().map(|message| Finding::of_stack(message));
    [combines].into_iter().chain(others).collect()
}

impl From<anyhow::Error> for Uncombined {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}
