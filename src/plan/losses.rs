//! What works before a run and not after: by name, never by value (B01).

pub mod containers;
pub mod foreign;
pub mod limits;
pub mod memory;
pub mod mounts;
pub mod networks;
pub mod ports;
pub mod record;
pub mod replacement;
pub mod reported;

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    model::{Carried, Changes, Grant},
    plan::{Fate, ServicePlan, fate_of, fates},
    rewrite::loss::{Owner, TextLoss, TextLossKind},
    snapshot::Inspected,
    text::{Mask, printable},
};

/// Something that is lost or changes.
#[derive(Debug, Clone, Eq, Serialize, JsonSchema)]
pub struct Loss {
    /// The service that it belongs to, if it belongs to one.
    pub service: Option<String>,
    /// What it belongs to: `service web`, the name of a container, `Portainer stack`; null for the whole stack.
    pub subject: Option<String>,
    pub message: String,
    #[serde(skip)]
    pub kind: LossKind,
}

/// A container may write files all the time: which ones it has written does not make another loss.
impl PartialEq for Loss {
    fn eq(&self, other: &Self) -> bool {
        (&self.subject, &self.kind) == (&other.subject, &other.kind)
            && (self.kind == LossKind::Files || self.message == other.message)
    }
}

/// What the plan, its words and the comparison afterwards distinguish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LossKind {
    Other,
    /// The files that a container has written.
    Files,
    /// The files that a container has in memory (B36).
    Memory,
    /// Of the Portainer stack.
    Record,
    /// The access rights of the Portainer stack, which an update keeps (M16).
    Access,
    /// It does not run, and will (N08).
    Starts,
    /// It gets a network, an alias or an address that the text gives it (B38).
    Connected,
    /// Portainer recreates or removes containers that this run does not remove (B10, M05, M06).
    Adopted,
    /// A container that the text does not start: its service is unknown or inactive (M14), or it is a one-off container.
    Orphan,
    /// An anonymous volume, which a new container replaces with an empty one (M05), or which `--rm` deletes.
    AnonymousVolume {
        volume: String,
        is_deleted: bool,
    },
    /// A container's variables.
    Variables,
    /// The image name refers to another image.
    Image,
    /// Something else of a container that a user changes in the text.
    Edited,
    /// Containers of a service beyond those that the text starts.
    Replicas {
        now: usize,
        after: usize,
    },
    /// Those who may use a container, and not its successor (B23).
    Use(BTreeSet<Grant>),
    /// Those who may use a container until it is recreated, and not the stack (B23).
    UseUntilRecreated,
    /// A container that the run does not recreate loses the use of one that it touches (B21).
    Foreign,
}

const PORTAINER_STACK: &str = "Portainer stack";

impl Loss {
    fn new(subject: Option<String>, kind: LossKind, message: &str) -> Self {
        Self {
            service: None,
            subject,
            message: printable(message).into_owned(),
            kind,
        }
    }

    /// A loss of the whole stack.
    pub fn of_stack(message: &str) -> Self {
        Self::new(None, LossKind::Other, message)
    }

    /// A loss of the Portainer stack that is deleted or updated.
    pub fn of_record(message: &str) -> Self {
        Self::new(Some(PORTAINER_STACK.to_owned()), LossKind::Record, message)
    }

    pub fn of_service(service: &str, kind: LossKind, message: &str) -> Self {
        Self {
            service: Some(service.to_owned()),
            ..Self::new(Some(format!("service {service}")), kind, message)
        }
    }

    pub fn of_container(container: Inspected, tool: &str, kind: LossKind, message: &str) -> Self {
        let service = container.compose_label(tool, "service");
        Self {
            service: service.map(str::to_owned),
            ..Self::new(Some(container.name().to_owned()), kind, message)
        }
    }

    fn of_owner(owner: &Owner, message: &str) -> Self {
        Self {
            service: match owner {
                Owner::Service(name) => Some(name.clone()),
                _ => None,
            },
            ..Self::new(Some(owner.to_string()), LossKind::Other, message)
        }
    }

    /// What a deleted Portainer stack has and the new one will not have.
    pub fn of_carried(carried: &Carried) -> Self {
        let what = match carried {
            Carried::Git(url) => &format!("Git link to {url}"),
            Carried::AutoUpdate => "automatic update",
            Carried::Webhook => "webhook",
            Carried::Access => "access rights",
        };
        let loss = Self::of_record(&format!("the Portainer stack's {what}"));
        match carried {
            Carried::Access => loss.of_kind(LossKind::Access),
            _ => loss,
        }
    }

