//! Which mappings more than one service reads.

use std::cell::OnceCell;

use composefile::{
    document::{Entry, Node, NodeMap},
    reader::Reader,
    services::Service,
};

/// Counts the services that read each mapping, when first asked.
pub(super) struct Sharing<'r, 'd, 'a> {
    reader: &'r Reader<'d, 'a>,
    readers: OnceCell<NodeMap<usize>>,
}

impl<'r, 'd, 'a> Sharing<'r, 'd, 'a> {
    pub(super) fn new(reader: &'r Reader<'d, 'a>) -> Self {
        Self {
            reader,
            readers: OnceCell::new(),
        }
    }

    /// Whether other services read the service's own mapping too.
    pub(super) fn is_shared(&self, service: Service<'d>) -> bool {
        let mapping = service.node.resolved();
        mapping.anchor().is_some() && self.readers()[&mapping.id()] > 1
    }

    fn readers(&self) -> &NodeMap<usize> {
        self.readers.get_or_init(|| {
            let mut readers = NodeMap::default();
            let services = self.reader.services.iter();
            for mapping in services.flat_map(|service| service.node.mappings()) {
                *readers.entry(mapping.id()).or_default() += 1;
            }
            readers
        })
    }
}

/// Whether an entry is written in a mapping itself, not merged into it.
pub(super) fn is_own(mapping: Node<'_>, entry: Entry<'_>) -> bool {
    let mut entries = mapping.own_entries();
    entries.any(|own| own.key.id() == entry.key.id())
}

/// The entries with the same name that a service's mapping merges and `entry` overrides.
pub(super) fn overridden<'d>(
    service: Service<'d>,
    entry: Entry<'d>,
) -> impl Iterator<Item = Entry<'d>> {
    let entries = service.node.mappings().flat_map(Node::own_entries);
    entries.filter(move |other| other.name() == entry.name() && other.key.id() != entry.key.id())
}
