//! What is lost with a deleted Portainer stack (B01).

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
};

use composefile::{
    document::{Document, Node},
    interpolate::occurrences,
    path::clean,
};

use crate::{
    compose::Project,
    finding::{Finding, Kind},
    model::{Deployment, Grant, Record, is_id, values},
    plan::{Facts, InPortainer, Parsed, RecordFacts, Sent},
};

/// The sections of a Compose file whose members are named.
const SECTIONS: [&str; 5] = ["services", "volumes", "networks", "secrets", "configs"];

/// What a Portainer stack loses besides its text and variables.
pub fn standing(record: &Record) -> Vec<Finding> {
    let mut losses: Vec<Finding> = record.carries.iter().map(Finding::of_carried).collect();
    if record.deployment == Deployment::Inactive {
        losses.push(Finding::of_record("is stopped and will be started").of_kind(Kind::Starts));
    }
    losses
}

/// Those who may use the Portainer stack, and not afterwards (B23).
pub fn use_lost(lost: &BTreeSet<Grant>) -> Option<Finding> {
    let who = Grant::list(lost);
    (!lost.is_empty()).then(|| Finding::of_record(&format!("the access of {who}")))
}

/// The anonymous volumes that an adoption named or found, and that neither the text nor a container mounts afterwards.
pub fn volumes_left(facts: &Facts) -> Vec<Finding> {
    let deployed = facts.projects.deployed.as_ref();
    let sent = facts
        .projects
        .sent
        .as_ref()
        .map(named_volumes)
        .unwrap_or_default();
    let mut left = deployed.map(named_volumes).unwrap_or_default();
    let last_sent = facts.before.last_sent.all_volumes();
    left.extend(
        last_sent.map(|(service, path, name)| (name.clone(), (service.clone(), path.clone()))),
    );
    let containers: Vec<_> = facts.host.inspected().collect();
    left.retain(|volume, _| {
        let exists = facts.host.has_volume(volume);
        let mut mounted = containers.iter().flat_map(|container| container.volumes());
        exists && !sent.contains_key(volume) && !mounted.any(|(name, _)| name == volume)
    });
    // Portainer removes the containers of a Git stack whose deployment fails. No file names their anonymous volumes.
    let last = facts.before.last_volumes.iter().filter(|volume| {
        let is_told = left.contains_key(*volume) || sent.contains_key(*volume);
        containers.is_empty() && is_id(volume) && facts.host.has_volume(volume) && !is_told
    });
    let last = last.map(|volume| {
        format!("nothing mounts the volume {volume} any more: it keeps its data, and a restore of the last snapshot mounts it again")
    });
    let last: Vec<String> = last.collect();
    let left = left.iter().map(|(volume, (service, path))| {
        format!(
            "nothing mounts the volume {volume} any more, which was named for {path} of {service}"
        )
    });
    // A container would still have it.
    let gone = facts
        .before
        .last_sent
        .all_volumes()
        .filter(|(service, _, name)| {
            facts.host.volumes.is_some()
                && !facts.host.has_volume(name)
                && facts.of_service(service).next().is_none()
        });
    let gone = gone.map(|(service, path, name)| {
        format!("{service} had the volume {name} at {path}, which no longer exists")
    });
    left.chain(last)
        .chain(gone)
        .map(|loss| Finding::of_stack(&loss))
        .collect()
}

/// The anonymous volumes of Docker that a project names, each with a service and the path.
fn named_volumes(project: &Project) -> BTreeMap<String, (String, String)> {
    let services = project.services.iter();
    let volumes =
        services.flat_map(|service| service.volumes().map(move |volume| (service, volume)));
    let named = volumes.filter(|(_, (_, volume))| is_id(&volume.name));
    named
        .map(|(service, (mount, volume))| {
            let place = (service.name.clone(), clean(&mount.target));
            (volume.name.clone(), place)
        })
        .collect()
}

/// The losses of deleting a Portainer stack: its properties, and its variables that are not in `names`.
pub fn record_lost(record: &Record, names: &BTreeSet<&str>) -> Vec<Finding> {
    let mut losses = standing(record);
    let variables = record.variables.iter().map(String::as_str);
    let variables: Vec<_> = variables.filter(|name| !names.contains(name)).collect();
    losses.extend(named("variables that exist only in Portainer", &variables));
    losses
}

