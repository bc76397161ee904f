//! Every place where compose resolves a path.

use super::{
    document::Node,
    interpolate::{Lookup, interpolate},
    services::Service,
};

/// How compose reads the path at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `source:target:options`
    Mount,
    /// A path that the engine reads.
    Host,
    /// A path that compose reads.
    Local,
}

/// The places in a service, but for its env files.
pub fn of_service<'d>(service: Service<'d>, here: Lookup<'_>) -> Vec<(Node<'d>, Role)> {
    let mut found = Vec::new();
    for item in service
        .node
        .get("volumes")
        .into_iter()
        .flat_map(Node::items)
    {
        if item.is_scalar() {
            found.push((item, Role::Mount));
        } else if is(item.get("type"), "bind", here) {
            found.extend(item.get("source").map(|source| (source, Role::Host)));
        }
    }
    let watched = service
        .node
        .get("develop")
        .and_then(|node| node.get("watch"));
    for item in watched.into_iter().flat_map(Node::items) {
        found.extend(item.get("path").map(|path| (path, Role::Local)));
    }
    found
}

/// The places outside of services.
pub fn of_root<'d>(root: Node<'d>, here: Lookup<'_>) -> Vec<(Node<'d>, Role)> {
    let mut found = Vec::new();
    for section in ["secrets", "configs"] {
        for entry in root.get(section).map(Node::entries).unwrap_or_default() {
            found.extend(entry.value.get("file").map(|file| (file, Role::Host)));
        }
    }
    for entry in root.get("volumes").map(Node::entries).unwrap_or_default() {
        let Some(options) = entry.value.get("driver_opts") else {
            continue;
        };
        if is(entry.value.get("driver"), "local", here) && is(options.get("o"), "bind", here) {
            found.extend(options.get("device").map(|device| (device, Role::Host)));
        }
    }
    found
}

fn is(node: Option<Node<'_>>, value: &str, here: Lookup<'_>) -> bool {
    node.and_then(Node::as_str)
        .and_then(|text| interpolate(text, here).ok())
        .is_some_and(|read| read == value)
}
