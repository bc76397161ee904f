use serde_json::{Value, json};

use super::words;
use crate::plan::tests::{self, World, container, world};

const COMPOSE: &str = "
services:
  web:
    image: x
    command: sh -c 'serve --password hunter2'
    entrypoint: [/entry, '1', $$X]
    user: 1000:1000
    working_dir: /srv/
    hostname: front
    pid: service:db
    privileged: true
    init: true
    cap_add: [NET_ADMIN, sys_time]
    dns: 1.1.1.1
    devices: ['/dev/a:/dev/b:rw']
    labels: {a: 1, b: 'two', c: '${C:-three}'}
    ports: ['8080:80', '127.0.0.1:9000-9001:90-91/udp', '7000']
  db:
    image: x
";

/// The containers that [`COMPOSE`] started.
fn unedited() -> World {
    let mut world = world(COMPOSE);
    let db = container("web-db-1", "db");
    let id = db["Id"].as_str().expect("an ID");
    for (pointer, value) in [
        (
            "/Config/Cmd",
            json!(["sh", "-c", "serve --password hunter2"]),
        ),
        ("/Config/Entrypoint", json!(["/entry", "1", "$X"])),
        ("/Config/User", json!("1000:1000")),
        ("/Config/WorkingDir", json!("/srv")),
        ("/Config/Hostname", json!("front")),
        ("/HostConfig/PidMode", json!(format!("container:{id}"))),
        ("/HostConfig/IpcMode", json!("private")),
        ("/HostConfig/Privileged", json!(true)),
        ("/HostConfig/Init", json!(true)),
        ("/HostConfig/CapAdd", json!(["CAP_NET_ADMIN", "SYS_TIME"])),
        ("/HostConfig/Dns", json!(["1.1.1.1"])),
        (
            "/HostConfig/Devices",
            json!([{"PathOnHost": "/dev/a", "PathInContainer": "/dev/b"}]),
        ),
        (
            "/HostConfig/PortBindings",
            json!({
                "80/tcp": [{"HostIp": "", "HostPort": "8080"}],
                "90/udp": [{"HostIp": "127.0.0.1", "HostPort": "9000"}],
                "91/udp": [{"HostIp": "127.0.0.1", "HostPort": "9001"}],
                "7000/tcp": [{"HostIp": "", "HostPort": ""}],
            }),
        ),
    ] {
        world.set(0, pointer, value);
    }
    let labels = &mut world.containers[0]["Config"]["Labels"];
    for (label, value) in [("a", "1"), ("b", "two"), ("c", "three")] {
        labels[label] = json!(value);
    }
    labels["desktop.docker.io/x"] = json!("1");
    world.containers.push(db);
    world
}

#[test]
fn b01_no_setting_of_an_unedited_file_differs() {
    unedited().loses([""; 0]);
}

#[test]
fn b01_settings_of_an_edited_file() {
    for (old, new, keys) in [
        ("--password hunter2", "--password other", "command"),
        (
            "    command: sh -c 'serve --password hunter2'\n",
            "",
            "command",
        ),
        ("[/entry, '1', $$X]", "[/entry]", "entrypoint"),
        ("1000:1000", "1001", "user"),
        ("    user: 1000:1000\n", "", "user"),
        ("/srv/", "/other", "working_dir"),
        ("hostname: front", "hostname: back", "hostname"),
        ("    hostname: front\n", "", "hostname"),
        ("pid: service:db", "pid: service:web", "pid"),
        ("pid: service:db", "pid: host", "pid"),
        ("    pid: service:db\n", "", "pid"),
        ("    init: true\n", "    ipc: host\n", "ipc, init"),
        ("privileged: true", "privileged: false", "privileged"),
        ("sys_time", "SYS_NICE", "cap_add"),
        ("dns: 1.1.1.1", "dns: [1.1.1.1, 8.8.8.8]", "dns"),
        ("/dev/a:", "/dev/c:", "devices"),
        ("b: 'two', ", "", "labels"),
        ("'two'", "'three'", "labels"),
        // Only labels that the container has are lost.
        ("b: 'two'", "b: 'two', d: new", ""),
        // Compose does not split these like this program.
        ("'serve --password hunter2'", "a \\ b", ""),
        ("1000:1000", "'${HOSTNAME}'", ""),
    ] {
        let mut world = unedited();
        assert!(world.compose.contains(old), "{old}");
        world.compose = world.compose.replacen(old, new, 1);
        let mut losses = world.losses();
        losses.retain(|loss| loss.starts_with("web-web-1"));
        let differ = "web-web-1: settings that differ in the Compose file: ";
        assert_eq!(losses.is_empty(), keys.is_empty(), "{new}: {losses:?}");
        assert_eq!(losses.concat().trim_start_matches(differ), keys, "{new}");
    }
}

