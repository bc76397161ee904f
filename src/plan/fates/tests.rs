//! Containers of two versions of Compose, on hosts with two, in Portainers with three (B47).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::{
    compose::Read,
    plan::{
        Sent, adoption,
        tests::{self, World, container, other, world},
    },
    rewrite::faithful::written_services,
    text::sha256,
};

const SHORT: &str = "services: {web: {image: x, volumes: ['/a:/a']}}";
const LONG: &str =
    "services: {web: {image: x, volumes: [{type: bind, source: /a, target: /a, bind: {}}]}}";

/// The JSON of the service, with this value of `bind`.
fn service(bind: &Value) -> Value {
    json!({"image": "x", "volumes": [{"type": "bind", "source": "/a", "target": "/a", "bind": bind}]})
}

/// What a program of this version reads in a text.
fn read(text: &str, printed_by: &str) -> Project {
    let is_short = text == SHORT && printed_by.starts_with('2');
    let bind = if is_short {
        json!({"create_host_path": true})
    } else {
        json!({})
    };
    let config = json!({"name": "web", "services": {"web": service(&bind)}});
    let version = ComposeVersion::parse(printed_by).expect("a version");
    let created = written_services(text, &[]);
    let read = Read {
        config,
        printed_by: version,
        folder: None,
    };
    Project::new(&read, &BTreeMap::new(), Some(&created))
}

/// The stack, started from a file in the short syntax, or with another hash.
fn started(by: &str, hash: Option<&str>, portainer: &'static str) -> World {
    let mut world = world(SHORT);
    world.portainer_version = Some(portainer);
    // Its Compose is known by what it started.
    if portainer == "2.46.0" {
        let mut container = other("other-a-1", "x", &[]);
        for (name, value) in [
            ("project.working_dir", "/data/compose/9"),
            ("version", "5.6.1"),
        ] {
            container["Config"]["Labels"][format!("com.docker.compose.{name}")] = json!(value);
        }
        world.others.push(container);
    }
    let bind = if by.starts_with('2') {
        json!({"create_host_path": true})
    } else {
        json!({})
    };
    let labeled = sha256(&service(&bind).to_string());
    let labels = &mut world.containers[0]["Config"]["Labels"];
    labels["com.docker.compose.version"] = by.into();
    labels["com.docker.compose.config-hash"] = hash.unwrap_or(&labeled).into();
    world
}

/// The fate of the service, and whether its bind mounts are sent in the long syntax.
fn planned(world: &mut World, sent: &str, host: &str) -> (Fate, bool) {
    sent.clone_into(&mut world.compose);
    world.on_disk = Some(read(SHORT, host));
    world.read = Some(read(sent, host));
    planned_of(world)
}

/// The same, of what Compose reads.
fn planned_of(world: &World) -> (Fate, bool) {
    world.with_facts(|facts| {
        let fate = adoption(facts).services[0].fate.clone();
        (fate, !binds::long_binds(facts).is_empty())
    })
}

#[test]
fn b47_no_fate_depends_on_the_version_of_the_host() {
    for host in ["2.26.1", "5.6.1"] {
        for (created_by, portainer, short, long) in [
            ("2.26.1", "2.23.0", true, false),
            ("2.26.1", "2.45.0", true, false),
            ("2.26.1", "2.46.0", false, false),
            ("5.6.1", "2.23.0", false, true),
            ("5.6.1", "2.45.0", false, true),
            ("5.6.1", "2.46.0", true, true),
        ] {
            let mut world = started(created_by, None, portainer);
            for (sent, is_kept) in [(SHORT, short), (LONG, long)] {
                let (fate, lengthens) = planned(&mut world, sent, host);
                let what = format!("{created_by} on {host} in {portainer}: {sent}: {fate}");
                assert_eq!(matches!(fate, Fate::Unchanged), is_kept, "{what}");
                assert!(!matches!(fate, Fate::Unknown(_)), "{what}");
                // B39: only where it makes the hash equal.
                assert_eq!(lengthens, sent == SHORT && !short && long, "{what}");
            }
        }
    }
}

