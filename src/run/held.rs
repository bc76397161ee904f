//! The volumes of containers with `--rm` (B28). When such a container stops, the engine deletes its anonymous volumes,
//! unless another container refers to them. So while something may stop it, a container that never starts does.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Mark, Run};
use crate::{
    failure::Failure,
    model::{Container, portainer_name},
    snapshot::Store,
};

/// The label of a container that only holds volumes. Its value is the project.
const HOLDS: &str = "stacklift.holds-volumes-of";
/// How the name of such a container begins.
const HOLDER: &str = "stacklift-holds-";

impl Run<'_> {
    /// Makes the engine keep the volumes of those `containers` that have `--rm`, until the run ends. Marks the stack first, so
    /// that the next run looks for what a killed one left.
    pub fn hold_volumes(&mut self, containers: &[&Container]) -> Result<()> {
        let engine = self.engine;
        let is_at_risk = |one: &&&Container| one.removes_itself() && !one.volumes().is_empty();
        for &container in containers.iter().filter(is_at_risk) {
            self.holds_volumes = true;
            self.store().mark_unfinished(self.restoring.as_deref())?;
            let name = format!("{HOLDER}{:.12}", container.id());
            // A killed run left it.
            if engine.container_by_name(&name)?.is_some() {
                continue;
            }
            let body = holder(container, &self.project());
            let kept = container.name();
            self.detail("hold", format!("the volumes of {kept}, which has --rm"));
            engine.create_container(&name, &body).map_err(|error| {
                Failure::new(format!("cannot keep the volumes of {kept}, which Docker deletes when {kept} stops (--rm)"))
                    .source(error)
                    .hint(format!("`docker rm -f {kept}` removes the container and keeps its volumes"))
            })?;
        }
        Ok(())
    }

    /// Removes the containers that hold volumes, not the volumes: those of this run, and those that a killed run left. While
    /// a request is unanswered, they stay.
    pub(super) fn release_volumes(&mut self) {
        let is_unfinished = || self.setup.store.get().is_some_and(Store::is_unfinished);
        let may_exist = self.holds_volumes || (self.mark != Mark::Set && is_unfinished());
        if !may_exist || self.mark == Mark::Reads || !self.open.is_empty() {
            return;
        }
        let project = self.project();
        // An image can have the label, too.
        let holds =
            |one: &Container| one.label(HOLDS) == Some(&project) && one.name().starts_with(HOLDER);
        let released = self.engine.list_all().and_then(|mut all| {
            all.retain(holds);
            self.engine.remove(&all)
        });
        if let Err(error) = released {
            self.mark = Mark::Stays;
            self.warn(format!(
                "containers that stacklift created to keep volumes may remain; the next run removes them: {error:#}"
            ));
        }
    }

    fn project(&self) -> String {
        portainer_name(&self.setup.place.name)
    }
}

/// A container that refers to the volumes of `container`: by name, so that no removal of it deletes them.
fn holder(container: &Container, project: &str) -> Value {
    let volumes = container.volumes().into_iter();
    let mut mounts: Vec<Value> = volumes
        .map(|(name, target)| {
            json!({
                "Type": "volume",
                "Source": name,
                "Target": target,
                "VolumeOptions": { "NoCopy": true },
            })
        })
        .collect();
    // The image may declare a volume where the container mounts something else. The engine would create another one there.
    for (target, _) in container.fields("/Config/Volumes") {
        if !mounts
            .iter()
            .any(|mount| mount["Target"] == target.as_str())
        {
            mounts.push(json!({ "Type": "tmpfs", "Target": target }));
        }
    }
    json!({
        "Image": container.image_id(),
        "Cmd": ["never-started"],
        "Labels": { (HOLDS): project },
        "HostConfig": { "NetworkMode": "none", "Mounts": mounts },
    })
}
