//! The networks of a container, and those that the text asks for (B38). The plan compares what runs, and the verification what
//! was deployed.

use std::{collections::BTreeSet, net::IpAddr};

use serde_json::Value;

use crate::{
    compose::{Endpoint, Project, Service},
    finding::Kind,
    model::Container,
};

/// The addresses that a user may choose: the key of a Compose file, the one of `IPAMConfig`, and where the engine shows the
/// current one.
const ADDRESSES: [(&str, &str, &str); 2] = [
    ("ipv4_address", "IPv4Address", "IPAddress"),
    ("ipv6_address", "IPv6Address", "GlobalIPv6Address"),
];

/// Other settings of an endpoint, and the keys that give them.
const SETTINGS: [(&str, [&str; 2]); 3] = [
    ("DriverOpts", ["driver_opts", "interface_name"]),
    ("GwPriority", ["gw_priority", ""]),
    ("Links", ["links", "external_links"]),
];

/// Whether a container of the project has the networks, aliases and addresses that the text gives its service. `None` if there is
/// no such service.
pub fn is_connected_as_sent(project: &Project, container: &Container, tool: &str) -> Option<bool> {
    let service = project.service(container.compose_label(tool, "service")?)?;
    Some(differences(container, service, tool).is_empty())
}

/// What a container loses, and what changes, if it gets the networks that the text gives its service.
pub fn differences(container: &Container, service: &Service, tool: &str) -> Vec<(Kind, String)> {
    let asked = &service.networks;
    let mut found = Vec::new();
    for (network, now) in container.networks() {
        let Some(after) = asked.get(network) else {
            let message = format!("no longer connected to network {network}");
            found.push((Kind::Other, message));
            continue;
        };
        let of_network = [
            aliases(container, now, service, after, tool),
            addresses(now, after),
            settings(now, service, after),
        ];
        let told = of_network.into_iter().flatten();
        found.extend(told.map(|(kind, what, values)| {
            let message = format!("{what} in network {network}: {values}");
            (kind, message)
        }));
    }
    let is_new = |network: &&String| container.networks().all(|(name, _)| name != *network);
    let new = asked.keys().filter(is_new);
    found.extend(new.map(|network| {
        let message = format!("connected to network {network}");
        (Kind::Connected, message)
    }));
    found
}

