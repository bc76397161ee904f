//! What becomes of `env_file` and `label_file`, service by service.
#![deny(clippy::disallowed_methods)]

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use super::{
    Notice, Reason, Refusal,
    carry::{Cargo, Emission, LABELS, VARIABLES, others},
    env_files::{self, Explicit, Fate, Fates, Listed, Reading, Sources},
    rewriter::Rewriter,
};
use composefile::{
    document::{Node, NodeSet},
    interpolate::interpolate,
    services::Service,
};

/// A list of files, by their paths and whether they are raw.
type List<'l> = Vec<(&'l str, bool)>;
/// What lists of files give, those of the bases told apart: most services share theirs with others.
type Readings<'l> = HashMap<(List<'l>, List<'l>), Reading>;

impl<'d, 'a> Rewriter<'d, 'a> {
    /// Turns `.env` into `stack.env`, and takes the variables of other env files over.
    pub(super) fn env_files(&mut self) {
        let mut fates = Fates::default();
        let mut by_service = HashMap::new();
        for service in self.services.clone() {
            let listed = self.listed(service, &VARIABLES);
            for one in &listed {
                if fates.contains_key(&one.item.id()) {
                    continue;
                }
                let fate = self.fate_of(one);
                fates.insert(one.item.id(), fate);
                self.turn(service, one, fate);
            }
            by_service.insert(service.name, listed);
        }
        let gone = self.drop_env_files(&by_service, &fates);
        let mut emissions = Vec::new();
        let mut readings = Readings::new();
        for service in self.services.clone() {
            match self.emission(service, &by_service, &fates, &mut readings) {
                Ok(emission) => emissions.push(emission),
                Err(refusal) => self.refusals.push(refusal),
            }
        }
        self.carry(&emissions, &gone);
    }

    fn fate_of(&self, listed: &Listed<'d>) -> Fate {
        match self.env_file_text(&listed.file).is_some() {
            false if listed.required => Fate::Missing,
            false => Fate::Nothing,
            true if listed.file != self.own_env || listed.format.is_some() => Fate::Carried,
            true if self.env.iter().all(|(name, _)| name.is_empty()) => Fate::Nothing,
            true => Fate::Own,
        }
    }

    /// Says, and for the stack's own writes, what becomes of an env file.
    fn turn(&mut self, service: Service<'d>, listed: &Listed<'d>, fate: Fate) {
        let line = Some(listed.path.line());
        if listed
            .format
            .as_deref()
            .is_some_and(|format| format != "raw")
        {
            self.refusals.push(Refusal::at(
                listed.path,
                Reason::BadEnvFile,
                format!(
                    "the env file {} has a `format` that compose does not know",
                    listed.shown()
                ),
                "leave it out, or write `format: raw`",
            ));
        }
        match fate {
            Fate::Own if listed.path.as_str() != Some("stack.env") => {
                let what = format!(
                    "the env file of the service {} becomes stack.env",
                    service.name
                );
                let why = "the manager keeps .env under that name (M09)";
                self.desire(listed.path, "stack.env".into(), (what, why, false));
            }
            Fate::Nothing => self.notices.push(Notice {
                line,
                message: format!(
                    "the env file {} holds nothing or is not there, and is left out (M10)",
                    listed.shown()
                ),
            }),
            Fate::Missing => self.refuse_missing(service, listed),
            Fate::Own | Fate::Carried => {}
        }
    }

    fn refuse_missing(&mut self, service: Service<'d>, listed: &Listed<'d>) {
        let key = listed.entry.name().unwrap_or_default();
        self.refusals.push(Refusal::at(
            listed.path,
            Reason::MissingEnvFile,
            format!(
                "the {} {} of the service {} is missing",
                key.replace('_', " "),
                listed.shown(),
                service.name
            ),
            "create it: compose refuses the stack as it is",
        ));
    }