    #[must_use]
    pub fn of_kind(self, kind: LossKind) -> Self {
        Self { kind, ..self }
    }

    /// Hides the values of `.env`, unless they are paths or plain words (B13).
    pub fn hide_values(&mut self, mask: &Mask) {
        self.message = mask.hide_unless(&self.message, |hit| hit.is_plain);
    }

    /// Whether nothing is missed afterwards: the user changed it, or it only runs again. An adoption refuses variables
    /// that only a shell had: what is left was changed in the files. A migration cannot tell.
    pub fn is_change(&self, is_adoption: bool) -> bool {
        match self.kind {
            LossKind::Starts | LossKind::Connected | LossKind::UseUntilRecreated => true,
            LossKind::Replicas { .. }
            | LossKind::Variables
            | LossKind::Image
            | LossKind::Edited => is_adoption,
            _ => false,
        }
    }

    /// How many containers of a service are removed, if no row names them.
    pub fn removed(&self, services: &[ServicePlan]) -> Option<String> {
        let LossKind::Replicas { now, after } = self.kind else {
            return None;
        };
        let service = self.service.as_deref()?;
        let surplus = fates::surplus(service, after);
        let are_named = services.iter().any(|one| one.fate == surplus);
        let (count, verb) = (now - after, if now - after == 1 { "is" } else { "are" });
        (!are_named).then(|| format!("{count} of the {now} containers of {service} {verb} removed"))
    }

    /// Whether the rows, or the number of lines that change, say it already.
    pub fn is_told(&self, services: &[ServicePlan]) -> bool {
        let subject = self.subject.as_deref();
        let own = subject.and_then(|subject| fate_of(services, subject));
        let mut services = services.iter();
        match self.kind {
            LossKind::Replicas { now, after } => {
                let service = self.service.as_deref().unwrap_or_default();
                let (fewer, surplus) = (fates::fewer(now, after), fates::surplus(service, after));
                services
                    .any(|one| one.fate == surplus || (one.service == service && one.fate == fewer))
            }
            LossKind::Starts => matches!(own, Some(Fate::Started(_))),
            LossKind::Image => own.is_some_and(|fate| fate.reason() == Some(&self.message)),
            _ => false,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some(subject) if !matches!(self.kind, LossKind::Record | LossKind::Access) => {
                write!(f, "{}: {}", printable(subject), self.message)
            }
            _ => f.write_str(&self.message),
        }
    }
}

/// The losses of the text, with the variables of one file and one owner grouped.
pub fn text_lost(losses: &[TextLoss]) -> Vec<Loss> {
    let mut lost = Vec::new();
    for (at, loss) in losses.iter().enumerate() {
        let owner = &loss.owner;
        let TextLossKind::Variable { file, .. } = &loss.kind else {
            lost.push(Loss::of_owner(owner, &loss.to_string()));
            continue;
        };
        let name = |one: &TextLoss| match &one.kind {
            TextLossKind::Variable { name, file: of } if one.owner == *owner && of == file => {
                Some(name.clone())
            }
            _ => None,
        };
        if !losses[..at].iter().any(|one| name(one).is_some()) {
            let names: Vec<String> = losses.iter().filter_map(name).collect();
            let names = names.join(", ");
            let message = format!("variables of {file} no longer set: {names}");
            lost.push(Loss::of_owner(owner, &message));
        }
    }
    lost
}

/// How many files of one container are named.
const FILES_SHOWN: usize = 5;

/// Names the changed files of a container's own layer that hold data, and that are lost with it. `placed` are those that
/// Compose itself puts into it.
pub fn files(container: Inspected, changes: &Changes, placed: &[String]) -> Option<String> {
    let listed = changes.listed.iter().map(|change| change.path.as_str());
    let mut paths: Vec<&str> = listed.collect();
    paths.retain(|path| placed.iter().all(|placed| placed != path));
    let unlisted = changes.total.saturating_sub(changes.listed.len());
    let files = container.own_files(&paths, placed);
    let shown = &files[..files.len().min(FILES_SHOWN)];
    let more = match files.len() - shown.len() + unlisted {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = shown.join(", ");
    (!files.is_empty() || unlisted > 0)
        .then(|| format!("files written inside the container: {named}{more}"))
}
