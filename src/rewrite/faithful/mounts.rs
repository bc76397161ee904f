//! What the `volumes` of a service mount.

use composefile::{
    document::Node,
    path::clean,
    reader::Reader,
    services::{MountSpec, MountType, Service},
};

use crate::{
    model::{Variable, WrittenMount, WrittenService, WrittenServices},
    rewrite::{env::stack_env, portainer},
};

/// An item of `volumes`.
#[derive(Clone)]
pub(super) struct MountItem<'d> {
    pub(super) item: Node<'d>,
    /// The path in the container.
    pub(super) target: String,
    /// The same, as it is written in the long syntax.
    written: String,
    kind: MountType,
    /// A host path or the key of a volume; empty for an anonymous volume.
    source: String,
}

impl MountItem<'_> {
    /// Whether it is a volume without a name.
    pub(super) fn is_anonymous(&self) -> bool {
        self.volume() == Some("")
    }

    /// The key of a volume.
    pub(super) fn volume(&self) -> Option<&str> {
        (self.kind == MountType::Volume).then_some(&self.source)
    }
}

/// The `volumes` of each service of a chain. `!override` and `!reset` hide those before.
fn lists<'d>(chain: &[Service<'d>]) -> Vec<Node<'d>> {
    let mut found = Vec::new();
    for service in chain {
        if hides_inherited(*service) {
            found.clear();
        }
        found.extend(service.node.get("volumes"));
    }
    found
}

/// Whether a service drops the `volumes` of those that it extends.
fn hides_inherited(service: Service<'_>) -> bool {
    let mut entries = service.node.mappings().flat_map(Node::own_entries);
    let written = entries.find(|entry| entry.name() == Some("volumes"));
    written.is_some_and(|entry| matches!(entry.value.tag(), Some("!reset" | "!override")))
}

/// The mounts of a list. Leaves out those that cannot be interpolated, which block the rewrite.
pub(super) fn mounts<'d>(reader: &Reader<'d, '_>, list: Node<'d>) -> Vec<MountItem<'d>> {
    let read = |node: Option<Node<'d>>| {
        let text = node.and_then(Node::as_str)?;
        Some(reader.read(text).ok()?.into_owned())
    };
    let mount = |item: Node<'d>| {
        let (kind, source, written) = if item.is_mapping() {
            let kind = read(item.get("type")).unwrap_or_default();
            let source = read(item.get("source")).unwrap_or_default();
            (MountType::named(&kind), source, read(item.get("target"))?)
        } else {
            let text = read(Some(item))?;
            let spec = MountSpec::parse(&text)?;
            let source = spec.source.unwrap_or_default().to_owned();
            (spec.kind, source, clean(spec.target))
        };
        Some(MountItem {
            item,
            target: clean(&written),
            written,
            kind,
            source,
        })
    };
    list.items().filter_map(mount).collect()
}

/// Whether a key of the top-level `volumes` is an external volume with this name.
pub(super) fn is_external(reader: &Reader<'_, '_>, key: &str, volume: &str) -> bool {
    let volumes = reader.document.get("volumes");
    let Some(node) = volumes.and_then(|volumes| volumes.get(key)) else {
        return false;
    };
    let external = node.get("external");
    let older = external.and_then(|external| external.get("name"));
    let name = older.or_else(|| node.get("name")).and_then(Node::as_str);
    let is_named = name.and_then(|name| reader.read(name).ok()).as_deref() == Some(volume);
    is_named && external.is_some_and(|external| external.as_bool() != Some(false))
}

/// What a mount of a service has for `create_host_path`: `true` in the short syntax.
pub(super) fn creates_path(reader: &Reader<'_, '_>, item: Node<'_>) -> Option<bool> {
    if !item.is_mapping() {
        return Some(true);
    }
    let node = item.get("bind")?.get("create_host_path")?;
    reader.read(node.as_str()?).ok()?.parse().ok()
}

/// How a text writes its services, as Portainer reads it. Nothing if it is not YAML.
pub fn written_services(text: &str, env: &[Variable]) -> WrittenServices {
    let shell = |_: &str| None;
    let context = portainer::context("/", "/", &shell, "");
    let env = stack_env(env);
    let found = super::read(text, Some(&env), &context, |reader| {
        let services = reader
            .services
            .iter()
            .enumerate()
            .map(|(position, service)| {
                let chain = reader.chain(*service);
                let lists = lists(&chain).into_iter();
                let mounts = lists.flat_map(|list| mounts(reader, list)).map(|mount| {
                    let creates = creates_path(reader, mount.item);
                    let written = WrittenMount {
                        creates: creates.filter(|_| mount.kind == MountType::Bind),
                        target: mount.written,
                    };
                    (mount.target, written)
                });
                let ports = chain.iter().filter_map(|base| base.node.get("ports"));
                let written = WrittenService {
                    position,
                    mounts: mounts.collect(),
                    has_long_ports: ports.flat_map(Node::items).any(Node::is_mapping),
                };
                (service.name.to_owned(), written)
            });
        services.collect()
    });
    found.unwrap_or_default()
}
