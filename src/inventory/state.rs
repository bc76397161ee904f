//! The state of a stack. `docs/reference/listing-stacks.md` defines the words.

use crate::{
    model::{Deployment, Record, StackKind},
    plan::InPortainer,
    report::{ListEntry, StackState},
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

/// The state of a stack with this Portainer stack and this unfinished run. `entry` is everything else that is known of it, and
/// `was_adopted` says whether an adoption has sent it to Portainer.
pub(super) fn state(
    entry: &ListEntry,
    record: Option<&Record>,
    listed: Listed,
    was_adopted: bool,
    interrupted: Option<&Unfinished>,
) -> StackState {
    match record.map(|record| record.kind) {
        Some(StackKind::Swarm) => return StackState::Swarm,
        Some(StackKind::Kubernetes) => return StackState::Kubernetes,
        Some(StackKind::Compose) | None => {}
    }
    match interrupted {
        Some(run) if run.left == Interrupted::InProgress => return StackState::InProgress,
        Some(run) if run.has_failed => return StackState::Failed,
        Some(_) => return StackState::Interrupted,
        None => {}
    }
    let Some(containers) = &entry.stack.containers else {
        return StackState::Unknown;
    };
    let has_files = entry.stack.dir.is_some();
    // Containers were created outside of Portainer since.
    let is_by_hand = !entry.adopt.by_hand.is_empty();
    let is_all_portainers = containers.started_by_portainer == containers.all;
    match record {
        Some(record) if containers.all == 0 => match record.deployment {
            Deployment::Inactive => StackState::StoppedInPortainer,
            Deployment::Deploying => StackState::InPortainer,
            Deployment::Active | Deployment::Failed(_) => StackState::WithoutContainers,
        },
        Some(_) if containers.are_stopped() => StackState::StoppedInPortainer,
        Some(_) => match entry.adopt.in_portainer {
            InPortainer::Nothing | InPortainer::UpToDate | InPortainer::OtherForm => {
                StackState::InPortainer
            }
            InPortainer::FromGit if is_by_hand => StackState::Redeployed,
            InPortainer::FromGit => StackState::FromGit,
            InPortainer::LastSent | InPortainer::Differs => StackState::Both,
            InPortainer::Redeployed => StackState::Redeployed,
            InPortainer::Edited if is_by_hand => StackState::EditedRedeployed,
            InPortainer::Edited => StackState::Edited,
        },
        None if listed == Listed::Nothing && !containers.are_stopped() => StackState::Unknown,
        // It may have a Portainer stack that was not listed.
        None if listed != Listed::All && containers.all > 0 && !has_files => StackState::Unknown,
        None if listed == Listed::All
            && containers.all > 0
            && (is_all_portainers || !has_files && containers.started_by_portainer > 0) =>
        {
            StackState::PortainerGone
        }
        None if !has_files => StackState::Orphaned,
        None if containers.all == 0 && was_adopted && listed == Listed::All => {
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
    use crate::{
        plan::Plan,
        report::{Containers, StackReport},
    };

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
        let entry = ListEntry {
            stack: StackReport {
                dir: has_files.then(|| "/opt/stacks/web".to_owned()),
                containers,
                ..StackReport::default()
            },
            adopt: Plan {
                in_portainer,
                ..Plan::default()
            },
            ..ListEntry::default()
        };
        state(&entry, record.as_ref(), listed, false, None)
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