#[test]
fn b47_a_hash_that_no_version_computes_is_another_configuration() {
    let changed = "the Compose file or .env has changed since the container started";
    let unknown = "Compose 9.0.0 started it, which stacklift does not know";
    for (by, expected) in [
        ("2.26.1", Fate::Recreated(changed.to_owned())),
        ("5.6.1", Fate::Recreated(changed.to_owned())),
        ("9.0.0", Fate::unknown(unknown)),
    ] {
        let mut world = started(by, Some("0"), "2.45.0");
        assert_eq!(
            planned(&mut world, SHORT, "5.6.1"),
            (expected, false),
            "{by}"
        );
    }
    let why = "Compose 5.6.1 started it; Compose in Portainer records bind mounts in the short syntax or with `create_host_path` in another form, and treats that as a change";
    let mut world = started("5.6.1", None, "2.45.0");
    assert_eq!(
        planned(&mut world, SHORT, "5.6.1").0,
        Fate::Recreated(why.to_owned())
    );
}

#[test]
fn b47_what_portainer_has_is_not_sent_again_to_record_it_in_another_form() {
    let other = "the Compose file or .env has changed since the container started";
    for (hash, expected) in [
        (None, Fate::Unchanged),
        (Some("0"), Fate::Recreated(other.to_owned())),
    ] {
        let mut world = started("5.6.1", hash, "2.45.0");
        let first = planned(&mut world, SHORT, "5.6.1").0;
        assert!(matches!(first, Fate::Recreated(_)), "{first}");
        world.deployed = Some((SHORT, Vec::new()));
        assert_eq!(planned(&mut world, SHORT, "5.6.1").0, expected);
    }
}

#[test]
fn b47_what_is_unknown_of_a_service_is_named() {
    let device = json!({"capabilities": ["gpu"], "count": -1});
    let deploy = json!({"resources": {"reservations": {"devices": [device]}}});
    // Portainer 2.30.0 has one of several versions of Compose, and only the first hashes `profiles`.
    for (service, created_by, portainer, part) in [
        (
            json!({"deploy": deploy, "image": "x"}),
            "5.6.1",
            "2.21.0",
            "reserved devices without `count`",
        ),
        (
            json!({"profiles": ["a"], "image": "x"}),
            "2.29.7",
            "2.30.0",
            "`profiles`",
        ),
    ] {
        let config = json!({"services": {"web": service}});
        let read = Read {
            config: config.clone(),
            printed_by: ComposeVersion(5, 6, 1),
            folder: None,
        };
        let project = Project::new(&read, &BTreeMap::new(), None);
        let hash = sha256(&service.to_string());
        let mut world = started(created_by, Some(&hash), portainer);
        world.compose = config.to_string().replace(",\"count\":-1", "");
        let why = format!(
            "Compose in this version of Portainer may record {part} in another form, and treat that as a change"
        );
        world.on_disk = Some(project.clone());
        world.read = Some(project);
        assert_eq!(planned_of(&world).0, Fate::unknown(&why));
    }
}

/// Compose looks at them since 2.32 (N05).
#[test]
fn b38_a_container_that_lacks_a_network_is_recreated() {
    let why = "its container is not connected to network web_default";
    for (portainer, state, expected) in [
        ("2.23.0", "running", Fate::Unchanged),
        ("2.45.0", "running", Fate::Recreated(why.to_owned())),
        (
            "2.45.0",
            "exited",
            Fate::Started("is stopped and will be started".to_owned()),
        ),
    ] {
        let mut world = started("2.26.1", None, portainer);
        world.containers[0]["NetworkSettings"]["Networks"] = json!({});
        world.containers[0]["State"]["Status"] = json!(state);
        world.containers[0]["State"]["Running"] = json!(state != "exited");
        world.containers[0]["State"]["Restarting"] = json!(state == "restarting");
        let (fate, _) = planned(&mut world, SHORT, "2.26.1");
        assert_eq!(fate, expected, "{portainer} {state}");
    }
}

#[test]
fn b38_a_container_may_lack_a_volume() {
    let text = "services: {web: {image: x, volumes: ['data:/data']}}\nvolumes: {data: {name: new}}";
    for (mounted, state, expected) in [
        ("new", "running", None),
        (
            "web_data",
            "running",
            Some("its container does not mount a volume of its service"),
        ),
        (
            "web_data",
            "exited",
            Some("its container does not mount a volume of its service"),
        ),
    ] {
        let mut web = container("web-web-1", "web");
        web["State"]["Status"] = json!(state);
        web["Mounts"] = json!([{"Type": "volume", "Name": mounted, "Destination": "/data"}]);
        let project = tests::read(Sent::new(text, &[])).expect("a project");
        let lacked = lack(&web, &project.services[0]);
        assert_eq!(lacked.as_deref(), expected, "{mounted} {state}");
    }
}