    /// Takes out what the manager cannot read; the keys of `env_file` that go whole.
    fn drop_env_files(
        &mut self,
        by_service: &HashMap<&'d str, Vec<Listed<'d>>>,
        fates: &Fates,
    ) -> NodeSet {
        let stays = |listed: &&Listed<'d>| fates.get(&listed.item.id()) == Some(&Fate::Own);
        let mut gone = NodeSet::default();
        let mut dropped = NodeSet::default();
        for service in self.services.clone() {
            let listed = by_service
                .get(service.name)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let Some(first) = listed.first() else {
                continue;
            };
            if !listed.iter().any(|one| stays(&one)) {
                gone.insert(first.entry.key.id());
                self.remove(first.entry);
                if others(service, first.entry).next().is_some() {
                    self.covers.insert(first.entry.key.id());
                }
                continue;
            }
            let list = first.entry.value.resolved();
            for one in listed.iter().filter(|one| !stays(one)) {
                let note = (
                    "an env file is left out".to_owned(),
                    "the manager reads no env file but stack.env (M11)",
                );
                if dropped.insert(one.item.id())
                    && self.splices.remove_item(list, one.item, note).is_err()
                {
                    self.refuse_unwritable(one.item);
                }
            }
        }
        gone
    }

    fn emission<'l>(
        &self,
        service: Service<'d>,
        by_service: &'l HashMap<&'d str, Vec<Listed<'d>>>,
        fates: &Fates,
        readings: &mut Readings<'l>,
    ) -> Result<Emission<'d>, Refusal> {
        let chain = self.chain(service);
        let all = env_files::unique(all_of(&chain, by_service));
        let own = by_service
            .get(service.name)
            .and_then(|listed| listed.first());
        let mut emission = Emission {
            service,
            cargo: &VARIABLES,
            values: Rc::default(),
            files: own.map(|listed| listed.entry),
        };
        let files = self.texts_of(&all);
        let mut sources = Sources {
            files: &files,
            explicit: &Explicit::new(),
            here: &|name| self.here(name),
        };
        let has = |fate: Fate, listed: &Listed<'d>| fates.get(&listed.item.id()) == Some(&fate);
        let mut bases = env_files::unique(all_of(&chain[..chain.len() - 1], by_service));
        bases.retain(|listed| has(Fate::Carried, listed));
        let base_files = self.texts_of(&bases);
        let of_bases = Sources {
            files: &base_files,
            ..sources
        };
        let read = |sources: &Sources<'_>| {
            let mut reading = env_files::variables(sources);
            if all.iter().any(|listed| has(Fate::Own, listed)) {
                // What a base gets written into its `environment` would win over stack.env.
                let written = env_files::variables(&of_bases).values;
                let written: HashSet<_> = written.iter().map(|(name, _)| name).collect();
                let values = reading.values.iter();
                let carried = values.filter(|(name, value)| {
                    written.contains(name)
                        || self.variables.get(name.as_str()) != Some(&value.as_str())
                });
                reading.values = carried.cloned().collect();
            }
            reading
        };
        let shared = readings
            .entry((list_of(&files), list_of(&base_files)))
            .or_insert_with(|| read(&sources));
        if shared.is_nothing() {
            return Ok(emission);
        }
        whole(&chain, &VARIABLES)?;
        let explicit = self.explicit(&chain, &VARIABLES);
        sources.explicit = &explicit;
        emission.values = if shared.is_right_for(&explicit) {
            shared.beside(&sources)?
        } else {
            read(&sources).beside(&sources)?
        };
        Ok(emission)
    }

    /// Takes the labels of label files over.
    pub(super) fn label_files(&mut self) {
        let mut by_service = HashMap::new();
        let mut gone = NodeSet::default();
        for service in self.services.clone() {
            let listed = self.listed(service, &LABELS);
            for one in &listed {
                if self.env_file_text(&one.file).is_none() {
                    self.refuse_missing(service, one);
                }
            }
            if let Some(first) = listed.first() {
                gone.insert(first.entry.key.id());
                for entry in others(service, first.entry).chain([first.entry]) {
                    self.remove(entry);
                }
            }
            by_service.insert(service.name, listed);
        }
        if gone.is_empty() {
            return;
        }
        let mut readings = Readings::new();
        let mut emissions = Vec::new();
        for service in self.services.clone() {
            match self.labels(service, &by_service, &mut readings) {
                Ok(emission) => emissions.push(emission),
                Err(refusal) => self.refusals.push(refusal),
            }
        }
        self.carry(&emissions, &gone);
    }

    fn labels<'l>(
        &self,
        service: Service<'d>,
        by_service: &'l HashMap<&'d str, Vec<Listed<'d>>>,
        readings: &mut Readings<'l>,
    ) -> Result<Emission<'d>, Refusal> {
        let chain = self.chain(service);
        let all: Vec<_> = all_of(&chain, by_service).collect();
        if !all.is_empty() {
            whole(&chain, &LABELS)?;
        }
        let files = self.texts_of(&all);
        let sources = Sources {
            files: &files,
            explicit: &self.explicit(&chain, &LABELS),
            here: &|_| None,
        };
        let reading = readings
            .entry((list_of(&files), List::new()))
            .or_insert_with(|| env_files::labels(&sources));
        Ok(Emission {
            service,
            cargo: &LABELS,
            values: reading.beside(&sources)?,
            files: by_service[service.name].first().map(|listed| listed.entry),
        })
    }

    /// The files that are there, with their texts.
    fn texts_of<'l>(&self, all: &[&'l Listed<'d>]) -> Vec<(&'l Listed<'d>, &'a str)> {
        all.iter()
            .filter_map(|&listed| Some((listed, self.env_file_text(&listed.file)?)))
            .collect()
    }

    /// `environment` or `labels` of a service with all that it extends, read as compose reads it.
    fn explicit(&self, chain: &[Service<'d>], cargo: &Cargo) -> Explicit {
        let here = |name: &str| self.here(name);
        let mut found = Explicit::new();
        let places = chain
            .iter()
            .filter_map(|service| service.node.get(cargo.to));
        for place in places {
            for item in place.items().filter_map(Node::as_str) {
                let item = interpolate(item, &here).unwrap_or_default();
                match item.split_once('=') {
                    Some((name, value)) => found.insert(name.to_owned(), Some(value.to_owned())),
                    None => found.insert(item.to_string(), self.here(&item)),
                };
            }
            for entry in place.entries() {
                let Some(name) = entry.name() else { continue };
                let value = match entry.value.as_str() {
                    Some(value) => interpolate(value, &here).ok().map(Cow::into_owned),
                    None => self.here(name),
                };
                found.insert(name.to_owned(), value);
            }
        }
        found
    }
}

