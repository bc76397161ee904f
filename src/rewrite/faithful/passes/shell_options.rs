//! Blocks on options that the shell gives to Compose itself, unless `.env` gives the same (M14).

use composefile::reader::Reader;

use crate::rewrite::faithful::{Finding, Kind, findings::Findings, shell::is_true};

const NO_ENV_FILE: &str = "COMPOSE_DISABLE_ENV_FILE";

/// Finds `COMPOSE_…` and `DOCKER_…` variables whose effect Portainer would not repeat.
pub(super) fn shell_options<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    let shell = |name: &str| (reader.context.shell)(name).filter(|value| !value.is_empty());
    let mut block = |kind, message: &str, hint: &str| {
        found
            .blockers
            .push(Finding::new(message, hint).of_kind(kind));
    };
    for name in [
        "COMPOSE_PROFILES",
        "COMPOSE_COMPATIBILITY",
        "DOCKER_DEFAULT_PLATFORM",
    ] {
        let value = shell(name);
        if value.is_some() && value.as_deref() != reader.variables.get(name).copied() {
            block(
                Kind::ShellVariable,
                &format!("{name} is set in the shell, but .env does not set it to the same value"),
                "set it in .env, or unset it: Portainer does not have the variables of your shell",
            );
        }
    }
    let others =
        shell("COMPOSE_ENV_FILES").filter(|files| reader.base().local(files) != reader.own_env);
    if others.is_some() {
        block(
            Kind::ShellVariable,
            "COMPOSE_ENV_FILES names env files other than .env",
            "move their variables into .env, and unset COMPOSE_ENV_FILES: Portainer has only one env file",
        );
    }
    let in_env = reader.variables.get(NO_ENV_FILE);
    if shell(NO_ENV_FILE).as_deref().is_some_and(is_true) && reader.env_text.is_some() {
        block(
            Kind::ShellVariable,
            &format!("{NO_ENV_FILE} is set in the shell: Compose ignores .env"),
            "unset it, or remove .env",
        );
    } else if in_env.is_some_and(|value| is_true(value)) {
        block(
            Kind::VersionDependent,
            &format!(".env sets {NO_ENV_FILE}: whether Compose reads .env depends on its version"),
            &format!("remove {NO_ENV_FILE} from .env"),
        );
    }
}
