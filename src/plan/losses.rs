//! What works before a run and not after: by name, never by value (B01).

pub mod adopted;
pub mod containers;
pub mod foreign;
pub mod memory;
pub mod mounts;
pub mod networks;
pub mod ports;
pub mod record;
pub mod replacement;
mod settings;
pub mod text;

use std::collections::BTreeSet;

use crate::{
    finding::{Finding, Kind},
    model::{Carried, Changes, Container},
    plan::{
        Facts, Fate, ServicePlan, fate_of,
        service::{called, row_of},
    },
    text::first_of,
};

impl Finding {
    /// A loss of a container.
    pub fn of_container(container: &Container, tool: &str, kind: Kind, message: &str) -> Self {
        let service = container.compose_label(tool, "service");
        Self {
            service: service.map(str::to_owned),
            ..Self::of_stack(message).on(container.name()).of_kind(kind)
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
            Carried::Access => loss.of_kind(Kind::Access),
            _ => loss,
        }
    }

    /// Whether nothing is missed afterwards: the user changed it, or it only runs again. An adoption refuses variables
    /// that only a shell had: what is left was changed in the files. A migration cannot tell.
    pub fn is_change(&self, is_adoption: bool) -> bool {
        match self.kind {
            Kind::Starts | Kind::Connected | Kind::UseUntilRecreated => true,
            Kind::Replicas { .. } | Kind::Variables | Kind::Image | Kind::Edited => is_adoption,
            _ => false,
        }
    }

    /// How many containers of a service are removed, if no row names them.
    pub fn removed(&self, services: &[ServicePlan]) -> Option<String> {
        let Kind::Replicas { containers, after } = &self.kind else {
            return None;
        };
        let (service, now) = (self.service.as_deref()?, containers.len());
        let are_named = services.iter().any(|row| row.removes_one_of(containers));
        let (count, verb) = (now - after, if now - after == 1 { "is" } else { "are" });
        (!are_named).then(|| format!("{count} of the {now} containers of {service} {verb} removed"))
    }

    /// What it is about: the service, or the container if its service has several.
    pub fn owner<'s>(&'s self, services: &'s [ServicePlan]) -> Option<&'s str> {
        let subject = self.subject.as_deref();
        let called = subject.and_then(|subject| called(services, subject));
        called.or(self.service.as_deref()).or(subject)
    }

    /// In a sentence of its own that names its [`Self::owner`].
    pub fn told(&self, services: &[ServicePlan]) -> String {
        let owner = self.owner(services).map(str::to_owned);
        let told = Self {
            subject: owner,
            ..self.clone()
        };
        told.to_string()
    }

    /// Whether the rows, or the number of lines that change, say it already.
    pub fn is_told(&self, services: &[ServicePlan]) -> bool {
        let own = self.subject.as_ref();
        let own = own.and_then(|subject| row_of(services, subject));
        match &self.kind {
            Kind::Replicas { containers, .. } => services.iter().any(|row| {
                let is_own = Some(&row.service) == self.service.as_ref();
                row.removes_one_of(containers) || is_own && row.keeps_unknown_ones()
            }),
            Kind::Starts => own.is_some_and(|row| matches!(row.fate, Fate::Started(_))),
            Kind::Image => own.is_some_and(|row| row.tells_image),
            _ => false,
        }
    }
}

/// How a loss begins that a container has only if Portainer recreates it, unless that is certain.
fn if_recreated(facts: &Facts, services: &[ServicePlan], container: &Container) -> &'static str {
    match fate_of(services, container.name()) {
        Some(Fate::Recreated(_) | Fate::Removed(_) | Fate::Restarted(_)) => "",
        _ if facts.is_replaced_by_portainer(container) => "if it is recreated: ",
        _ => "",
    }
}

/// Names the changed files of a container's own layer that hold data, and that are lost with it, and those of the image that are
/// deleted: a new container has them again. `placed` are those that Compose itself puts into it.
pub fn files(container: &Container, changes: &Changes, placed: &[String]) -> Option<String> {
    let listed = changes.listed.iter().map(|change| change.path.as_str());
    let mut paths: Vec<&str> = listed.collect();
    paths.retain(|path| placed.iter().all(|placed| placed != path));
    let unlisted = changes.total.saturating_sub(changes.listed.len());
    let mut files = container.own_files(&paths, placed);
    files.sort_unstable();
    let gone: BTreeSet<&str> = changes.deleted().collect();
    let (deleted, written): (Vec<&str>, Vec<_>) =
        files.into_iter().partition(|path| gone.contains(path));
    let written = first_of(&written, unlisted);
    let written = written.map(|files| format!("files written inside the container: {files}"));
    let deleted = first_of(&deleted, 0);
    let deleted = deleted.map(|files| format!("the deletion of files of the image: {files}"));
    let told: Vec<String> = written.into_iter().chain(deleted).collect();
    (!told.is_empty()).then(|| told.join("; "))
}
