//! Writes bind mounts in the long syntax, without `create_host_path` (B39).

use composefile::{
    document::{Entry, Node},
    interpolate::escaped,
    path::clean,
    reader::Reader,
    services::{MountSpec, MountType, Service, split_at_colons},
};

use super::paths::absolute_mount;
use crate::rewrite::faithful::{
    findings::{Findings, NewEntry, NewValue, is_block},
    mounts::creates_path,
    runs::Runs,
};

/// The key of the options of a bind mount.
const BIND: &str = "bind";

/// The propagation options of the short syntax.
const PROPAGATION: [&str; 6] = [
    "shared", "rshared", "slave", "rslave", "private", "rprivate",
];

/// Rewrites the bind mounts of the services in `runs`. A mount that cannot be written in another form stays: the plan compares
/// what Compose reads.
pub(super) fn long_binds<'d>(reader: &Reader<'d, '_>, runs: &Runs, found: &mut Findings<'d>) {
    let services = reader.services.iter();
    for &service in services.filter(|service| runs.long_binds.contains(service.name)) {
        let list = service.node.get("volumes").into_iter();
        for item in list.flat_map(Node::items) {
            if creates_path(reader, item) == Some(true) && item.is_mapping() {
                remove_create(service, item, found);
            } else if let Some(entries) = long(reader, item)
                && found.is_simple(service)
            {
                found.replace_value(item, &NewValue::Mapping(entries));
            }
            clean_target(service, item, found);
        }
    }
}

/// Removes `create_host_path` from a mount in the long syntax.
fn remove_create<'d>(service: Service<'d>, item: Node<'d>, found: &mut Findings<'d>) {
    let bind = item.entry(BIND);
    let creates = bind.and_then(|bind| bind.value.entry("create_host_path"));
    let (Some(bind), Some(creates)) = (bind, creates) else {
        return;
    };
    if !found.is_simple(service) {
        return;
    }
    let is_other = |entry: &Entry<'_>| entry.key.id() != creates.key.id();
    let others = bind.value.own_entries().filter(is_other);
    let others = others.filter_map(|entry| Some((entry.name()?, entry.value.as_str()?)));
    let others = others.map(|(name, value)| (name.to_owned(), NewValue::Word(value.to_owned())));
    let others: Vec<NewEntry> = others.collect();
    if is_block(item) {
        let others = (BIND.to_owned(), NewValue::Mapping(others));
        found.replace(item, bind, &[others]);
    } else {
        found.replace_value(bind.value, &NewValue::Mapping(others));
    }
}

/// Writes the path in the container of a mount in the long syntax as Compose has it since 2.30 (N36).
fn clean_target<'d>(service: Service<'d>, item: Node<'d>, found: &mut Findings<'d>) {
    let Some(node) = item.get("target") else {
        return;
    };
    let target = node.as_str().unwrap_or_default();
    if target.starts_with('/')
        && !target.contains('$')
        && clean(target) != target
        && found.is_simple(service)
    {
        found.set(node, &clean(target));
    }
}

/// The long syntax of a bind mount in short syntax. Variables stay in its paths.
fn long<'d>(reader: &Reader<'d, '_>, item: Node<'d>) -> Option<Vec<NewEntry>> {
    let read = reader.read(item.as_str()?).ok()?;
    let spec = MountSpec::parse(&read).filter(|spec| spec.kind == MountType::Bind)?;
    let text = absolute_mount(reader, item)?;
    let (source, target) = match split_at_colons(&text)[..] {
        // Compose cleans the path in the short syntax. In the long one, it does since 2.30.
        [source, target] | [source, target, _] if target.contains('$') => {
            (source.to_owned(), target.to_owned())
        }
        [source, _] | [source, _, _] => (source.to_owned(), escaped(&clean(spec.target))),
        // A variable contains the separators.
        _ => (escaped(spec.source?), escaped(&clean(spec.target))),
    };
    let of = |key: &str, value: NewValue| (key.to_owned(), value);
    let text = |key: &str, value: &str| of(key, NewValue::Word(value.to_owned()));
    let mut entries = vec![
        text("type", "bind"),
        text("source", &source),
        text("target", &target),
    ];
    let (mut is_read_only, mut bind, mut volume) = (false, Vec::new(), Vec::new());
    for option in spec.options.unwrap_or_default().split(',') {
        match option {
            "ro" | "rw" => is_read_only = option == "ro",
            "z" | "Z" => set(&mut bind, text("selinux", option)),
            "nocopy" => volume.push(of("nocopy", NewValue::True)),
            option if PROPAGATION.contains(&option) => {
                set(&mut bind, text("propagation", option));
            } // Compose ignores all others.
            _ => {}
        }
    }
    entries.extend(is_read_only.then(|| of("read_only", NewValue::True)));
    entries.push(of("bind", NewValue::Mapping(bind)));
    if !volume.is_empty() {
        entries.push(of("volume", NewValue::Mapping(volume)));
    }
    Some(entries)
}

/// Writes an entry in place of one with the same key.
fn set(entries: &mut Vec<NewEntry>, entry: NewEntry) {
    entries.retain(|(key, _)| *key != entry.0);
    entries.push(entry);
}