/// The same, and the differences between the contents of the Portainer stack and what is sent; where it was edited, that
/// too (B22).
pub fn losses(facts: &RecordFacts, sent: Sent, document: Option<&Document>) -> Vec<Finding> {
    let names = sent.env.iter().map(|variable| variable.name.as_str());
    let mut losses = record_lost(facts.record, &names.collect());
    let Some(Sent { env, .. }) = facts.contents else {
        return losses;
    };
    let (old, new) = (values(env), values(sent.env));
    let used = occurrences(sent.text);
    // The value of one that the text does not use changes nothing.
    let is_changed = |(name, value): &(&str, &str)| {
        let is_used = used.iter().any(|found| found.name == *name);
        is_used && new.get(name).is_some_and(|new| new != value)
    };
    let changed = old.into_iter().filter(is_changed).map(|(name, _)| name);
    let changed: Vec<_> = changed.collect();
    losses.extend(named("variables with another value in Portainer", &changed));
    losses.extend(
        members_lost(facts, document)
            .iter()
            .filter_map(|(section, names)| {
                let what = format!("{section} that exist only in Portainer");
                named(&what, names)
            }),
    );
    losses.extend(edit_lost(facts.in_portainer, &[]));
    losses
}

/// Names what a Portainer stack loses, if it loses something.
fn named(what: &str, names: &[impl Borrow<str>]) -> Option<Finding> {
    let message = format!("{what}: {}", names.join(", "));
    (!names.is_empty()).then(|| Finding::of_record(&message))
}

/// The loss of what was edited in Portainer, or may have been (B22): the `parts`, unless other losses say them.
pub fn edit_lost(in_portainer: InPortainer, parts: &[String]) -> Option<Finding> {
    let edited = "what was edited in Portainer since the last adoption";
    let what = match in_portainer {
        InPortainer::Edited if parts.is_empty() => edited,
        InPortainer::Edited => &format!("{edited}: {}", parts.join(" and ")),
        InPortainer::Differs => "what only Portainer has in its Compose file and variables",
        _ => return None,
    };
    Some(Finding::of_record(what))
}

/// The services of a Portainer stack that are not in the Compose file.
pub fn services_lost(facts: &RecordFacts, document: Option<&Document>) -> Vec<String> {
    let mut lost = members_lost(facts, document).into_iter();
    let services = lost.find(|(section, _)| *section == "services");
    services.map_or_else(Vec::new, |(_, names)| names)
}

/// The names in each section of a Portainer stack's text that the text to send does not have. None if one of the two cannot be
/// parsed.
fn members_lost(
    facts: &RecordFacts,
    document: Option<&Document>,
) -> Vec<(&'static str, Vec<String>)> {
    let old = facts.contents.map(|old| Parsed::new(old.text));
    let old = old.as_ref().and_then(|old| old.document.as_ref());
    let (Some(old), Some(new)) = (old, document) else {
        return Vec::new();
    };
    let lost = SECTIONS.into_iter().map(|section| {
        let (mut names, kept) = (members(old, section), members(new, section));
        names.retain(|name| !kept.contains(name));
        (section, names.into_iter().map(str::to_owned).collect())
    });
    lost.collect()
}

fn members<'d>(document: &'d Document<'d>, section: &str) -> Vec<&'d str> {
    let entries = document.get(section).into_iter().flat_map(Node::entries);
    entries.filter_map(|entry| entry.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Carried, Variable},
        snapshot::LastSent,
    };

    fn record(deployment: Deployment) -> Record {
        Record {
            deployment,
            ..Record::with_id("7")
        }
    }

    fn lost(text: &str, env: &[Variable], sent: Sent) -> Vec<String> {
        let record = Record {
            carries: vec![Carried::Webhook],
            variables: env.iter().map(|variable| variable.name.clone()).collect(),
            ..record(Deployment::Active)
        };
        let last_sent = LastSent::default();
        let facts = RecordFacts::new(&record, Some(Sent { text, env }), &last_sent, sent);
        losses(&facts, sent, Parsed::new(sent.text).document.as_ref())
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn b01_a_stopped_portainer_stack_is_started() {
        let lost = |deployment| record_lost(&record(deployment), &BTreeSet::new());
        let starts = lost(Deployment::Inactive);
        let expected = "Portainer stack: is stopped and will be started";
        let starts: Vec<_> = starts.iter().map(Finding::to_string).collect();
        assert_eq!(starts, [expected]);
        assert!(lost(Deployment::Active).is_empty());
    }

    #[test]
    fn b01_the_portainer_stack_is_compared_with_what_is_sent() {
        let env = [("A", "1"), ("B", "2"), ("C", "3")];
        let env = env.map(|(name, value)| Variable::new(name, value));
        let sent = Sent {
            text: "services:\n  web:\n    image: x:${B}\n",
            env: &[Variable::new("A", "1"), Variable::new("B", "9")],
        };
        let old = "services:\n  web:\n    image: x\n  db:\n    image: y\nvolumes:\n  data:\n";
        assert_eq!(
            lost(old, &env, sent),
            [
                "the Portainer stack's webhook",
                "variables that exist only in Portainer: C",
                "variables with another value in Portainer: B",
                "services that exist only in Portainer: db",
                "volumes that exist only in Portainer: data",
                "what only Portainer has in its Compose file and variables",
            ]
        );
        let same = [Variable::new("A", "1"), Variable::new("B", "9")];
        let expected = ["the Portainer stack's webhook"];
        assert_eq!(lost(sent.text, &same, sent), expected);
    }
}
