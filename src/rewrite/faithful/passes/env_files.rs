//! Turns `.env` into `stack.env`, and writes the variables of other env files into `environment` (M09–M11).
//!
//! They do not go to `stack.env`, because every service that names that file would get them.

use std::collections::BTreeMap;

use composefile::{
    document::{NodeMap, NodeSet},
    reader::Reader,
    services::Service,
};

use crate::rewrite::faithful::{
    Finding, Kind,
    findings::{Findings, ItemEdit, Secrecy},
    inline::{Addition, AllDropped, Dropped, inline},
    listed::{Listed, unique},
    reading::{self, Explicit, Sources},
    runs::Runs,
    service_files::ServiceFiles,
    sharing::overridden,
};

/// What becomes of an env file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disposition {
    /// It is the stack's `.env`, and becomes `stack.env`.
    Renamed,
    /// It is empty, or optional and does not exist.
    Omitted,
    /// Its variables go to `environment`.
    Inlined,
    /// It is required and does not exist.
    Missing,
}

/// Handles `env_file` of every service, and writes the variables of `runs`.
pub(super) fn env_files<'d>(reader: &Reader<'d, '_>, runs: &Runs) -> Findings<'d> {
    let mut pass = EnvFiles {
        reader,
        runs,
        files: ServiceFiles::new(reader),
        dispositions: NodeMap::default(),
    };
    let mut found = Findings::default();
    pass.decide(&mut found);
    let dropped = pass.drop(&mut found);
    let additions = pass.additions(&mut found);
    found.append(inline(reader, &additions, &dropped));
    found
}

struct EnvFiles<'r, 'd, 'a> {
    reader: &'r Reader<'d, 'a>,
    runs: &'r Runs,
    files: ServiceFiles<'r, 'd, 'a>,
    /// By the item that names the file.
    dispositions: NodeMap<Disposition>,
}

impl<'d> EnvFiles<'_, 'd, '_> {
    fn is(&self, disposition: Disposition, listed: &Listed<'d>) -> bool {
        self.dispositions.get(&listed.item.id()) == Some(&disposition)
    }

    fn decide(&mut self, found: &mut Findings<'d>) {
        for &service in &self.reader.services {
            for listed in self.files.of(service) {
                let item = listed.item.id();
                if self.dispositions.contains_key(&item) {
                    continue;
                }
                let disposition = disposition(self.reader, listed);
                self.dispositions.insert(item, disposition);
                if listed.format.as_deref().is_some_and(|name| name != "raw") {
                    let message = format!("unknown `format` of the env file {}", listed.shown());
                    let hint = "remove it, or write `format: raw`";
                    found.block(listed.path, Kind::BadEnvFile, message, hint);
                }
                match disposition {
                    Disposition::Renamed if listed.path.as_str() != Some("stack.env") => {
                        found.set(listed.path, "stack.env".into(), Secrecy::Public);
                    }
                    Disposition::Missing => found.blockers.push(listed.missing(service)),
                    Disposition::Renamed | Disposition::Inlined | Disposition::Omitted => {}
                }
            }
        }
    }

