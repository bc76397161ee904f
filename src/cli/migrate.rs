//! `stacklift <STACK>`: the contract's checks in the contract's order (C04), then the migration.

use std::sync::Arc;

use super::{
    Common, Console, Ended, MigrateArguments,
    arguments::near_command,
    confirm::asks,
    interrupt::Interrupt,
    peers,
    settings::{KeySource, Settings},
    stack_required,
};
use crate::{
    compose,
    failure::Failure,
    migrate::{self, Migration, OnRefusal},
    portainer::Tls,
    run::{Consent, Event, Stopped},
    stack::{Stack, StackName},
};

pub(super) fn run(
    arguments: &MigrateArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    let name = arguments.stack.as_deref().ok_or_else(stack_required)?;
    let name = StackName::new(name)?;
    let key = KeySource::from_env()?;
    name.refuse_management_plane()?;
    let settings = Settings::load(common).map_err(Stopped::untouched)?;
    let key = key.read().map_err(Stopped::untouched)?;
    console.hide(&key);
    let stack = Stack::find(name.clone(), &settings.location)
        .map_err(|error| suggest_command(&name, error))
        .map_err(Stopped::untouched)?;
    if settings.tls == Tls::Off && !settings.base_url.is_loopback() {
        console.warning(&format!(
            "TLS verification is off for {}; turn it on with --tls system or --tls FILE.pem",
            settings.base_url
        ));
    }
    let interrupt = Interrupt::watch(console);
    let peers = peers::open(&settings, key, console).map_err(Stopped::untouched)?;
    let setup = peers::setup(&settings, stack.name()).map_err(Stopped::untouched)?;
    let compose = compose::Host::new(&settings.location.tool, console.trace());
    let question = |question: &str| console.ask(question);
    let migration = Migration {
        stack: &stack,
        peers: &peers,
        base_url: &settings.base_url,
        endpoint: settings.endpoint,
        today: chrono::Local::now().date_naive(),
        on_refusal: on_refusal(arguments.force),
        consent: if asks(arguments.yes) {
            Consent::Ask(&question)
        } else {
            Consent::Given
        },
        grace: arguments.grace,
        setup: &setup,
        tool: &settings.location.tool,
        compose: &compose,
    };
    let mut listener = |event: Event| interrupt.show(&event);
    Ok(migrate::run(&migration, &mut listener)?)
}

pub(super) fn on_refusal(force: bool) -> OnRefusal {
    if force {
        OnRefusal::Continue
    } else {
        OnRefusal::Stop
    }
}

/// Suggests a command for a missing stack whose name is close to one, such as `migrat`.
fn suggest_command(name: &StackName, error: anyhow::Error) -> anyhow::Error {
    match (near_command(name.as_str()), error.downcast::<Failure>()) {
        (Some(command), Ok(failure)) => failure
            .hint(format!(
                "did you mean `stacklift {command}`? otherwise, pass the stack's directory with --dir"
            ))
            .into(),
        (None, Ok(failure)) => failure.into(),
        (_, Err(error)) => error,
    }
}
