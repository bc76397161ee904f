use serde_json::{Value, json};

use crate::plan::tests::{World, world};

const COMPOSE: &str = "
services:
  web:
    image: x
    tmpfs: /run:size=1m
    volumes:
      - ./data:/data
      - named:/named/
      - ./static:/static:ro
      - /anonymous
      - type: bind
        source: ./long
        target: /long
        bind: {create_host_path: true}
      - {type: volume, source: outer, target: /outer, read_only: true}
      - {type: tmpfs, target: /cache}
      - '${DATA:-./more}:/more'
    secrets: [token]
    configs: [{source: site, target: /etc/site}, inline]
volumes:
  named:
  outer: {name: shared, external: true}
secrets:
  token: {file: ./token}
configs:
  site: {file: ./site}
  inline: {content: x}
";

fn bind(source: &str, target: &str, is_writable: bool) -> Value {
    json!({"Type": "bind", "Source": source, "Destination": target, "RW": is_writable})
}

fn volume(name: &str, target: &str, is_writable: bool) -> Value {
    json!({
        "Type": "volume", "Name": name, "Destination": target, "RW": is_writable,
        "Source": format!("/var/lib/docker/volumes/{name}/_data"),
    })
}

/// A stack whose container has these mounts.
fn mounted(compose: &str, mounts: Value) -> World {
    let mut world = world(compose);
    world.missing = vec!["known"];
    world.containers[0]["Mounts"] = mounts;
    world
}

/// A container that [`COMPOSE`] started.
fn unedited() -> World {
    let mounts = json!([
        bind("/s/web/data", "/data", true),
        volume("web_named", "/named", true),
        bind("/s/web/static", "/static", false),
        bind("/s/web/long", "/long", true),
        volume("shared", "/outer", false),
        {"Type": "tmpfs", "Source": "", "Destination": "/cache", "RW": true},
        bind("/s/web/more", "/more", true),
        bind("/s/web/token", "/run/secrets/token", false),
        bind("/s/web/site", "/etc/site", false),
    ]);
    let mut world = mounted(COMPOSE, mounts);
    world.containers[0]["HostConfig"]["Tmpfs"] = json!({"/run": "size=1m"});
    world
}

#[test]
fn b01_no_mount_of_an_unedited_file_is_lost() {
    unedited().loses([""; 0]);
}

#[test]
fn b01_mounts_of_an_edited_file() {
    let gone = |name: &str| format!("/s/web/{name} is no longer mounted at /{name}");
    let at_data = |what: &str| format!("{what} is mounted at /data instead of /s/web/data");
    let at_named = |what: &str| {
        format!(
            "{what} is mounted at /named instead of volume web_named; the volume keeps its data"
        )
    };
    let elsewhere = "\n  named: {name: '${NAME:-elsewhere}'}\n";
    for (old, new, expected) in [
        ("      - ./data:/data\n", "", &*gone("data")),
        ("./data:/data", "./data:/data:ro", "/data becomes read-only"),
        ("/static:ro", "/static", "/static becomes writable"),
        ("./data:/data", "./other:/data", &at_data("/s/web/other")),
        ("target: /long", "target: /length", &gone("long")),
        ("./data:/data", "named:/data", &at_data("volume web_named")),
        (
            "named:/named/",
            "/named",
            &at_named("a new anonymous volume"),
        ),
        ("\n  named:\n", elsewhere, &at_named("volume elsewhere")),
        (
            "/run:size=1m",
            "/run/other",
            "a tmpfs is no longer mounted at /run",
        ),
        (
            "    secrets: [token]\n",
            "",
            "/s/web/token is no longer mounted at /run/secrets/token",
        ),
    ] {
        let mut world = unedited();
        assert!(world.compose.contains(old), "{old}");
        world.compose = world.compose.replacen(old, new, 1);
        assert_eq!(world.losses(), [format!("web-web-1: {expected}")], "{new}");
    }
}

#[test]
fn b01_the_same_directory_under_another_path_is_no_loss() {
    let text = "services: {web: {image: x, volumes: ['./data:/data']}}";
    for (source, losses, warnings) in [
        ("/linked", 0, 0),
        ("/s//web/./data/", 0, 0),
        ("/secret", 0, 1),
        ("/other", 1, 0),
    ] {
        let plan = mounted(text, json!([bind(source, "/data", true)])).plan();
        assert_eq!(plan.losses.len(), losses, "{source}: {:?}", plan.losses);
        assert_eq!(plan.warnings.len(), warnings, "{:?}", plan.warnings);
    }
    // A virtual machine mounts the host's files elsewhere.
    let mut world = mounted(text, json!([bind("/host_mnt/s/web/data", "/data", true)]));
    world.containers[0]["HostConfig"]["Binds"] = json!(["/s/web/data:/data:rw"]);
    world.loses([""; 0]);
}

#[test]
fn b01_mounts_that_the_losses_of_the_text_name_are_named_once() {
    for (item, now) in [
        ("../up:/up", "/s/up"),
        ("~/up:/up", "/root/up"),
        ("${HOME}/up:/up", "/root/up"),
    ] {
        let text = format!("services: {{web: {{image: x, volumes: ['{item}']}}}}");
        let world = mounted(&text, json!([bind(now, "/up", true)]));
        world.loses([format!(
            "service web: a path inside Portainer is mounted at /up instead of {now}"
        )]);
    }
}

#[test]
fn b01_mounts_from_other_services() {
    let compose = "
services:
  web:
    image: x
    volumes_from: ['db:ro', base]
    volumes: ['own:/own']
  db:
    image: x
    volumes: ['data:/data', './b:/own']
  base:
    image: x
    extends: db
    volumes: ['more:/more']
volumes: {data: {}, own: {}, more: {}}
";
    let mounts = json!([
        volume("web_data", "/data", true),
        volume("web_own", "/own", true),
        volume("web_more", "/more", true),
    ]);
    mounted(compose, mounts.clone()).loses([""; 0]);
    let edited = compose.replace(", base]", "]");
    let lost =
        "web-web-1: volume web_more is no longer mounted at /more; the volume keeps its data";
    mounted(&edited, mounts.clone()).loses([lost]);
    let unknown = compose.replace(", base]", ", 'container:c']");
    // What another container has is unknown.
    mounted(&unknown, mounts).loses([""; 0]);
}