    /// Removes what Portainer cannot read. Returns the `env_file` keys of which nothing stays.
    fn drop(&self, found: &mut Findings<'d>) -> AllDropped<'d> {
        let mut dropped = AllDropped::new();
        let mut items = NodeSet::default();
        for &service in &self.reader.services {
            let all = self.files.of(service);
            let Some(first) = all.first() else {
                continue;
            };
            let stays = |one: &&Listed<'d>| self.is(Disposition::Renamed, one);
            if !all.iter().any(|one| stays(&one)) {
                let entry = first.entry;
                let overrides = overridden(service, entry).next().is_some();
                let known = dropped.entry(entry.key.id());
                known.or_insert(Dropped { entry, overrides }).overrides |= overrides;
                continue;
            }
            for one in all.iter().filter(|one| !stays(one)) {
                if items.insert(one.item.id()) {
                    found.edits.items.push(ItemEdit {
                        list: first.entry.value.resolved(),
                        item: one.item,
                        new: None,
                        secrecy: Secrecy::Public,
                    });
                }
            }
        }
        dropped
    }

    fn additions(&self, found: &mut Findings<'d>) -> Vec<Addition<'d>> {
        let mut additions = Vec::new();
        for &service in &self.reader.services {
            match self.values(service) {
                Ok(values) => {
                    let mut addition = Addition {
                        service,
                        values,
                        files: self.files.key(service),
                    };
                    self.keep(&mut addition, found);
                    additions.push(addition);
                }
                Err(blocker) => found.blockers.push(blocker),
            }
        }
        additions
    }

    /// Adds the variables of the running container. They take precedence over everything in the text.
    fn keep(&self, addition: &mut Addition<'d>, found: &mut Findings<'d>) {
        let service = addition.service;
        let Some(runs) = self.runs.services.get(service.name) else {
            return;
        };
        if runs.variables.is_empty() {
            return;
        }
        addition.values.extend(runs.variables.clone());
        for &other in &self.reader.services {
            if let Some(name) = self.inherited(service, &runs.variables, other) {
                let message = format!(
                    "service {} extends service {}, and would get its variable {name}",
                    other.name, service.name
                );
                let hint = "write out `environment` in each service, without `extends`";
                found.block(service.node, Kind::Shared, message, hint);
            }
        }
    }

    /// The first of these variables of `service` that `other` would inherit by `extends`.
    fn inherited<'v>(
        &self,
        service: Service<'d>,
        variables: &'v BTreeMap<String, String>,
        other: Service<'d>,
    ) -> Option<&'v str> {
        let chain = self.reader.chain(other);
        let is_base = |base: &Service<'d>| base.node.id() == service.node.id();
        let at = chain.iter().position(is_base)?;
        let later = &chain[at + 1..];
        if later.is_empty() {
            return None;
        }
        let explicit = self.files.explicit(later);
        let own = self.runs.services.get(other.name);
        let is_set = |name: &str| {
            explicit.contains_key(name) || own.is_some_and(|own| own.variables.contains_key(name))
        };
        let mut names = variables.keys().map(String::as_str);
        names.find(|name| !is_set(name))
    }

    /// The variables of the files of a service that are written into its `environment`.
    fn values(&self, service: Service<'d>) -> Result<BTreeMap<String, String>, Finding> {
        let reader = self.reader;
        let chain = reader.chain(service);
        let all = unique(self.files.of_chain(&chain));
        let files = self.files.with_texts(&all);
        if files.is_empty() {
            return Ok(BTreeMap::new());
        }
        let explicit = self.files.explicit(&chain);
        let sources = Sources {
            files: &files,
            explicit: &explicit,
            here: &|name| reader.here(name),
        };
        let mut values = reading::variables(&sources)?;
        if all.iter().any(|one| self.is(Disposition::Renamed, one)) {
            let mut bases = unique(self.files.of_chain(&chain[..chain.len() - 1]));
            bases.retain(|listed| self.is(Disposition::Inlined, listed));
            // What is written into the `environment` of a base would override stack.env.
            let of_bases = reading::variables(&Sources {
                files: &self.files.with_texts(&bases),
                explicit: &Explicit::new(),
                ..sources
            });
            let written = of_bases.unwrap_or_default();
            values.retain(|name, value| {
                let sent = reader.variables.get(name.as_str());
                written.contains_key(name) || sent.copied() != Some(value)
            });
        }
        if !values.is_empty() {
            ServiceFiles::check_inherited(&chain)?;
        }
        Ok(values)
    }
}

fn disposition(reader: &Reader<'_, '_>, listed: &Listed<'_>) -> Disposition {
    match reader.env_file_text(&listed.file).is_some() {
        false if listed.required => Disposition::Missing,
        false => Disposition::Omitted,
        true if listed.file != reader.own_env || listed.format.is_some() => Disposition::Inlined,
        true if reader.env.iter().all(|(name, _)| name.is_empty()) => Disposition::Omitted,
        true => Disposition::Renamed,
    }
}
