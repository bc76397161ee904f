//! The env files of every service, and the variables that a service sets itself.

use std::{borrow::Cow, collections::HashMap};

use composefile::{
    document::{Entry, Node},
    reader::Reader,
    services::Service,
};

use super::{
    Finding, Kind,
    listed::{Listed, listed},
    reading::Explicit,
};

/// The env files that the services name.
pub(super) struct ServiceFiles<'r, 'd, 'a> {
    reader: &'r Reader<'d, 'a>,
    by_service: HashMap<&'d str, Vec<Listed<'d>>>,
}

impl<'r, 'd, 'a> ServiceFiles<'r, 'd, 'a> {
    pub(super) fn new(reader: &'r Reader<'d, 'a>) -> Self {
        let files = |&service: &Service<'d>| (service.name, listed(reader, service));
        let by_service = reader.services.iter().map(files).collect();
        Self { reader, by_service }
    }

    /// The files that a service names itself, in order.
    pub(super) fn of(&self, service: Service<'d>) -> &[Listed<'d>] {
        let files = self.by_service.get(service.name);
        files.map(Vec::as_slice).unwrap_or_default()
    }

    /// The key by which a service names its files.
    pub(super) fn key(&self, service: Service<'d>) -> Option<Entry<'d>> {
        self.of(service).first().map(|listed| listed.entry)
    }

    /// The files of a service and of those that it extends.
    pub(super) fn of_chain<'l>(
        &'l self,
        chain: &[Service<'d>],
    ) -> impl Iterator<Item = &'l Listed<'d>> {
        chain.iter().flat_map(|service| self.of(*service))
    }

    /// The files that exist, with their texts.
    pub(super) fn with_texts<'l>(&self, all: &[&'l Listed<'d>]) -> Vec<(&'l Listed<'d>, &'a str)> {
        all.iter()
            .filter_map(|&listed| Some((listed, self.reader.env_file_text(&listed.file)?)))
            .collect()
    }

    /// `environment` of a service with all that it extends, interpolated.
    pub(super) fn explicit(&self, chain: &[Service<'d>]) -> Explicit {
        let reader = self.reader;
        let mut found = Explicit::new();
        for place in chain.iter().filter_map(|one| one.node.get("environment")) {
            for item in place.items().filter_map(Node::as_str) {
                let item = reader.read(item).unwrap_or_default();
                match item.split_once('=') {
                    Some((name, value)) => found.insert(name.to_owned(), Some(value.to_owned())),
                    None => found.insert(item.to_string(), reader.here(&item)),
                };
            }
            for entry in place.entries() {
                let Some(name) = entry.name() else { continue };
                let value = match entry.value.as_str() {
                    Some(value) => reader.read(value).ok().map(Cow::into_owned),
                    None => reader.here(name),
                };
                found.insert(name.to_owned(), value);
            }
        }
        found
    }

    /// Blocks on a service that resets or overrides inherited keys: values written into those would be lost with
    /// them.
    pub(super) fn check_inherited(chain: &[Service<'_>]) -> Result<(), Finding> {
        let cuts = |service: &&Service<'_>| {
            let entries = service.node.mappings().flat_map(Node::own_entries);
            entries
                .filter(|entry| matches!(entry.name(), Some("env_file" | "environment")))
                .any(|entry| matches!(entry.value.tag(), Some("!reset" | "!override")))
        };
        let (Some(service), true) = (chain.last(), chain.iter().skip(1).any(|one| cuts(&one)))
        else {
            return Ok(());
        };
        let name = service.name;
        let message = format!(
            "service {name} resets or overrides the `environment` of an extended service that has `env_file`"
        );
        let hint = "write the service without `extends`";
        Err(Finding::at(service.node, Kind::Shared, message, hint))
    }
}
