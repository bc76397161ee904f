//! Where a Compose file holds paths that Compose makes absolute, but for the paths of env files, label files and
//! builds.

use crate::{
    document::{Node, NodeId},
    interpolate::{Lookup, interpolate},
    schema::{Holds, ROOT, SERVICE, SchemaNode},
    services::Service,
};
use std::collections::HashSet;

/// How Compose reads the path at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A mount in short syntax: `source:target:options`.
    Mount,
    /// A path that the engine reads.
    Host,
    /// A path that Compose itself reads.
    Local,
}

/// The paths in a service, in the order of its entries. `lookup` gives the values of variables.
pub fn of_service<'d>(service: Service<'d>, lookup: Lookup<'_>) -> Vec<(Node<'d>, Role)> {
    let mut paths = Paths::new(lookup);
    paths.collect(service.node, &SERVICE, [service.node; 2]);
    paths.found
}

/// The paths outside of services. `lookup` gives the values of variables.
pub fn of_root<'d>(root: Node<'d>, lookup: Lookup<'_>) -> Vec<(Node<'d>, Role)> {
    let mut paths = Paths::new(lookup);
    for entry in root.entries() {
        if entry.name() != Some("services")
            && let Some(place) = ROOT.below(&entry)
        {
            paths.collect(entry.value, place, [root; 2]);
        }
    }
    paths.found
}

struct Paths<'d, 'l> {
    lookup: Lookup<'l>,
    found: Vec<(Node<'d>, Role)>,
    /// The mappings and lists among the items of lists that are done: aliases can repeat them.
    done: HashSet<(NodeId, &'static SchemaNode)>,
}

impl<'d, 'l> Paths<'d, 'l> {
    fn new(lookup: Lookup<'l>) -> Self {
        Self {
            lookup,
            found: Vec::new(),
            done: HashSet::new(),
        }
    }

    /// Adds the paths at a node and below it. `above` are the two nodes that hold it, the nearest first.
    fn collect(&mut self, node: Node<'d>, place: &'static SchemaNode, above: [Node<'d>; 2]) {
        if node.is_scalar() {
            let role = self.role(place, above);
            self.found.extend(role.map(|role| (node, role)));
            return;
        }
        if !leads_to_path(place) {
            return;
        }
        let above = [node, above[0]];
        for entry in node.entries() {
            if let Some(place) = place.below(&entry) {
                self.collect(entry.value, place, above);
            }
        }
        let Some(place) = place.item() else { return };
        for item in node.items() {
            if item.is_scalar() || self.done.insert((item.resolved().id(), place)) {
                self.collect(item, place, above);
            }
        }
    }

    fn role(&self, place: &SchemaNode, [mapping, outer]: [Node<'d>; 2]) -> Option<Role> {
        let is_path = match place.holds() {
            Holds::Mount => return Some(Role::Mount),
            Holds::LocalPath => return Some(Role::Local),
            Holds::HostPath => true,
            Holds::MountSource => self.reads(mapping.get("type"), "bind"),
            Holds::Device => {
                self.reads(outer.get("driver"), "local") && self.reads(mapping.get("o"), "bind")
            }
            _ => false,
        };
        is_path.then_some(Role::Host)
    }

    /// Whether a node's text is `value` after interpolation.
    fn reads(&self, node: Option<Node<'_>>, value: &str) -> bool {
        node.and_then(Node::as_str)
            .and_then(|text| interpolate(text, self.lookup).ok())
            .is_some_and(|read| read == value)
    }
}

fn leads_to_path(place: &SchemaNode) -> bool {
    use Holds::{Device, HostPath, LocalPath, Mount, MountSource};
    let mut paths = [Mount, MountSource, Device, HostPath, LocalPath].into_iter();
    paths.any(|holds| place.leads_to(holds))
}
