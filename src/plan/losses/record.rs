//! What is lost with a deleted Portainer stack (B01).

use std::collections::BTreeSet;

use composefile::document::{Document, Node};

use crate::{
    model::{Deployment, Record, values},
    plan::{InPortainer, Loss, RecordFacts, Sent},
};

/// The sections of a Compose file whose members are named.
const SECTIONS: [&str; 5] = ["services", "volumes", "networks", "secrets", "configs"];

/// What a Portainer stack loses besides its text and variables.
pub fn standing(record: &Record) -> Vec<Loss> {
    let mut losses: Vec<Loss> = record.carries.iter().cloned().map(Loss::Carried).collect();
    if record.deployment == Deployment::Inactive {
        losses.push(Loss::RecordStarts);
    }
    losses
}

/// The losses of deleting a Portainer stack: its properties, and its variables that are not in `names`.
pub fn record_lost(record: &Record, names: &BTreeSet<&str>) -> Vec<Loss> {
    let mut losses = standing(record);
    let variables: Vec<String> = record
        .variables
        .iter()
        .filter(|name| !names.contains(name.as_str()))
        .cloned()
        .collect();
    if !variables.is_empty() {
        losses.push(Loss::RecordVariables(variables));
    }
    losses
}

/// The same, and the differences between the contents of the Portainer stack and what is sent; where it was edited, that
/// too (B22).
pub fn losses(facts: &RecordFacts, sent: Sent) -> Vec<Loss> {
    let names = sent.env.iter().map(|variable| variable.name.as_str());
    let mut losses = record_lost(facts.record, &names.collect());
    let Some((text, env)) = facts.contents else {
        return losses;
    };
    let (old, new) = (values(env), values(sent.env));
    let changed: Vec<String> = old
        .iter()
        .filter(|(name, value)| new.get(*name).is_some_and(|new| new != *value))
        .map(|(&name, _)| name.to_owned())
        .collect();
    if !changed.is_empty() {
        losses.push(Loss::RecordValues(changed));
    }
    losses.extend(members_lost(text, sent.text));
    losses.extend(edit_lost(facts.in_portainer, Vec::new()));
    losses
}

/// The loss of what was edited in Portainer, or may have been (B22): the `parts`, unless other losses say them.
pub fn edit_lost(in_portainer: InPortainer, parts: Vec<String>) -> Option<Loss> {
    match in_portainer {
        InPortainer::Edited => Some(Loss::RecordText(parts)),
        InPortainer::Differs => Some(Loss::RecordDiffers),
        InPortainer::Nothing
        | InPortainer::UpToDate
        | InPortainer::LastSent
        | InPortainer::Redeployed => None,
    }
}

fn members_lost(old: &str, new: &str) -> Vec<Loss> {
    let (Ok(old), Ok(new)) = (Document::parse(old), Document::parse(new)) else {
        return Vec::new();
    };
    let lost = SECTIONS.into_iter().filter_map(|section| {
        let kept = members(&new, section);
        let mut names = members(&old, section);
        names.retain(|name| !kept.contains(name));
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        (!names.is_empty()).then_some(Loss::RecordMembers { section, names })
    });
    lost.collect()
}

fn members<'d>(document: &'d Document<'d>, section: &str) -> Vec<&'d str> {
    let entries = document
        .get(section)
        .map(Node::entries)
        .into_iter()
        .flatten();
    entries.filter_map(|entry| entry.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Carried, Variable},
        snapshot::LastSent,
    };

    fn variable(name: &str, value: &str) -> Variable {
        Variable {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    fn record(deployment: Deployment) -> Record {
        Record {
            deployment,
            ..Record::with_id("7")
        }
    }

    fn lost(text: &str, env: &[Variable], sent: Sent) -> Vec<String> {
        let record = Record {
            carries: vec![Carried::Webhook],
            variables: env.iter().map(|one| one.name.clone()).collect(),
            ..record(Deployment::Active)
        };
        let last_sent = LastSent::default();
        let facts = RecordFacts::new(&record, Some((text, env)), &last_sent, sent);
        losses(&facts, sent).iter().map(Loss::to_string).collect()
    }

    #[test]
    fn b01_a_stopped_portainer_stack_is_started() {
        let lost = |deployment| record_lost(&record(deployment), &BTreeSet::new());
        let starts = lost(Deployment::Inactive);
        let expected = "Portainer stack: is stopped and will be started";
        assert_eq!(
            (starts.len(), starts[0].to_string()),
            (1, expected.to_owned())
        );
        assert!(lost(Deployment::Active).is_empty());
    }

    #[test]
    fn b01_the_portainer_stack_is_compared_with_what_is_sent() {
        let env = [variable("A", "1"), variable("B", "2"), variable("C", "3")];
        let sent = Sent {
            text: "services:\n  web:\n    image: x\n",
            env: &[variable("A", "1"), variable("B", "9")],
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
        let same = [variable("A", "1"), variable("B", "9")];
        assert_eq!(
            lost(sent.text, &same, sent),
            ["the Portainer stack's webhook"]
        );
    }
}
