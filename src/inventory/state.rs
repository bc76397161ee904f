//! The state of a stack. `docs/reference/listing-stacks.md` defines the words.

use crate::{
    model::{Deployment, Record, StackKind},
    plan::InPortainer,
    report::{Containers, StackState},
    snapshot::{Interrupted, Unfinished},
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
    pub(super) containers: Option<&'a Containers>,
    /// Whether a Compose file is on this host, or may be.
    pub(super) has_files: bool,
    /// What Portainer has, compared with what an adoption would send and with what was last sent (B22).
    pub(super) in_portainer: InPortainer,
    /// The run that has not ended.
    pub(super) interrupted: Option<Unfinished>,
}

pub(super) fn state(facts: &StateFacts) -> StackState {
    match facts.record.map(|record| record.kind) {
        Some(StackKind::Swarm) => return StackState::Swarm,
        Some(StackKind::Kubernetes) => return StackState::Kubernetes,
        Some(StackKind::Compose) | None => {}
    }
    match facts.interrupted {
        Some(run) if run.left == Interrupted::InProgress => return StackState::InProgress,
        Some(run) if run.has_failed => return StackState::Failed,
        Some(_) => return StackState::Interrupted,
        None => {}
    }
    let Some(containers) = facts.containers else {
        return StackState::Unknown;
    };
    let is_all_portainers = containers.started_by_portainer == containers.all;
    match facts.record {
        Some(record) if containers.all == 0 => match record.deployment {
            Deployment::Inactive => StackState::Stopped,
            Deployment::Deploying => StackState::InPortainer,
            Deployment::Active | Deployment::Failed(_) => StackState::Orphaned,
        },
        Some(_) if containers.running == 0 => StackState::Stopped,
        Some(_) => match facts.in_portainer {
            InPortainer::Nothing | InPortainer::UpToDate => StackState::InPortainer,
            InPortainer::LastSent => StackState::Both,
            InPortainer::Redeployed => StackState::Redeployed,
            InPortainer::Edited | InPortainer::Differs => StackState::Edited,
        },
        None if facts.listed == Listed::Nothing && containers.running > 0 => StackState::Unknown,
        // It may have a Portainer stack that was not listed.
        None if facts.listed != Listed::All && containers.all > 0 && !facts.has_files => {
            StackState::Unknown
        }
        None if facts.listed == Listed::All
            && containers.all > 0
            && (is_all_portainers || !facts.has_files && containers.started_by_portainer > 0) =>
        {
            StackState::PortainerGone
        }
        None if !facts.has_files => StackState::Orphaned,
        None if containers.running == 0 => StackState::Stopped,
        None if is_all_portainers => StackState::InPortainer,
        None => StackState::ByHand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: StackKind, deployment: Deployment) -> Record {
        Record {
            kind,
            deployment,
            ..Record::with_id("1")
        }
    }

    fn counted(all: usize, running: usize, started_by_portainer: usize) -> Containers {
        Containers {
            all,
            running,
            started_by_portainer,
        }
    }

    #[test]
    fn the_state_of_a_stack_without_a_portainer_stack() {
        for (containers, has_files, known, expected) in [
            ((2, 2, 0), true, Listed::All, StackState::ByHand),
            ((2, 1, 1), true, Listed::All, StackState::ByHand),
            ((2, 0, 0), true, Listed::All, StackState::Stopped),
            ((0, 0, 0), true, Listed::All, StackState::Stopped),
            ((2, 2, 0), false, Listed::All, StackState::Orphaned),
            ((2, 0, 0), false, Listed::All, StackState::Orphaned),
            ((2, 2, 1), false, Listed::All, StackState::PortainerGone),
            ((2, 2, 2), true, Listed::All, StackState::PortainerGone),
            ((2, 0, 2), true, Listed::All, StackState::PortainerGone),
            ((2, 2, 2), true, Listed::Visible, StackState::InPortainer),
            ((2, 2, 2), false, Listed::Visible, StackState::Unknown),
            ((2, 2, 0), true, Listed::Visible, StackState::ByHand),
        ] {
            let (all, running, by) = containers;
            let facts = StateFacts {
                record: None,
                listed: known,
                containers: Some(&counted(all, running, by)),
                has_files,
                in_portainer: InPortainer::Nothing,
                interrupted: None,
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
        use Deployment::{Active, Deploying, Failed, Inactive};
        use InPortainer::{Edited, LastSent, Nothing, UpToDate};
        use StackState as S;
        let of = |kind, deployment, containers: (usize, usize, usize), in_portainer| {
            let (all, running, by) = containers;
            state(&StateFacts {
                record: Some(&record(kind, deployment)),
                listed: Listed::All,
                containers: Some(&counted(all, running, by)),
                has_files: true,
                in_portainer,
                interrupted: None,
            })
        };
        for (deployment, containers, in_portainer, expected) in [
            (Active, (2, 2, 2), Nothing, S::InPortainer),
            (Active, (2, 2, 0), UpToDate, S::InPortainer),
            (Active, (2, 2, 1), Nothing, S::InPortainer),
            (Active, (2, 2, 2), LastSent, S::Both),
            (Active, (2, 2, 2), Edited, S::Edited),
            (Active, (2, 0, 2), Edited, S::Stopped),
            (Inactive, (0, 0, 0), Nothing, S::Stopped),
            (Active, (0, 0, 0), Nothing, S::Orphaned),
            (Failed(None), (0, 0, 0), Nothing, S::Orphaned),
            (Deploying, (0, 0, 0), Nothing, S::InPortainer),
        ] {
            let found = of(
                StackKind::Compose,
                deployment.clone(),
                containers,
                in_portainer,
            );
            assert_eq!(
                found, expected,
                "{deployment:?} {containers:?} {in_portainer:?}"
            );
        }
        assert_eq!(of(StackKind::Swarm, Active, (0, 0, 0), Nothing), S::Swarm);
        assert_eq!(
            of(StackKind::Kubernetes, Active, (0, 0, 0), Nothing),
            S::Kubernetes
        );
    }

    #[test]
    fn a_stack_that_runs_is_in_an_unknown_state_if_portainer_was_not_read() {
        for (running, by_portainer, expected) in [
            (2, 0, StackState::Unknown),
            (2, 2, StackState::Unknown),
            (0, 0, StackState::Stopped),
        ] {
            let facts = StateFacts {
                record: None,
                listed: Listed::Nothing,
                containers: Some(&counted(2, running, by_portainer)),
                has_files: true,
                in_portainer: InPortainer::Nothing,
                interrupted: None,
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
            in_portainer: InPortainer::Nothing,
            interrupted: None,
        };
        assert_eq!(state(&facts), StackState::Unknown);
    }
}
