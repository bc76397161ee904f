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
    /// Whether containers were created outside of Portainer since.
    pub(super) is_by_hand: bool,
    /// Whether an adoption has sent it to Portainer.
    pub(super) was_adopted: bool,
    /// The run that has not ended.
    pub(super) interrupted: Option<&'a Unfinished>,
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
            Deployment::Inactive => StackState::StoppedInPortainer,
            Deployment::Deploying => StackState::InPortainer,
            Deployment::Active | Deployment::Failed(_) => StackState::WithoutContainers,
        },
        Some(_) if containers.are_stopped() => StackState::StoppedInPortainer,
        Some(_) => match facts.in_portainer {
            InPortainer::Nothing | InPortainer::UpToDate | InPortainer::OtherForm => {
                StackState::InPortainer
            }
            InPortainer::FromGit if facts.is_by_hand => StackState::Redeployed,
            InPortainer::FromGit => StackState::FromGit,
            InPortainer::LastSent | InPortainer::Differs => StackState::Both,
            InPortainer::Redeployed => StackState::Redeployed,
            InPortainer::Edited if facts.is_by_hand => StackState::EditedRedeployed,
            InPortainer::Edited => StackState::Edited,
        },
        None if facts.listed == Listed::Nothing && !containers.are_stopped() => StackState::Unknown,
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
        None if containers.all == 0 && facts.was_adopted && facts.listed == Listed::All => {
            StackState::NoLongerInPortainer
        }
        None if containers.all == 0 => StackState::NotStarted,
        None if containers.are_stopped() => StackState::Stopped,
        None if is_all_portainers => StackState::InPortainer,
        None => StackState::ByHand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state of a stack with all, the running and Portainer's containers; `None` is unknown.
    fn of(
        record: Option<(StackKind, Deployment)>,
        listed: Listed,
        containers: Option<(usize, usize, usize)>,
        has_files: bool,
        in_portainer: InPortainer,
    ) -> StackState {
        let record = record.map(|(kind, deployment)| Record {
            kind,
            deployment,
            ..Record::with_id("1")
        });
        let containers = containers.map(|(all, running, started_by_portainer)| Containers {
            all,
            running,
            paused: 0,
            started_by_portainer,
        });
        state(&StateFacts {
            record: record.as_ref(),
            listed,
            containers: containers.as_ref(),
            has_files,
            in_portainer,
            is_by_hand: false,
            was_adopted: false,
            interrupted: None,
        })
    }

    #[test]
    fn the_state_of_a_stack_without_a_portainer_stack() {
        use StackState as S;
        for (containers, has_files, listed, expected) in [
            (Some((2, 2, 0)), true, Listed::All, S::ByHand),
            (Some((2, 1, 1)), true, Listed::All, S::ByHand),
            (Some((2, 0, 0)), true, Listed::All, S::Stopped),
            (Some((0, 0, 0)), true, Listed::All, S::NotStarted),
            (Some((0, 0, 0)), true, Listed::Nothing, S::NotStarted),
            (Some((2, 2, 0)), false, Listed::All, S::Orphaned),
            (Some((2, 0, 0)), false, Listed::All, S::Orphaned),
            (Some((2, 2, 1)), false, Listed::All, S::PortainerGone),
            (Some((2, 2, 2)), true, Listed::All, S::PortainerGone),
            (Some((2, 0, 2)), true, Listed::All, S::PortainerGone),
            (None, true, Listed::All, S::Unknown),
            (Some((2, 2, 2)), true, Listed::Visible, S::InPortainer),
            (Some((2, 2, 2)), false, Listed::Visible, S::Unknown),
            (Some((2, 2, 0)), true, Listed::Visible, S::ByHand),
            (Some((2, 2, 0)), true, Listed::Nothing, S::Unknown),
            (Some((2, 2, 2)), true, Listed::Nothing, S::Unknown),
            (Some((2, 0, 0)), true, Listed::Nothing, S::Stopped),
        ] {
            let found = of(None, listed, containers, has_files, InPortainer::Nothing);
            assert_eq!(found, expected, "{containers:?} {has_files} {listed:?}");
        }
    }

    #[test]
    fn the_state_of_a_stack_with_a_portainer_stack() {
        use Deployment::{Active, Deploying, Failed, Inactive};
        use InPortainer::{Edited, LastSent, Nothing, UpToDate};
        use StackKind::{Compose, Kubernetes, Swarm};
        use StackState as S;
        let failed = Failed(None);
        for (kind, deployment, containers, in_portainer, expected) in [
            (Compose, Active, (2, 2, 2), Nothing, S::InPortainer),
            (Compose, Active, (2, 2, 0), UpToDate, S::InPortainer),
            (Compose, Active, (2, 2, 1), Nothing, S::InPortainer),
            (Compose, Active, (2, 2, 2), LastSent, S::Both),
            (Compose, Active, (2, 2, 2), Edited, S::Edited),
            (Compose, Active, (2, 0, 2), Edited, S::StoppedInPortainer),
            (Compose, Inactive, (0, 0, 0), Nothing, S::StoppedInPortainer),
            (Compose, Active, (0, 0, 0), Nothing, S::WithoutContainers),
            (Compose, failed, (0, 0, 0), Nothing, S::WithoutContainers),
            (Compose, Deploying, (0, 0, 0), Nothing, S::InPortainer),
            (Swarm, Active, (0, 0, 0), Nothing, S::Swarm),
            (Kubernetes, Active, (0, 0, 0), Nothing, S::Kubernetes),
        ] {
            let record = Some((kind, deployment.clone()));
            let found = of(record, Listed::All, Some(containers), true, in_portainer);
            assert_eq!(
                found, expected,
                "{deployment:?} {containers:?} {in_portainer:?}"
            );
        }
    }
}
