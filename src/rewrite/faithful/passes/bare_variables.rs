//! Variables without a value, which Compose takes from its own environment.

use composefile::{document::Node, reader::Reader};

use crate::rewrite::faithful::{Kind, findings::Findings, shell::there};

/// Leaves bare names in `environment`, and in `args` of builds that Portainer can run, to Compose if they have another value in
/// Portainer. Blocks if they have no value here, and on secrets and configs that come from the shell.
pub(super) fn bare_variables<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    let differs = |name: &str| reader.here(name) != there(reader, name);
    for service in &reader.services {
        let args = service.build().filter(|build| reader.is_remote(*build));
        let args = args.and_then(|build| build.get("args"));
        let places = [service.node.get("environment"), args]
            .into_iter()
            .flatten();
        let bare = places.flat_map(|place| {
            let items = place.items();
            let items = items.filter_map(|item| Some((item, reader.read(item.as_str()?).ok()?)));
            let entries = place.entries().into_iter();
            let entries = entries.filter(|entry| entry.value.is_null());
            let entries = entries.filter_map(|entry| Some((entry.key, entry.name()?.into())));
            items.chain(entries)
        });
        for (node, name) in bare.filter(|(_, name)| !name.contains('=') && differs(name)) {
            match reader.here(&name) {
                Some(_) => found.not_simple(node),
                None => block(node, &name, found),
            }
        }
    }
    for section in ["secrets", "configs"] {
        let section = reader.document.get(section);
        for entry in section.map(Node::entries).unwrap_or_default() {
            // No text can hold the value.
            if let Some(node) = entry.value.get("environment")
                && let name = reader.read(node.as_str().unwrap_or_default())
                && let name = name.unwrap_or_default()
                && differs(&name)
            {
                block(node, &name, found);
            }
        }
    }
}

fn block(node: Node<'_>, name: &str, found: &mut Findings<'_>) {
    let message = format!("{name} does not have the same value in Portainer as in your shell");
    let hint = format!("set a variable with another name in .env, and use it instead of {name}");
    found.block(node, Kind::ShellVariable, message, hint);
}
