//! `stacklift <STACK>`: the contract's checks in the contract's order (C04), then its procedure.

use std::sync::Arc;

use super::{
    Common, Console, Ended, MigrateArguments,
    interrupt::Interrupt,
    peers,
    restore::store,
    settings::{KeySource, Settings},
    stack_required,
};
use crate::{
    migrate::{self, Event, Migration, OnRefusal},
    portainer::Tls,
    stack::{Backup, Stack, StackName},
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
    let settings = Settings::load(common).map_err(Ended::Untouched)?;
    let key = key.read().map_err(Ended::Untouched)?;
    console.hide(&key);
    let stack = Stack::find(name, &settings.location).map_err(Ended::Untouched)?;
    if settings.tls == Tls::Off && !settings.base_url.is_loopback() {
        console.warning(&format!(
            "the certificate of {} is not checked; --tls system or --tls FILE.pem does",
            settings.base_url
        ));
    }
    let (manager, engine) = peers::open(&settings, key, console).map_err(Ended::Untouched)?;
    let store = store(
        stack.name(),
        &settings.location,
        &settings.base_url,
        settings.endpoint,
    )
    .map_err(Ended::Untouched)?;
    let migration = Migration {
        stack: &stack,
        manager: &manager,
        base_url: &settings.base_url,
        engine: &engine,
        endpoint: settings.endpoint,
        today: chrono::Local::now().date_naive(),
        on_refusal: on_refusal(arguments.force),
        store: &store,
        tool: &settings.location.tool,
    };
    let interrupt = Interrupt::watch(console, stack.name().as_str());
    let mut say = |event: Event| {
        if let Event::Progress(progress) = event {
            interrupt.note(progress.to_string(), progress.way_back());
        }
        show(console, &event);
    };
    migrate::run(&migration, &mut say)
        .map_err(|stopped| Ended::Migrate(stopped, stack.name().to_string()))
}

pub(super) fn on_refusal(force: bool) -> OnRefusal {
    if force {
        OnRefusal::GoOn
    } else {
        OnRefusal::Stop
    }
}

/// Prints what a run says.
pub(super) fn show(console: &Console, event: &Event) {
    if matches!(event, Event::Progress(_)) {
        return;
    }
    console.done();
    match event {
        Event::Progress(_) => {}
        Event::Banner { stack, endpoint } => console.step(
            "migrate",
            &format!(
                "{} from {} to endpoint {endpoint}",
                stack.name(),
                stack.dir().display()
            ),
        ),
        Event::Backup(Backup::Made(path)) => {
            console.step("backup", &format!("{} written", path.display()));
        }
        Event::Backup(Backup::Kept(path)) => {
            console.step(
                "backup",
                &format!("{} is there already and is kept", path.display()),
            );
        }
        Event::Normalised(name) => {
            console.step("name", &format!("the manager will call it {name}"));
        }
        Event::Warning(text) => console.warning(text),
        Event::Losses(losses) => {
            let lines: Vec<_> = losses.iter().map(|loss| format!("  - {loss}")).collect();
            console.warning(&format!("the stack will lose:\n{}", lines.join("\n")));
        }
        Event::Snapshot(id) => console.step("snapshot", &format!("{id} taken")),
        Event::Deleting(record) => {
            console.step("delete", &format!("record {} at the manager", record.id));
        }
        Event::Removing(containers) => {
            let names: Vec<_> = containers
                .iter()
                .map(crate::model::Container::name)
                .collect();
            let plural = if names.len() == 1 { "" } else { "s" };
            console.step(
                "remove",
                &format!("{} container{plural}: {}", names.len(), names.join(", ")),
            );
        }
        Event::Waiting(what) => console.waiting(what),
        Event::Created { name, id } => {
            console.step("created", &format!("stack {name} with Id {id}"));
        }
        Event::Containers(containers) => console.containers(containers),
    }
}
