//! What a project consists of, as both adapters tell it.

use crate::{
    engine::Engine,
    model::{Change, ChangeKind},
};
use serde_json::Value;

use super::host::{Host, IMAGE, PROJECT, docker};

fn names(found: &[Value]) -> Vec<&str> {
    found
        .iter()
        .map(|object| object["Name"].as_str().unwrap())
        .collect()
}

pub fn inspects_each_kind_and_leaves_out_what_is_gone(host: &Host, engine: &Engine) {
    let project = Some(host.project.as_str());
    let ids = ["web", "gone", "db"].map(|name| {
        let label = ["--network=none", "--label", "a=b=c", "--memory=64m"];
        host.create(name, project, &label)
    });
    docker(&["rm", &ids[1]]);
    let found = engine.inspect_containers(&ids).unwrap();
    assert_eq!(
        names(&found),
        ["web", "db"].map(|name| format!("/{}", host.name(name)))
    );
    assert_eq!(found[0]["Id"], ids[0]);
    assert_eq!(found[0]["Config"]["Labels"]["a"], "b=c");
    assert_eq!(found[0]["HostConfig"]["Memory"], 64 << 20);

    host.network("net");
    let network = host.name("net");
    let id = docker(&["network", "inspect", "--format", "{{.Id}}", &network]);
    let no_such = host.name("no-such");
    for asked in [&network, &id] {
        let asked = [no_such.clone(), asked.clone()];
        let found = engine.inspect_networks(&asked).unwrap();
        assert_eq!(names(&found), [network.as_str()]);
        assert_eq!(found[0]["Id"], id);
        assert!(found[0]["IPAM"]["Config"][0]["Subnet"].is_string());
    }
    // The engine takes it for the beginning of an id.
    assert_eq!(
        engine
            .inspect_networks(&[id[..6].to_owned()])
            .unwrap()
            .len(),
        0
    );

    let volume = host.volume("data");
    let found = engine.inspect_volumes(&[volume.clone(), no_such]).unwrap();
    assert_eq!(names(&found), [volume.as_str()]);
    assert_eq!(found[0]["Driver"], "local");

    let image = docker(&["image", "inspect", "--format", "{{.Id}}", IMAGE]);
    let asked = [image.clone(), format!("sha256:{}", "0".repeat(64))];
    let found = engine.inspect_images(&asked).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["Id"], image);
}

pub fn tells_the_networks_and_volumes_of_the_project(host: &Host, engine: &Engine) {
    host.network("b");
    host.network("a");
    let volume = |name: &str, project: &str| {
        let label = format!("{PROJECT}={project}");
        let name = host.name(name);
        docker(&[
            "volume",
            "create",
            "--label",
            &host.mark(),
            "--label",
            &label,
            &name,
        ]);
    };
    volume("data", &host.project);
    volume("longer", &format!("{}x", host.project));
    host.volume("unlabelled");

    let found = engine.networks(&host.project).unwrap();
    assert_eq!(names(&found), [host.name("a"), host.name("b")]);
    let found = engine.volumes(&host.project).unwrap();
    assert_eq!(names(&found), [host.name("data")]);
    let none = host.name("no-such");
    assert_eq!(engine.networks(&none).unwrap(), [Value::Null; 0]);
    assert_eq!(engine.volumes(&none).unwrap(), [Value::Null; 0]);
}

pub fn tells_the_files_changed_in_a_container(host: &Host, engine: &Engine) {
    let project = Some(host.project.as_str());
    let id = host.run("web", project, &["--network=none", "-v", "/anonymous"]);
    let script = "echo > '/tmp/a b'; rm /bin/wget; echo > /anonymous/file";
    docker(&["exec", &id, "/bin/sh", "-c", script]);
    let changes = engine.changes(&id).unwrap();
    let change = |kind, path: &str| Change {
        path: path.to_owned(),
        kind,
    };
    for expected in [
        change(ChangeKind::Modified, "/tmp"),
        change(ChangeKind::Added, "/tmp/a b"),
        change(ChangeKind::Deleted, "/bin/wget"),
    ] {
        assert!(changes.listed.contains(&expected), "{changes:?}");
    }
    // A volume is none of the container's own layer.
    let in_volume = |change: &Change| change.path.starts_with("/anonymous/");
    assert!(!changes.listed.iter().any(in_volume), "{changes:?}");
    assert_eq!(changes.total, changes.listed.len());

    host.create("new", project, &[]);
    assert_eq!(engine.changes(&host.name("new")).unwrap().total, 0);
    assert!(engine.changes(&host.name("no-such")).is_err());
}
