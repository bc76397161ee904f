use serde_json::json;

use crate::plan::tests::{World, world};

/// The container of a service that publishes ports.
fn unedited() -> World {
    let mut world = world(
        "services: {web: {image: x, ports: ['8080:80', '127.0.0.1:9000-9001:90-91/udp', '7000']}}",
    );
    world.set(
        0,
        "/HostConfig/PortBindings",
        json!({
            "80/tcp": [{"HostIp": "", "HostPort": "8080"}],
            "90/udp": [{"HostIp": "127.0.0.1", "HostPort": "9000"}],
            "91/udp": [{"HostIp": "127.0.0.1", "HostPort": "9001"}],
            "7000/tcp": [{"HostIp": "", "HostPort": ""}],
        }),
    );
    world
}

#[test]
fn b01_no_port_of_an_unedited_file_is_lost() {
    unedited().loses([""; 0]);
}

#[test]
fn b01_ports_of_an_edited_file() {
    for (old, new, lost) in [
        ("8080:80", "8081:80", "8080->80/tcp; new: 8081->80/tcp"),
        (
            "8080:80",
            "127.0.0.1:8080:80",
            "8080->80/tcp; new: 127.0.0.1:8080->80/tcp",
        ),
        ("9000-9001:90-91", "9000:90", "127.0.0.1:9001->91/udp"),
        (", '7000']", "]", "7000/tcp"),
        ("'8080:80', ", "", "8080->80/tcp"),
    ] {
        let mut world = unedited();
        world.compose = world.compose.replacen(old, new, 1);
        world.loses([format!("web-web-1: ports no longer published: {lost}")]);
    }
    let mut world = unedited();
    world.compose = world.compose.replace("'8080:80'", "'${PORT}:80'");
    world.shell.push(("PORT", "8080"));
    world.loses(["service web: settings no longer set: ports[0].published"]);
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
