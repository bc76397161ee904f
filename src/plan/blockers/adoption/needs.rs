//! What the deployment needs: images, ports and container names.

use std::collections::{BTreeMap, BTreeSet};

use composefile::document::Document;
use serde_json::Value;

use super::Blocking;
use crate::{
    model::{Container, Pull, Variable},
    plan::{
        Fate, Sent,
        blockers::conflicts::{held_by, used_on_host},
        blockers::missing,
        facts::services::{SentStack, with_sent},
    },
    snapshot::Inspected,
    text::{counted, shell_word},
};

impl Blocking<'_, '_> {
    /// Images that are not on this engine. A failed pull or build would remove the whole stack (M06).
    pub fn images(&mut self, stack: &SentStack) {
        let (mut absent, mut pull, mut build) = (Vec::new(), Vec::new(), Vec::new());
        let (tool, dir) = (self.facts.tool, self.facts.dir);
        for (service, image) in absent_images(stack, &self.facts.details.images) {
            absent.push(format!("{service}: {}", image.image));
            let document = self.facts.source.document.ok();
            if document.is_some_and(|document| is_built(document, service)) {
                build.push(service);
            } else {
                let arguments = image.arguments().join(" ").replace(" -- ", " ");
                pull.push(format!("{tool} {arguments}"));
            }
        }
        pull.sort();
        pull.dedup();
        let images = pull.len() + build.len();
        if !build.is_empty() {
            let dir = shell_word(dir);
            pull.push(format!(
                "cd {dir} && {tool} compose build {}",
                build.join(" ")
            ));
        }
        if !absent.is_empty() {
            self.add_as(
                "image missing",
                format!("{} not on this host", counted_images(images)),
                match (build.is_empty(), pull.as_slice()) {
                    (true, [_]) => format!("pass --pull, or pull it first: {}", pull.join(" && ")),
                    (true, _) => format!("pass --pull, or pull them first: {}", pull.join(" && ")),
                    (false, _) => format!("get them first: {}", pull.join(" && ")),
                },
                absent,
            );
        }
    }

    /// Directories and files that a container mounts in the short syntax, and that were deleted since: Docker would mount
    /// an empty directory in their place. One that no container mounts yet is created on purpose.
    pub fn sources(&mut self, stack: &SentStack) {
        for (service, source) in missing::missing_sources(self.facts, stack, true) {
            let shown = self.facts.below_dir(&source);
            self.add_as(
                "file or folder missing",
                format!("{service} mounts {shown}, which does not exist"),
                format!("create {source}, or correct the path in {}", self.file),
                Vec::new(),
            );
        }
    }

    /// Ports and names that something else holds, for the services whose containers are created or replaced.
    pub fn held(&mut self, stack: &SentStack, active: &BTreeSet<&str>) {
        let fates: BTreeMap<&str, &Fate> = self
            .plan
            .services
            .iter()
            .map(|one| (one.service.as_str(), &one.fate))
            .collect();
        let is_asked = |service: &str| !matches!(fates.get(service), Some(Fate::Unchanged));
        // The containers that stay beside the services hold their ports and names as well.
        let staying: BTreeSet<&str> = self
            .containers()
            .filter(|&one| {
                let service = self.label(one, "service").unwrap_or_default();
                !active.contains(service) || one.is_one_off(self.facts.tool)
            })
            .map(Inspected::id)
            .collect();
        let own = self.facts.listed().iter();
        let own = own.filter(|one| staying.iter().any(|id| id.starts_with(&one.id)));
        let others: Vec<&Container> = self.facts.others.iter().flatten().chain(own).collect();
        let by_containers = held_by(&others, stack, is_asked).into_iter();
        let by_programs = used_on_host(self.facts, stack, is_asked).into_iter();
        for used in by_containers {
            self.add_as("port or name in use", used.message, used.hint, Vec::new());
        }
        for used in by_programs {
            let hint = "stop that program, or change the port";
            self.add_as("port in use", used, hint.to_owned(), Vec::new());
        }
    }
}

fn counted_images(count: usize) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(count, "image"))
}

/// The services whose image is not on this engine, with the image. Other policies than pulling what is missing are refused
/// with a reason of their own.
fn absent_images<'d>(
    stack: &SentStack<'_, 'd, '_>,
    images: &BTreeMap<String, Option<Value>>,
) -> Vec<(&'d str, Pull)> {
    let mut absent = Vec::new();
    for service in stack.active() {
        let policy = service.given(&["pull_policy"]).known();
        let is_said = matches!(policy.as_deref(), Some("never" | "build"));
        let image = service
            .image()
            .filter(|image| matches!(images.get(image), Some(None)));
        if let Some(image) = image.filter(|_| !is_said && service.replicas() != Some(0)) {
            absent.push((service.name, service.pull(image)));
        }
    }
    absent
}

/// The images that are not on this engine, of a text and its variables; none of them if one has to be built. `on_disk` is the
/// text that says how.
pub fn images_to_pull(
    (text, env): (&str, &[Variable]),
    on_disk: &str,
    project: &str,
    images: &BTreeMap<String, Option<Value>>,
) -> Vec<Pull> {
    let Ok(document) = Document::parse(on_disk) else {
        return Vec::new();
    };
    with_sent(Sent { text, env }, project, |_, stack| {
        let absent = stack
            .map(|stack| absent_images(stack, images))
            .unwrap_or_default();
        if absent
            .iter()
            .any(|(service, _)| is_built(&document, service))
        {
            return Vec::new();
        }
        let images: BTreeSet<Pull> = absent.into_iter().map(|(_, image)| image).collect();
        images.into_iter().collect()
    })
}

/// Whether a text says how to build the image of a service.
fn is_built(document: &Document, service: &str) -> bool {
    let service = document.get("services").and_then(|all| all.get(service));
    service.is_some_and(|service| service.get("build").is_some())
}
