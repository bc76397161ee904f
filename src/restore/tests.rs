//! What a restore plans, and that any containers can be planned.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::json;

use super::{
    plan::{Plan, is_stranger, named},
    recipe::NewIds,
};
use crate::{
    after::Creator,
    model::Container,
    snapshot::{Known, LastSent, Snapshot, TextFile, VERSION},
};

fn container(name: &str, service: &str, depends_on: &str, network_mode: &str) -> Container {
    Container(json!({
        "Id": format!("{name:0<64}"),
        "Name": format!("/{name}"),
        "Image": "sha256:1",
        "Config": {"Labels": {
            "com.docker.compose.project": "web",
            "com.docker.compose.service": service,
            "com.docker.compose.depends_on": depends_on,
        }},
        "HostConfig": {"NetworkMode": network_mode},
        "State": {"Running": true},
    }))
}

fn snapshot(containers: Vec<Container>) -> Snapshot {
    Snapshot {
        ran_whole: None,
        version: VERSION,
        taken: String::new(),
        flags: Vec::new(),
        command: "migrate".to_owned(),
        stack: "web".to_owned(),
        dir: "/opt/stacks/web".to_owned(),
        tool: "docker".to_owned(),
        base_url: String::new(),
        endpoint: 1,
        compose: TextFile {
            name: String::new(),
            text: String::new(),
        },
        env: None,
        record: Known::Known(None),
        may_be_unseen: false,
        last_sent: LastSent::default(),
        containers: Known::Known(containers),
        networks: Known::Known(Vec::new()),
        volumes: Known::Known(Vec::new()),
        layers: BTreeMap::new(),
        changes: BTreeMap::new(),
        births: BTreeMap::new(),
    }
}

#[test]
fn dependencies_come_first() {
    let vpn = format!("{:0<64}", "vpn");
    let depends = "db:service_started:false,cache:service_healthy:true";
    let snapshot = snapshot(vec![
        container("torrent", "torrent", "", &format!("container:{vpn}")),
        container("app", "app", depends, "x"),
        container("cache", "cache", "db:service_started:false", "x"),
        container("db", "db", "app:service_started:false", "x"),
        container("vpn", "vpn", "", "x"),
    ]);
    let plan = Plan::new(&snapshot, &[], (&BTreeSet::new(), &BTreeSet::new()));
    let (order, saved) = (
        plan.dependencies.order().iter(),
        snapshot.containers.items(),
    );
    let names: Vec<&str> = order.map(|&index| saved[index].name()).collect();
    // `db` and `app` depend on each other: the cycle is cut.
    assert_eq!(names, ["vpn", "torrent", "db", "cache", "app"]);
    assert_eq!(plan.create.len(), 5);
}

#[test]
fn a_container_that_shares_with_a_recreated_one_is_recreated() {
    let vpn = container("vpn", "vpn", "", "x");
    let id = vpn["Id"].as_str().expect("an id").to_owned();
    let torrent = container("torrent", "torrent", "", &format!("container:{id}"));
    let snapshot = snapshot(vec![torrent.clone(), vpn]);
    let plan = Plan::new(&snapshot, &[torrent], (&BTreeSet::new(), &BTreeSet::new()));
    assert_eq!(plan.create.len(), 2);
    assert_eq!(plan.remove.len(), 1);
}

#[test]
fn b18_a_network_that_is_given_by_its_id_is_restored_by_its_name() {
    let id = "0a".repeat(32);
    let endpoint = |id: &str| json!({"NetworkID": id, "Aliases": ["web", "www"]});
    let mut saved = container("web", "web", "", &id);
    saved["NetworkSettings"] = json!({"Networks": {"back": endpoint("b"), "proxy": endpoint(&id)}});
    let recipe = saved.recipe("x", &NewIds::new());
    assert_eq!(recipe.body["HostConfig"]["NetworkMode"], "proxy");
    let first = &recipe.body["NetworkingConfig"]["EndpointsConfig"];
    assert_eq!(*first, json!({"proxy": {"Aliases": ["web", "www"]}}));
    assert_eq!(recipe.connect.len(), 1);
    let mut restored = saved.clone();
    restored["HostConfig"]["NetworkMode"] = json!("proxy");
    assert_eq!(saved.differences(&restored, Creator::Restore), []);
    // A container that was never started.
    saved["NetworkSettings"] = json!({"Networks": {"proxy": endpoint("")}});
    assert_eq!(saved.network_mode(), "proxy");
    for mode in ["host", "default", "proxy", "container:0a"] {
        saved["HostConfig"]["NetworkMode"] = json!(mode);
        assert_eq!(saved.network_mode(), mode);
    }
}

