//! The state of a stack. `docs/listing-stacks.md` defines the words.

use super::format::State;
use crate::{
    cli::report::ContainersReport,
    model::{Deployment, Record, StackKind},
};

/// Which Portainer stacks were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    All,
    /// Those that the user of the API key sees.
    Visible,
    /// Portainer was not read.
    Nothing,
}

/// What decides the state of a stack.
pub(super) struct StateFacts<'a> {
    /// Its Portainer stack in the environment.
    pub(super) record: Option<&'a Record>,
    pub(super) listed: Listed,
    /// Its containers; `None` if they are unknown.
    pub(super) containers: Option<&'a ContainersReport>,
    /// Whether a Compose file is on this host, or may be.
    pub(super) has_files: bool,
    /// Whether the Portainer stack has the text and the variables that an adoption would send.
    pub(super) is_adopted: bool,
}

pub(super) fn state(facts: &StateFacts) -> State {
    match facts.record.map(|record| record.kind) {
        Some(StackKind::Swarm) => return State::Swarm,
        Some(StackKind::Kubernetes) => return State::Kubernetes,
        Some(StackKind::Compose) | None => {}
    }
    let Some(containers) = facts.containers else {
        return State::Unknown;
    };
    let is_all_portainers = containers.started_by_portainer == containers.all;
    match facts.record {
        Some(record) if containers.all == 0 => match record.deployment {
            Deployment::Inactive => State::Stopped,
            Deployment::Deploying => State::InPortainer,
            Deployment::Active | Deployment::Failed(_) => State::Orphaned,
        },
        Some(_) if containers.running == 0 => State::Stopped,
        Some(_) if is_all_portainers || facts.is_adopted => State::InPortainer,
        Some(_) => State::Both,
        None if facts.listed == Listed::Nothing && containers.running > 0 => State::Unknown,
        // It may have a Portainer stack that was not listed.
        None if facts.listed != Listed::All && containers.all > 0 && !facts.has_files => {
            State::Unknown
        }
        None if !facts.has_files => State::Orphaned,
        None if containers.running == 0 => State::Stopped,
        None if is_all_portainers && facts.listed == Listed::All => State::Orphaned,
        None if is_all_portainers => State::InPortainer,
        None => State::ByHand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: StackKind, deployment: Deployment) -> Record {
        Record {
            id: "1".to_owned(),
            name: "web".to_owned(),
            endpoint_id: 1,
            kind,
            deployment,
            carries: Vec::new(),
            variables: std::collections::BTreeSet::new(),
        }
    }

    fn counted(all: usize, running: usize, started_by_portainer: usize) -> ContainersReport {
        ContainersReport {
            all,
            running,
            started_by_portainer,
        }
    }

    #[test]
    fn the_state_of_a_stack_without_a_portainer_stack() {
        for (containers, has_files, known, expected) in [
            ((2, 2, 0), true, Listed::All, State::ByHand),
            ((2, 1, 1), true, Listed::All, State::ByHand),
            ((2, 0, 0), true, Listed::All, State::Stopped),
            ((0, 0, 0), true, Listed::All, State::Stopped),
            ((2, 2, 0), false, Listed::All, State::Orphaned),
            ((2, 0, 0), false, Listed::All, State::Orphaned),
            ((2, 2, 2), true, Listed::All, State::Orphaned),
            ((2, 2, 2), true, Listed::Visible, State::InPortainer),
            ((2, 2, 2), false, Listed::Visible, State::Unknown),
            ((2, 2, 0), true, Listed::Visible, State::ByHand),
        ] {
            let (all, running, by) = containers;
            let facts = StateFacts {
                record: None,
                listed: known,
                containers: Some(&counted(all, running, by)),
                has_files,
                is_adopted: false,
            };
            assert_eq!(
                state(&facts),
                expected,
                "{containers:?} {has_files} {known:?}"
            );
        }
    }

    #[test]
    fn the_state_of_a_stack_with_a_portainer_stack() {
        let compose = StackKind::Compose;
        for (containers, kind, deployment, is_adopted, expected) in [
            (
                (2, 2, 2),
                compose,
                Deployment::Active,
                false,
                State::InPortainer,
            ),
            (
                (2, 2, 0),
                compose,
                Deployment::Active,
                true,
                State::InPortainer,
            ),
            ((2, 2, 1), compose, Deployment::Active, false, State::Both),
            (
                (2, 0, 2),
                compose,
                Deployment::Active,
                false,
                State::Stopped,
            ),
            (
                (0, 0, 0),
                compose,
                Deployment::Inactive,
                false,
                State::Stopped,
            ),
            (
                (0, 0, 0),
                compose,
                Deployment::Active,
                false,
                State::Orphaned,
            ),
            (
                (0, 0, 0),
                compose,
                Deployment::Failed(None),
                false,
                State::Orphaned,
            ),
            (
                (0, 0, 0),
                compose,
                Deployment::Deploying,
                false,
                State::InPortainer,
            ),
            (
                (0, 0, 0),
                StackKind::Swarm,
                Deployment::Active,
                false,
                State::Swarm,
            ),
            (
                (0, 0, 0),
                StackKind::Kubernetes,
                Deployment::Active,
                false,
                State::Kubernetes,
            ),
        ] {
            let (all, running, by) = containers;
            let record = record(kind, deployment);
            let facts = StateFacts {
                record: Some(&record),
                listed: Listed::All,
                containers: Some(&counted(all, running, by)),
                has_files: true,
                is_adopted,
            };
            assert_eq!(state(&facts), expected, "{containers:?} {record:?}");
        }
    }

    #[test]
    fn a_stack_that_runs_is_in_an_unknown_state_if_portainer_was_not_read() {
        for (running, by_portainer, expected) in [
            (2, 0, State::Unknown),
            (2, 2, State::Unknown),
            (0, 0, State::Stopped),
        ] {
            let facts = StateFacts {
                record: None,
                listed: Listed::Nothing,
                containers: Some(&counted(2, running, by_portainer)),
                has_files: true,
                is_adopted: false,
            };
            assert_eq!(state(&facts), expected, "{running} {by_portainer}");
        }
    }

    #[test]
    fn unknown_containers_make_the_state_unknown() {
        let facts = StateFacts {
            record: None,
            listed: Listed::All,
            containers: None,
            has_files: true,
            is_adopted: false,
        };
        assert_eq!(state(&facts), State::Unknown);
    }
}