/// What differs in a network, and the values.
type Difference = (Kind, &'static str, String);

fn aliases(
    container: &Container,
    now: &Value,
    service: &Service,
    after: &Endpoint,
    tool: &str,
) -> Vec<Difference> {
    let given = after.options.get("aliases").and_then(Value::as_array);
    let given = given.into_iter().flatten().filter_map(Value::as_str);
    let given: BTreeSet<&str> = given.collect();
    let has = container.aliases(now);
    // Engines before 25 list a hostname that was set among the aliases.
    let successor = name_after(container, service, tool);
    let mut own = BTreeSet::from([service.name.as_str(), container.name()]);
    own.extend(container.hostname().into_iter().chain(successor.as_deref()));
    let lost = has.iter().copied();
    let lost = lost.filter(|alias| !own.contains(alias) && !given.contains(alias));
    let lost: Vec<&str> = lost.collect();
    let is_named = after.network.is_some();
    let new = given.iter().copied();
    let new = new.chain(is_named.then_some(service.name.as_str()));
    let new: Vec<&str> = new.filter(|alias| !has.contains(alias)).collect();
    let told = [
        (Kind::Other, "no longer has these aliases", lost),
        (Kind::Connected, "gets these aliases", new),
    ];
    let told = told.into_iter().filter(|(.., names)| !names.is_empty());
    told.map(|(kind, what, names)| (kind, what, names.join(", ")))
        .collect()
}

/// The addresses that were chosen, or will be.
fn addresses(now: &Value, after: &Endpoint) -> Vec<Difference> {
    let mut found = Vec::new();
    for (key, chosen, current) in ADDRESSES {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let asked = after.options.get(key).map(text).unwrap_or_default();
        let chosen = text(&now["IPAMConfig"][chosen]);
        let is_same = match (chosen.parse::<IpAddr>(), asked.parse::<IpAddr>()) {
            (Ok(chosen), Ok(asked)) => chosen == asked,
            _ => chosen == asked,
        };
        if is_same {
            continue;
        }
        let now = if chosen.is_empty() {
            text(&now[current])
        } else {
            chosen
        };
        if asked.is_empty() {
            found.push((Kind::Other, "no longer has this fixed address", now));
        } else if now != asked {
            found.push((Kind::Connected, "gets this fixed address", asked));
        }
    }
    found
}

/// The settings that the text does not give.
fn settings(now: &Value, service: &Service, after: &Endpoint) -> Vec<Difference> {
    let set = Container::endpoint_settings(now);
    let is_given = |key: &&str| after.options.contains_key(*key) || service.get(key).is_some();
    let lost = SETTINGS
        .iter()
        .filter(|(setting, _)| set.contains_key(*setting));
    let lost = lost.filter(|(_, keys)| !keys.iter().any(is_given));
    let lost: Vec<&str> = lost.map(|(_, keys)| keys[0]).collect();
    let told = (Kind::Other, "no longer has these settings", lost.join(", "));
    Vec::from_iter((!lost.is_empty()).then_some(told))
}

/// The name of its successor, if it is known. It does not keep a name that it was given by hand, by an old version of
/// Compose, or by a `container_name` that changed.
pub fn name_after(container: &Container, service: &Service, tool: &str) -> Option<String> {
    service.text(&["container_name"]).or_else(|| {
        let number = container.compose_label(tool, "container-number")?;
        Some(service.name_of_containers() + number)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::{
        Sent,
        tests::{container, read},
    };

    /// What changes for a container with these networks if it gets those of the text.
    fn told(text: &str, networks: Value) -> Vec<String> {
        let mut web = container("web-web-1", "web");
        web["NetworkSettings"]["Networks"] = networks;
        let project = read(Sent::new(text, &[])).expect("a project");
        let web = &web;
        let found = differences(web, &project.services[0], "docker").into_iter();
        let found: Vec<String> = found.map(|(_, what)| what).collect();
        let is_as_sent = is_connected_as_sent(&project, web, "docker");
        assert_eq!(is_as_sent, Some(found.is_empty()));
        found
    }

    #[test]
    fn b38_every_difference_from_the_networks_of_the_text_is_told() {
        const TEXT: &str = "services: {web: {image: x, networks: {default: {aliases: [www], ipv4_address: 10.1.0.9}, back: }}}\nnetworks: {back: {}}";
        let default = json!({
            "Aliases": ["web-web-1", "web", "www", "web-web-1"], "IPAddress": "10.1.0.9",
            "IPAMConfig": {"IPv4Address": "10.1.0.9"},
        });
        let back =
            json!({"Aliases": ["web", "web-web-1"], "IPAddress": "10.2.0.2", "IPAMConfig": null});
        let same = json!({"web_default": default, "web_back": back});
        assert_eq!(told(TEXT, same.clone()), [""; 0]);
        for (pointer, value, expected) in [
            (
                "/web_default/Aliases",
                json!(null),
                "gets these aliases in network web_default: www, web",
            ),
            (
                "/web_back/Aliases",
                json!(["web", "x"]),
                "no longer has these aliases in network web_back: x",
            ),
            (
                "/web_default/IPAMConfig/IPv4Address",
                json!("10.1.0.8"),
                "gets this fixed address in network web_default: 10.1.0.9",
            ),
            (
                "/web_back/IPAMConfig",
                json!({"IPv4Address": "10.2.0.2"}),
                "no longer has this fixed address in network web_back: 10.2.0.2",
            ),
            (
                "/web_back/DriverOpts",
                json!({"a": "b"}),
                "no longer has these settings in network web_back: driver_opts",
            ),
        ] {
            let mut networks = same.clone();
            if pointer.ends_with("DriverOpts") {
                networks["web_back"]["DriverOpts"] = value;
            } else {
                *networks.pointer_mut(pointer).expect(pointer) = value;
            }
            assert_eq!(told(TEXT, networks), [expected], "{pointer}");
        }
        let mut networks = same;
        networks["outer"] = networks["web_back"].take();
        networks
            .as_object_mut()
            .expect("networks")
            .remove("web_back");
        assert_eq!(
            told(TEXT, networks),
            [
                "no longer connected to network outer",
                "connected to network web_back"
            ]
        );
    }

    #[test]
    fn b38_a_network_mode_gives_no_aliases() {
        for (mode, network) in [("default", "bridge"), ("host", "host"), ("none", "none")] {
            let text = format!("services: {{web: {{image: x, network_mode: {mode}}}}}");
            assert_eq!(told(&text, json!({network: {"Aliases": null}})), [""; 0]);
        }
    }

    /// IPv6 addresses have several spellings.
    #[test]
    fn b38_addresses_are_compared_by_value() {
        let text = "services: {web: {image: x, networks: {default: {ipv6_address: 'fd00:0::9'}}}}";
        let networks =
            json!({"web_default": {"Aliases": ["web"], "IPAMConfig": {"IPv6Address": "fd00::9"}}});
        assert_eq!(told(text, networks), [""; 0]);
    }
}