#[test]
fn a_fixed_address_of_either_family_comes_first() {
    for (key, address) in [("IPv4Address", "172.28.9.10"), ("IPv6Address", "fd00::10")] {
        let mut fixed = container("z", "z", "", "back");
        fixed["NetworkSettings"] = json!({"Networks": {
            "back": {"IPAMConfig": {key: address}},
            "front": {"IPAMConfig": {"IPv4Address": ""}},
        }});
        let networks = fixed.fixed_addresses();
        assert!(networks.map(|(name, _)| name).eq(["back"]), "{key}");
        let snapshot = snapshot(vec![container("a", "a", "", "back"), fixed.clone()]);
        let plan = Plan::new(&snapshot, &[], (&BTreeSet::new(), &BTreeSet::new()));
        assert_eq!(plan.dependencies.order(), [1, 0], "{key}");
    }
}

/// Fields of an inspect object with values, as they should be or not.
const FIELDS: &str = r#"Id | "a" | "b" | "0123456789abcdef" | "é€" | 7
Name | "/a" | "/b" | "c" | []
Config/Labels | {"com.docker.compose.service": "a", "com.docker.compose.depends_on": "b:x:false,a"} | 3
Config/Labels | {"com.docker.compose.service": "b", "com.docker.compose.depends_on": ",a"}
Config/Env | ["A=1", "A", ""] | {}
Config/Hostname | "a" | "0123456789ab" | 1
HostConfig/NetworkMode | "host" | "web_default" | "container:a" | "container:b"
HostConfig/IpcMode | "host" | "web_default" | "container:a" | "container:b"
HostConfig/VolumesFrom | ["a", "b:ro", ":"] | "a"
HostConfig/Binds | ["data:/data", "z"] | [1]
HostConfig/Mounts | [{"Type": "volume", "Target": "/a"}] | [1]
Mounts | [{"Type": "volume", "Name": "a", "Destination": "/a"}, {}] | [null]
NetworkSettings/Networks | {"web_default": {"Aliases": ["a", 1], "IPAMConfig": []}} | []
State | {"Running": true, "Paused": true} | null"#;

/// An inspect object, complete or not.
fn inspected() -> impl Strategy<Value = Container> {
    vec(any::<[Index; 2]>(), 0..20).prop_map(|picked| {
        let mut object = json!({});
        let fields: Vec<&str> = FIELDS.lines().collect();
        for [field, value] in picked {
            let (path, values) = field.get(&fields).split_once(" | ").expect("values");
            let mut at = &mut object;
            for key in path.split('/') {
                at = &mut at[key];
            }
            let values: Vec<&str> = values.split(" | ").collect();
            *at = serde_json::from_str(value.get::<&str>(&values)).expect("JSON");
        }
        Container(object)
    })
}

#[test]
fn b18_a_domain_name_is_kept_without_a_hostname() {
    let recreated = |network_mode| {
        let mut saved = container("web-a-1", "a", "", network_mode);
        saved["Config"]["Domainname"] = json!("example.org");
        saved["Config"]["Hostname"] = saved["Id"].as_str().expect("an ID")[..12].into();
        let recipe = saved.recipe("x", &NewIds::new());
        ["Hostname", "Domainname"].map(|key| recipe.body.get(key).cloned())
    };
    assert_eq!(recreated("web_default"), [None, Some(json!("example.org"))]);
    assert_eq!(recreated("container:1"), [None, None]);
}

proptest! {
    #[test]
    fn a_restore_plans_every_container_once(saved_ones in vec(inspected(), 0..5), others in vec(inspected(), 0..3)) {
        let snapshot = snapshot(saved_ones.clone());
        let containers = snapshot.containers.items();
        let ids: NewIds = containers
            .iter()
            .map(|container| (container.id().to_owned(), "0".repeat(64)))
            .collect();
        for container in containers {
            prop_assert_eq!(container.differences(container, Creator::Restore), []);
            prop_assert!(container.recipe(container.image_name(), &ids).body.is_object());
            let _ = container.own_files(&["/a", "/a/b", "//", ""], &[]);
        }
        for existing in [Vec::new(), saved_ones, others] {
            let plan = Plan::new(&snapshot, &existing, (&BTreeSet::new(), &BTreeSet::new()));
            let mut order = plan.dependencies.order().to_vec();
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..containers.len()));
            for (index, container) in containers.iter().enumerate() {
                let other = named(&existing, container.name());
                let is_taken = other.is_some_and(|now| is_stranger(&snapshot, now));
                let ways = [plan.keep.contains_key(&index), plan.create.contains(&index), is_taken];
                prop_assert_eq!(ways.iter().filter(|one| **one).count(), 1);
            }
        }
    }
}
