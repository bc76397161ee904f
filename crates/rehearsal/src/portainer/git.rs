//! Git stacks (M24, M25).

use serde_json::json;

use super::{Payload, Refused, Request, Response, Work, World, payload};
use crate::world::{CloneError, Era, GitSettings, Kind};

pub(super) fn invalid(what: &str) -> Refused {
    Refused::with_details(400, "Invalid request payload", what)
}

/// Only http and https are simulated.
fn check_url(url: &str) -> Result<(), Refused> {
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(());
    }
    let what = "Invalid repository URL. Must correspond to a valid URL format";
    Err(invalid(what))
}

/// The text of a file in a repository. Without a reference, of the branch `main`, whatever the default is.
pub(super) fn preview(world: &World, request: &Request) -> Result<Response, Refused> {
    let mut given = payload::<GitSettings>(request)?;
    check_url(&given.url)?;
    if given.reference.is_empty() {
        "refs/heads/main".clone_into(&mut given.reference);
    }
    let (files, _) = world.clone_of(&given).map_err(|error| match error {
        CloneError::Credential => {
            let details =
                "Authentication failed, please ensure that the git credentials are correct";
            Refused::with_details(400, "Invalid git credential", details)
        }
        CloneError::Failed(why) => {
            let text = format!(
                "unable to clone git repository, error: failed to clone git repository: {why}"
            );
            Refused::same(500, &text)
        }
    })?;
    let file = given.entry;
    let text = files.get(&file).ok_or_else(|| {
        let message = "Unable to retrieve custom template file from disk";
        let details = format!("Could not get the contents of the file '{file}'");
        Refused::with_details(500, message, &details)
    })?;
    Ok(Response::json(200, &json!({ "FileContent": text })))
}

/// The checked create of a stack from Git.
pub(super) fn prepared(
    world: &mut World,
    endpoint: u64,
    user: &str,
    request: &Request,
) -> Result<Work, Refused> {
    let given = payload::<Payload>(request)?;
    let mut settings = payload::<GitSettings>(request)?;
    if given.name.is_empty() {
        return Err(invalid("Invalid stack name"));
    }
    check_url(&settings.url)?;
    if !given.repository_authentication {
        settings.password.clear();
    } else if settings.password.is_empty() {
        let what = "Invalid repository credentials. Password must be specified when authentication is enabled";
        return Err(invalid(what));
    }
    let mut work = world.prepare_create(endpoint, &given.name, user)?;
    work.record.env = given.env;
    let cloned = world.clone_for(&mut work.record, &settings);
    cloned.map_err(|error| match world.era {
        // N27
        Era::Async => Refused::with_details(500, "Failed to prepare stack", &error.details),
        Era::Sync | Era::Library => error,
    })?;
    work.record.auto_update = given.auto_update.map(|update| {
        json!({
            "Interval": update["interval"],
            "Webhook": "",
            "JobID": "1",
            "ForceUpdate": false,
            "ForcePullImage": false,
        })
    });
    Ok(work)
}

/// The checked new deployment of a Git stack, which recreates every container.
pub(super) fn redeployed(
    world: &World,
    (id, endpoint): (u64, Option<u64>),
    user: &str,
    request: &Request,
) -> Result<Work, Refused> {
    let mut work = world.prepare(id, endpoint, Kind::Update)?;
    let Some(clone) = work.record.clone.take() else {
        return Err(Refused::same(400, "Stack is not created from git"));
    };
    let given = payload::<Payload>(request)?;
    let mut settings = payload::<GitSettings>(request)?;
    if !given.repository_authentication {
        settings.password.clear();
    } else if settings.password.is_empty() {
        settings.password = clone.git.password;
    }
    let settings = GitSettings {
        reference: settings.reference,
        user: settings.user,
        password: settings.password,
        ..clone.git
    };
    world.clone_for(&mut work.record, &settings)?;
    work.record.env = given.env;
    user.clone_into(&mut work.record.updated_by);
    if let Some(clone) = &mut work.record.clone {
        clone.recreates = true;
    }
    Ok(work)
}
