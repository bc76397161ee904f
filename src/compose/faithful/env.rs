//! What becomes of `env_file`, service by service.
#![deny(clippy::disallowed_methods)]

use std::collections::{HashMap, HashSet};

use super::{
    super::{
        document::{Node, NodeId},
        interpolate::interpolate,
        services::Service,
    },
    Notice, Reason, Refusal,
    carry::{Emission, mappings, others},
    env_files::{self, Fate, Fates, Listed, Sources, chain},
    rewriter::Rewriter,
};

impl<'d, 'a> Rewriter<'d, 'a> {
    /// Turns `.env` into `stack.env`, and takes the variables of other env files over.
    pub(super) fn env_files(&mut self) {
        let own_env = self.own_env();
        let mut fates = Fates::new();
        let mut by_service = HashMap::new();
        for service in self.services.clone() {
            let listed = match self.listed(service) {
                Ok(listed) => listed,
                Err(refusals) => {
                    self.refusals.extend(refusals);
                    continue;
                }
            };
            for one in &listed {
                if fates.contains_key(&one.item.id()) {
                    continue;
                }
                let fate = self.fate_of(one, &own_env);
                fates.insert(one.item.id(), fate);
                self.turn(service, one, fate);
            }
            by_service.insert(service.name, listed);
        }
        let gone = self.drop_env_files(&by_service, &fates);
        let mut emissions = Vec::new();
        for service in self.services.clone() {
            match self.emission(service, &by_service, &fates) {
                Ok(emission) => emissions.push(emission),
                Err(refusal) => self.refusals.push(refusal),
            }
        }
        self.carry(&emissions, &gone);
    }

    fn fate_of(&self, listed: &Listed<'d>, own_env: &str) -> Fate {
        match self.env_file_text(&listed.file).is_some() {
            false if listed.required => Fate::Missing,
            false => Fate::Nothing,
            true if listed.file != own_env || listed.raw => Fate::Carried,
            true if self.env.iter().all(|(name, _)| name.is_empty()) => Fate::Nothing,
            true => Fate::Own,
        }
    }

    /// Says, and for the stack's own writes, what becomes of an env file.
    fn turn(&mut self, service: Service<'d>, listed: &Listed<'d>, fate: Fate) {
        let line = Some(listed.path.line());
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
                    listed.file
                ),
            }),
            Fate::Missing => self.refusals.push(Refusal::at(
                listed.path,
                Reason::MissingEnvFile,
                format!(
                    "the env file {} of the service {} is missing",
                    listed.file, service.name
                ),
                "create it: compose refuses the stack as it is",
            )),
            Fate::Own | Fate::Carried => {}
        }
    }

    /// Takes out what the manager cannot read; the keys of `env_file` that go whole.
    fn drop_env_files(
        &mut self,
        by_service: &HashMap<&'d str, Vec<Listed<'d>>>,
        fates: &Fates,
    ) -> HashSet<NodeId> {
        let stays = |listed: &&Listed<'d>| fates.get(&listed.item.id()) == Some(&Fate::Own);
        let mut gone = HashSet::new();
        let mut dropped = HashSet::new();
        for service in self.services.clone() {
            let listed = by_service
                .get(service.name)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let Some(first) = listed.first() else {
                continue;
            };
            if !listed.iter().any(|one| stays(&one)) {
                if gone.insert(first.entry.key.id()) {
                    self.removals.push(first.entry);
                }
                if !others(service, first.entry).is_empty() {
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

    fn emission(
        &self,
        service: Service<'d>,
        by_service: &HashMap<&'d str, Vec<Listed<'d>>>,
        fates: &Fates,
    ) -> Result<Emission<'d>, Refusal> {
        let chain = chain(service, &self.services, &|name| self.here(name));
        let files_of = |chain: &[Service<'d>]| {
            let listed = chain.iter().filter_map(|one| by_service.get(one.name));
            env_files::unique(listed.flatten())
        };
        let all = files_of(&chain);
        let own = by_service
            .get(service.name)
            .and_then(|listed| listed.first());
        let mut emission = Emission {
            service,
            variables: Vec::new(),
            env_file: own.map(|listed| listed.entry),
        };
        if all.is_empty() {
            return Ok(emission);
        }
        if chain.iter().skip(1).any(|service| cuts(*service)) {
            return Err(Refusal::at(
                service.node,
                Reason::Shared,
                format!(
                    "the service {} resets or overrides the environment of one that gets variables from an env file",
                    service.name
                ),
                "write the service without `extends`",
            ));
        }
        let explicit = self.explicit(&chain);
        let mut found = self.variables_of(&all, &explicit)?;
        let has = |fate: Fate, listed: &Listed<'d>| fates.get(&listed.item.id()) == Some(&fate);
        if all.iter().any(|listed| has(Fate::Own, listed)) {
            // What a base gets written into its `environment` would win over stack.env.
            let mut bases = files_of(&chain[..chain.len() - 1]);
            bases.retain(|listed| has(Fate::Carried, listed));
            let written = self.variables_of(&bases, &HashMap::new())?;
            let written: HashSet<_> = written.into_iter().map(|(name, _)| name).collect();
            found.retain(|(name, value)| {
                written.contains(name) || self.variables.get(name.as_str()) != Some(&value.as_str())
            });
        }
        emission.variables = found;
        Ok(emission)
    }

    /// What env files give, but for what `explicit` names.
    fn variables_of(
        &self,
        files: &[&Listed<'d>],
        explicit: &HashMap<String, Option<String>>,
    ) -> Result<Vec<(String, String)>, Refusal> {
        let texts = files
            .iter()
            .filter_map(|&listed| Some((listed, self.env_file_text(&listed.file)?)));
        env_files::variables(&Sources {
            files: texts.collect(),
            explicit,
            here: &|name| self.here(name),
        })
    }

    fn env_file_text(&self, file: &str) -> Option<&'a str> {
        if file == self.own_env() {
            return self.env_text;
        }
        self.context.env_files.get(file)?.as_deref()
    }

    /// `environment` of a service with all that it extends, read as compose reads it.
    fn explicit(&self, chain: &[Service<'d>]) -> HashMap<String, Option<String>> {
        let here = |name: &str| self.here(name);
        let mut found = HashMap::new();
        let places = chain
            .iter()
            .filter_map(|service| service.node.get("environment"));
        for place in places {
            for item in place.items().filter_map(Node::as_str) {
                let item = interpolate(item, &here).unwrap_or_default();
                match item.split_once('=') {
                    Some((name, value)) => found.insert(name.to_owned(), Some(value.to_owned())),
                    None => found.insert(item.clone(), self.here(&item)),
                };
            }
            for entry in place.entries() {
                let Some(name) = entry.name() else { continue };
                let value = match entry.value.as_str() {
                    Some(value) => interpolate(value, &here).ok(),
                    None => self.here(name),
                };
                found.insert(name.to_owned(), value);
            }
        }
        found
    }
}

/// Whether a service takes away what it inherits of its environment.
fn cuts(service: Service<'_>) -> bool {
    let entries = mappings(service.node)
        .into_iter()
        .flat_map(Node::own_entries);
    entries
        .filter(|entry| matches!(entry.name(), Some("env_file" | "environment")))
        .any(|entry| matches!(entry.value.tag(), Some("!reset" | "!override")))
}
