//! The files of a container's own layer. They are removed together with the container (M05). A restore puts back those
//! that the snapshot contains.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::{
    Restoration,
    plan::{is_stranger, named},
};
use crate::{
    engine::Engine,
    model::{Changes, Container},
    run::read_layer,
    snapshot::{Known, Layer, Snapshot},
    text::{counted, first_of},
};

/// The files of a container's own layer.
#[derive(Debug, Default)]
pub(super) struct LayerFiles {
    listed: Vec<String>,
    /// The number of further files.
    unlisted: usize,
}

impl LayerFiles {
    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.unlisted == 0
    }

    /// A line about the files of a container.
    pub(super) fn line(&self, container: &Container) -> String {
        let (name, files) = (container.name(), self.shown());
        format!("{name}: files written inside the container: {files}")
    }

    /// `3 files written since then are lost: a, b, c`, for what happened to them and what becomes of them; nothing without a file.
    pub(super) fn told(&self, happened: &str, becomes: &str) -> Option<String> {
        let count = self.listed.len() + self.unlisted;
        let be = if count == 1 { "is" } else { "are" };
        let (files, shown) = (counted(count, "file"), self.shown());
        (count > 0).then(|| format!("{files} {happened} {be} {becomes}: {shown}"))
    }

    /// The first names, and the number of the others.
    pub(super) fn shown(&self) -> String {
        first_of(&self.listed, self.unlisted).unwrap_or_default()
    }
}

impl FromIterator<String> for LayerFiles {
    fn from_iter<I: IntoIterator<Item = String>>(paths: I) -> Self {
        Self {
            listed: paths.into_iter().collect(),
            unlisted: 0,
        }
    }
}

/// The files in a container's own layer that the snapshot does not contain.
pub(super) fn unsaved(container: &Container, snapshot: &Snapshot) -> LayerFiles {
    let changes = snapshot.changes.get(container.id()).and_then(Known::known);
    let Some(changes) = changes else {
        return LayerFiles::default();
    };
    let layer = snapshot.layers.get(container.id());
    LayerFiles {
        listed: layer.map_or_else(Vec::new, |layer| layer.unsaved.clone()),
        unlisted: changes.total.saturating_sub(changes.listed.len()),
    }
}

/// The files in a container's own layer that `replaced` contains and that were written since `snapshot`.
pub(super) fn written_since(
    container: &Container,
    replaced: &Snapshot,
    snapshot: &Snapshot,
) -> LayerFiles {
    let files = |snapshot: &Snapshot, container: &Container| {
        let layer = snapshot.layers.get(container.id());
        layer.map(Layer::files).unwrap_or_default()
    };
    let mut all = snapshot.containers.items().iter();
    let old = all.find(|old| old.name() == container.name());
    let before = old.map(|old| files(snapshot, old)).unwrap_or_default();
    let now = files(replaced, container).into_iter();
    let new = now.filter(|(path, file)| before.get(path) != Some(file));
    new.map(|(path, _)| path).collect()
}

/// Copies the saved files into a container that was never started, and reads them back. Returns the files that differ.
pub(super) fn fill(
    engine: &Engine,
    (container, id): (&Container, &str),
    layer: &Layer,
) -> Result<LayerFiles> {
    if let Err(error) = engine.unpack(id, &layer.archive) {
        bail!(
            "{} was not started, because its files could not be restored: {error:#}",
            container.name()
        );
    }
    let found = engine.inspect_containers([id])?;
    let changes = engine.changes(id)?;
    let filled = found.first();
    let layer_now = filled.map(|now| read_layer(engine, now, &changes, false));
    let now = layer_now.unwrap_or_default().files();
    let mut wanted = layer.files();
    wanted.retain(|path, file| now.get(path) != Some(file));
    Ok(wanted.into_keys().collect())
}

impl Restoration<'_, '_, '_> {
    /// The containers that another run created, and that lack saved files, by ID.
    pub(super) fn incomplete(&self, existing: &[Container]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for wanted in self.snapshot().containers.items() {
            let now = named(existing, wanted.name()).filter(|now| now.id() != wanted.id());
            // One that is gone is created anyway.
            if let Some(now) = now
                && let Ok(missing) = self.lacks(wanted, now)
                && !missing.is_empty()
            {
                found.insert(now.id().to_owned());
            }
        }
        found
    }

    /// The saved files that a container does not have, unless this run put them there.
    fn lacks(&self, wanted: &Container, now: &Container) -> Result<LayerFiles> {
        let layer = self.snapshot().layers.get(wanted.id());
        let layer = layer.filter(|_| !self.filled.contains(now.id()));
        layer.map_or(Ok(LayerFiles::default()), |layer| {
            Ok(missing(layer, &self.run.engine.changes(now.id())?))
        })
    }

    /// The saved containers that were recreated, each with its successor.
    fn recreated<'c>(
        &'c self,
        existing: &'c [Container],
    ) -> impl Iterator<Item = (&'c Container, &'c Container)> {
        let snapshot = self.snapshot();
        snapshot.containers.items().iter().filter_map(|wanted| {
            let now = named(existing, wanted.name())?;
            let is_new = !is_stranger(snapshot, now) && now.id() != wanted.id();
            is_new.then_some((wanted, now))
        })
    }

    /// The files of their images that were deleted in the saved containers, and that the recreated ones have again.
    pub(super) fn undeleted(&self, existing: &[Container]) -> Vec<String> {
        let told = self.recreated(existing).filter_map(|(wanted, _)| {
            let changes = self.snapshot().changes.get(wanted.id())?.known()?;
            let deleted: Vec<&str> = changes.deleted().collect();
            let files = first_of(&wanted.own_files(&deleted, &[]), 0)?;
            let name = wanted.name();
            Some(format!(
                "files of its image that were deleted in {name} exist again: {files}"
            ))
        });
        told.collect()
    }

    /// The files of the saved containers that the recreated ones do not have. A file may have changed since its container
    /// started, but it must exist, unless this run put it there. Returns those that can be put back, and those that are lost.
    pub(super) fn wrong_files(
        &self,
        existing: &[Container],
        unchecked: &mut Vec<String>,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let snapshot = self.snapshot();
        let (mut wrong, mut all_lost) = (Vec::new(), Vec::new());
        for (wanted, now) in self.recreated(existing) {
            let name = wanted.name();
            let lost = unsaved(wanted, snapshot);
            if !lost.is_empty() {
                all_lost.push(format!(
                    "{name} differs: these files inside the container are lost: {}",
                    lost.shown()
                ));
            }
            if let Some(Known::Unknown(_)) = snapshot.changes.get(wanted.id()) {
                unchecked.push(format!("the files inside {name}"));
            }
            let missing = self.lacks(wanted, now)?;
            if !missing.is_empty() {
                wrong.push(format!(
                    "{name} differs: these files inside the container are missing: {} (to restore them, run the command again: it recreates the container)",
                    missing.shown()
                ));
            }
        }
        Ok((wrong, all_lost))
    }
}

/// The saved files that are not in a layer with these changes.
fn missing(layer: &Layer, changes: &Changes) -> LayerFiles {
    if changes.total > changes.listed.len() {
        return LayerFiles::default();
    }
    let now: BTreeSet<&str> = changes
        .listed
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    let saved = layer.files().into_keys();
    saved.filter(|path| !now.contains(path.as_str())).collect()
}