#[test]
fn b01_ports_of_an_edited_file() {
    for (old, new, lost) in [
        ("8080:80", "8081:80", "8080->80/tcp"),
        ("8080:80", "127.0.0.1:8080:80", "8080->80/tcp"),
        ("9000-9001:90-91", "9000:90", "127.0.0.1:9001->91/udp"),
        (", '7000']", "]", "7000/tcp"),
        ("'8080:80', ", "", "8080->80/tcp"),
    ] {
        let mut world = unedited();
        world.compose = world.compose.replacen(old, new, 1);
        world.loses([format!("web-web-1: ports no longer published: {lost}")]);
    }
    let mut world = unedited();
    world.compose = world.compose.replace("'8080:80'", "'${HOSTNAME}:80'");
    let losses = world.losses();
    assert!(
        losses.iter().all(|loss| !loss.contains("published")),
        "{losses:?}"
    );
}

#[test]
fn b01_settings_of_the_image_are_no_difference() {
    let image = json!({"Id": "sha256:x", "Config": {
        "Env": ["PATH=/bin", "VERSION=1"], "Cmd": ["serve"], "Entrypoint": ["/entry"],
        "User": "app", "WorkingDir": "/srv", "StopSignal": "SIGQUIT", "Labels": {"of": "image"},
    }});
    let mut world = world("services: {web: {image: x}}");
    for name in ["sha256:x", "x"] {
        world.images.insert(name.to_owned(), Some(image.clone()));
    }
    for (key, value) in image["Config"].as_object().expect("an object") {
        match key.as_str() {
            "Labels" => world.set(0, "/Config/Labels/of", json!("image")),
            key => world.set(0, &format!("/Config/{key}"), value.clone()),
        }
    }
    world.loses([""; 0]);
    world.containers[0]["Config"]["Cmd"] = json!(["other"]);
    world.containers[0]["Config"]["User"] = json!("root");
    world.loses(["web-web-1: settings that differ in the Compose file: command, user"]);
    world.images.clear();
    // The image's values are unknown.
    world.loses([""; 0]);
}

#[test]
fn b01_a_service_with_an_entrypoint_has_no_command_of_the_image() {
    let mut world = world("services: {web: {image: x, entrypoint: /entry}}");
    let image: &mut Option<Value> = world.images.get_mut("sha256:x").expect("an image");
    image.as_mut().expect("an image")["Config"]["Cmd"] = json!(["serve"]);
    world.containers[0]["Config"]["Entrypoint"] = json!(["/entry"]);
    world.loses([""; 0]);
    world.containers[0]["Config"]["Cmd"] = json!(["serve"]);
    world.loses(["web-web-1: settings that differ in the Compose file: command"]);
}

#[test]
fn b01_network_modes_that_share_a_container() {
    let other = format!("container:{}", "f".repeat(64));
    for (given, is_lost) in [
        ("network_mode: service:db", true),
        ("network_mode: container:vpn", false),
        ("network_mode: container:gone", false),
        ("network_mode: host", true),
        ("tty: false", true),
    ] {
        let mut world = world(&format!(
            "services: {{web: {{image: x, {given}}}, db: {{image: x}}}}"
        ));
        world.containers.push(container("web-db-1", "db"));
        world.others = vec![tests::other("vpn", "y", &[])];
        let host = &mut world.containers[0];
        host["HostConfig"]["NetworkMode"] = json!(other);
        host["NetworkSettings"]["Networks"] = json!({});
        let losses = world.losses();
        let is_named = losses
            .iter()
            .any(|loss| loss.ends_with("Compose file: network_mode"));
        // Which service the container belonged to is unknown: it is not one of the stack.
        let expected = is_lost && !given.contains("service:");
        assert_eq!(is_named, expected, "{given}: {losses:?}");
    }
}

#[test]
fn b01_images_of_an_edited_file() {
    for (now, after, is_lost) in [
        ("nginx:1.25", "nginx:1.27", true),
        ("nginx", "nginx:latest", false),
        ("docker.io/library/nginx:1", "nginx:1", false),
        ("host:5000/a", "host:5000/a:latest", false),
        ("host:5000/a", "a", true),
        ("sha256:0a", "nginx:1", false),
        ("nginx:1", "nginx@sha256:0a", true),
        ("nginx:1", "x", false),
    ] {
        let mut world = world(&format!("services: {{web: {{image: '{after}'}}}}"));
        world.containers[0]["Config"]["Image"] = json!(now);
        let loss = format!("web-web-1: image {after} instead of {now}");
        let losses = world.losses();
        let expected = if is_lost { vec![loss] } else { Vec::new() };
        assert_eq!(losses, expected, "{now} {after}");
    }
}

#[test]
fn commands_are_split_as_compose_splits_them() {
    for (text, expected) in [
        ("sleep  600", Some(vec!["sleep", "600"])),
        (
            "sh -c 'echo \"a b\" | cat'",
            Some(vec!["sh", "-c", "echo \"a b\" | cat"]),
        ),
        ("x --a=\"b c\"d ''", Some(vec!["x", "--a=b cd", ""])),
        ("a\n b\t", Some(vec!["a", "b"])),
        ("'a\\b'", Some(vec!["a\\b"])),
        ("a \\\"b", None),
        ("a | b", None),
        ("a 'b", None),
        ("", Some(vec![])),
    ] {
        let words = words(text);
        let words = words
            .as_ref()
            .map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(words, expected, "{text}");
    }
}