/// The files of a service and of those that it extends.
fn all_of<'l, 'd>(
    chain: &[Service<'d>],
    by_service: &'l HashMap<&'d str, Vec<Listed<'d>>>,
) -> impl Iterator<Item = &'l Listed<'d>> {
    let listed = chain
        .iter()
        .filter_map(|service| by_service.get(service.name));
    listed.flatten()
}

fn list_of<'l>(files: &[(&'l Listed<'_>, &str)]) -> List<'l> {
    files
        .iter()
        .map(|(listed, _)| (listed.file.as_str(), listed.format.is_some()))
        .collect()
}

/// Refuses a service that takes away what it inherits: what its bases get would go with that.
fn whole(chain: &[Service<'_>], cargo: &Cargo) -> Result<(), Refusal> {
    let cuts = |service: &&Service<'_>| {
        let entries = service.node.mappings().flat_map(Node::own_entries);
        entries
            .filter(|entry| [Some(cargo.files), Some(cargo.to)].contains(&entry.name()))
            .any(|entry| matches!(entry.value.tag(), Some("!reset" | "!override")))
    };
    let (Some(service), true) = (chain.last(), chain.iter().skip(1).any(|one| cuts(&one))) else {
        return Ok(());
    };
    Err(Refusal::at(
        service.node,
        Reason::Shared,
        format!(
            "the service {} resets or overrides the `{}` of one that has `{}`",
            service.name, cargo.to, cargo.files
        ),
        "write the service without `extends`",
    ))
}
