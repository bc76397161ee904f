//! What the Portainer stacks of the same name prevent.

use super::Blocking;
use crate::{
    finding::Finding,
    model::{Carried, Deployment, Record, Rights, StackKind},
    plan::{Facts, InPortainer, Request, losses::record},
    text::shell_word,
};

impl Blocking<'_, '_> {
    /// The Portainer stacks of this name.
    pub fn records(&mut self) {
        let Facts { endpoint, .. } = *self.facts;
        let own = self.facts.record.map_or("", |own| &own.record.id);
        for other in self
            .facts
            .remote
            .namesakes
            .iter()
            .map(|other| &other.record)
        {
            if other.endpoint_id == endpoint {
                let id = &other.id;
                self.add(
                    format!("Portainer stack {id} on environment {endpoint} has the same name as Portainer stack {own}"),
                    "delete one of them in Portainer: this removes the containers of the project, so take a copy of their data first",
                );
            }
        }
        let Some(record) = self.facts.record else {
            return;
        };
        self.record(record.record);
        let id = &record.record.id;
        let Facts { name, dir, .. } = *self.facts;
        if self.facts.is_portainers(dir) && !self.plan.sends_nothing() {
            self.add(
                format!("{dir} is the directory of Portainer stack {id}: the stack is in Portainer already"),
                format!("change the stack in Portainer, or write it into a directory of your own: `stacklift export {}`", shell_word(name)),
            );
        }
        if record.contents.is_none() && !self.facts.is_forbidden() {
            self.add(
                format!(
                    "cannot read Portainer stack {id}: what an update would replace is unknown"
                ),
                if self.facts.remote.rights == Rights::Administrator {
                    "see the warning about it"
                } else {
                    self.facts.remote.rights.remedy()
                },
            );
        }
        if record.record.is_from_git() {
            return;
        }
        let lost = record::services_lost(&record, self.facts.document);
        // Those that the file lacks since the last adoption are told of as containers.
        let is_edited = record.in_portainer != InPortainer::LastSent;
        if is_edited && !self.facts.sent.text.is_empty() && !self.facts.keep.orphans {
            self.only_in_portainer.clone_from(&lost);
            let what = format!("Portainer stack {id} has services that the Compose file lacks");
            let hint = "add them to the Compose file, or remove them from the stack in Portainer; to leave their containers as they are, pass --leave-orphans";
            self.blockers.extend(Finding::about(lost, what, hint));
        }
    }

    fn record(&mut self, record: &Record) {
        let id = &record.id;
        let other = match record.kind {
            StackKind::Compose => None,
            StackKind::Swarm => Some("a swarm"),
            StackKind::Kubernetes => Some("Kubernetes"),
        };
        if let Some(other) = other {
            self.add(
                format!("Portainer stack {id} has the same name and is a stack of {other}"),
                "delete it in Portainer first: Portainer allows each name only once",
            );
        }
        if record.deployment == Deployment::Deploying {
            self.add(
                format!("Portainer stack {id} is still deploying"),
                "wait until Portainer has finished, then run the command again; Portainer 2.41 to 2.43 can miss the end: upgrade it if this never changes",
            );
        }
        if !matches!(self.plan.request, Some(Request::Update(_))) {
            return;
        }
        let links = record.carries.iter().filter_map(|carried| match carried {
            Carried::Git(url) => Some(format!("it is deployed from Git: {url}")),
            Carried::AutoUpdate => Some("it is updated automatically".to_owned()),
            Carried::Webhook => Some("it has a webhook".to_owned()),
            Carried::Access => None,
        });
        let what = format!("an update of Portainer stack {id} would break its link");
        let hint = "change the file in the repository, or remove the link in Portainer first";
        self.blockers
            .extend(Finding::about(links.collect(), what, hint));
    }
}
