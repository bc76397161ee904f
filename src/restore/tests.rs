//! What a restore plans, and that any snapshot can be planned.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};

use super::{
    plan::{Plan, saved},
    recipe::NewIds,
};
use crate::{
    model::{Change, ChangeKind, Changes, Variable},
    snapshot::{Inspected, Known, SavedRecord, Snapshot, TextFile, VERSION},
};

fn container(name: &str, service: &str, depends_on: &str, network_mode: &str) -> Value {
    json!({
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
    })
}

fn snapshot(containers: Vec<Value>) -> Snapshot {
    Snapshot {
        ran_whole: None,
        version: VERSION,
        taken: String::new(),
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
    let snapshot = snapshot(vec![
        container("torrent", "torrent", "", &format!("container:{vpn}")),
        container(
            "app",
            "app",
            "db:service_started:false,cache:service_healthy:true",
            "x",
        ),
        container("cache", "cache", "db:service_started:false", "x"),
        container("db", "db", "app:service_started:false", "x"),
        container("vpn", "vpn", "", "x"),
    ]);
    let plan = Plan::new(&snapshot, &[], &BTreeSet::new());
    let names: Vec<&str> = plan
        .dependencies
        .order()
        .iter()
        .map(|&index| saved(&snapshot)[index].name())
        .collect();
    // `db` and `app` depend on each other: the cycle is cut.
    assert_eq!(names, ["vpn", "torrent", "db", "cache", "app"]);
    assert_eq!(plan.create.len(), 5);
}

#[test]
fn a_container_that_matches_the_snapshot_is_kept() {
    let app = container("app", "app", "", "x");
    let mut other = container("db", "db", "", "x");
    let snapshot = snapshot(vec![app.clone(), other.clone()]);
    other["Image"] = json!("sha256:2");
    let stranger = container("new", "new", "", "x");
    let plan = Plan::new(&snapshot, &[app, other, stranger], &BTreeSet::new());
    assert_eq!(plan.keep.keys().copied().collect::<Vec<_>>(), [0]);
    assert_eq!(plan.create.iter().copied().collect::<Vec<_>>(), [1]);
    let removed: Vec<&str> = plan.remove.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(removed, ["db", "new"]);
}

#[test]
fn a_container_that_shares_with_a_recreated_one_is_recreated() {
    let vpn = container("vpn", "vpn", "", "x");
    let id = vpn["Id"].as_str().expect("an id").to_owned();
    let torrent = container("torrent", "torrent", "", &format!("container:{id}"));
    let snapshot = snapshot(vec![torrent.clone(), vpn]);
    let plan = Plan::new(&snapshot, &[torrent], &BTreeSet::new());
    assert_eq!(plan.create.len(), 2);
    assert_eq!(plan.remove.len(), 1);
}

#[test]
fn b18_a_network_that_is_given_by_its_id_is_restored_by_its_name() {
    let id = "0a".repeat(32);
    let endpoint = |id: &str| json!({"NetworkID": id, "Aliases": ["web", "www"]});
    let mut saved = container("web", "web", "", &id);
    saved["NetworkSettings"] = json!({"Networks": {"back": endpoint("b"), "proxy": endpoint(&id)}});
    let recipe = Inspected(&saved).recipe("x", &NewIds::new());
    assert_eq!(recipe.body["HostConfig"]["NetworkMode"], "proxy");
    let first = &recipe.body["NetworkingConfig"]["EndpointsConfig"];
    assert_eq!(*first, json!({"proxy": {"Aliases": ["web", "www"]}}));
    assert_eq!(recipe.connect.len(), 1);
    let mut restored = saved.clone();
    restored["HostConfig"]["NetworkMode"] = json!("proxy");
    assert_eq!(Inspected(&saved).differences(Inspected(&restored)), []);
    // A container that was never started.
    saved["NetworkSettings"] = json!({"Networks": {"proxy": endpoint("")}});
    assert_eq!(Inspected(&saved).network_mode(), "proxy");
    for mode in ["host", "default", "proxy", "container:0a"] {
        saved["HostConfig"]["NetworkMode"] = json!(mode);
        assert_eq!(Inspected(&saved).network_mode(), mode);
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
        let networks: Vec<&str> = Inspected(&fixed).fixed_networks().collect();
        assert_eq!(networks, ["back"], "{key}");
        let snapshot = snapshot(vec![container("a", "a", "", "back"), fixed.clone()]);
        assert_eq!(
            Plan::new(&snapshot, &[], &BTreeSet::new())
                .dependencies
                .order(),
            [1, 0],
            "{key}"
        );
    }
}

/// Any JSON without fractions, which engines do not write.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-c:/,=]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec(("[a-c]{0,2}", inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// A value of the expected shape, or any other one, or none.
fn perhaps(
    expected: impl Strategy<Value = Value> + 'static,
) -> impl Strategy<Value = Option<Value>> {
    option::of(prop_oneof![4 => expected.boxed(), 1 => json().boxed()])
}

fn object(entries: Vec<(&'static str, Option<Value>)>) -> Value {
    let entries = entries.into_iter();
    let entries = entries.filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(entries.collect::<Map<_, _>>())
}

fn text(choices: &'static [&'static str]) -> impl Strategy<Value = Value> {
    select(choices).prop_map(Value::from)
}

fn texts(choices: &'static [&'static str]) -> impl Strategy<Value = Value> {
    vec(text(choices), 0..3).prop_map(Value::from)
}

const IDS: [&str; 4] = ["a", "b", "0123456789abcdef", "é€"];
const MODES: [&str; 5] = [
    "host",
    "web_default",
    "default",
    "container:a",
    "container:b",
];

/// An inspect object, complete or not.
fn inspected() -> impl Strategy<Value = Value> {
    let labels = prop_oneof![
        Just(
            json!({"com.docker.compose.service": "a", "com.docker.compose.depends_on": "b:x:false,a"})
        ),
        Just(json!({"com.docker.compose.service": "b", "com.docker.compose.depends_on": ",a"})),
    ];
    let config = (
        perhaps(labels),
        perhaps(texts(&["A=1", "A", ""])),
        perhaps(text(&["a", "0123456789ab"])),
    )
        .prop_map(|(labels, env, hostname)| {
            object(vec![
                ("Labels", labels),
                ("Env", env),
                ("Hostname", hostname),
            ])
        });
    let host = (
        perhaps(text(&MODES)),
        perhaps(text(&MODES)),
        perhaps(texts(&["a", "b:ro", ":"])),
        perhaps(texts(&["data:/data", "/x:/y:ro", "z"])),
        perhaps(vec(json(), 0..2).prop_map(Value::from)),
    )
        .prop_map(|(network, ipc, from, binds, mounts)| {
            object(vec![
                ("NetworkMode", network),
                ("IpcMode", ipc),
                ("VolumesFrom", from),
                ("Binds", binds),
                ("Mounts", mounts),
            ])
        });
    let mount = (
        perhaps(text(&["volume", "bind"])),
        perhaps(text(&IDS)),
        perhaps(text(&["/a", "/"])),
    )
        .prop_map(|(kind, name, target)| {
            object(vec![
                ("Type", kind),
                ("Name", name),
                ("Destination", target),
            ])
        });
    let networks = (perhaps(texts(&IDS)), perhaps(json()))
        .prop_map(|(aliases, ipam)| {
            json!({"Networks": {"web_default": object(vec![("Aliases", aliases), ("IPAMConfig", ipam)])}})
        });
    let state = any::<[bool; 2]>()
        .prop_map(|[running, paused]| json!({"Running": running, "Paused": paused}));
    (
        perhaps(text(&IDS)),
        perhaps(text(&["/a", "/b", "c"])),
        perhaps(config),
        perhaps(host),
        perhaps(vec(mount, 0..3).prop_map(Value::from)),
        perhaps(networks),
        perhaps(state),
    )
        .prop_map(|(id, name, config, host, mounts, networks, state)| {
            object(vec![
                ("Id", id),
                ("Name", name),
                ("Config", config),
                ("HostConfig", host),
                ("Mounts", mounts),
                ("NetworkSettings", networks),
                ("State", state),
            ])
        })
}

fn known<T: std::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Known<T>> {
    prop_oneof![
        4 => value.prop_map(Known::Known).boxed(),
        1 => any::<String>().prop_map(Known::Unknown).boxed(),
    ]
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let record = option::of(any::<[String; 4]>()).prop_map(|record| {
        record.map(|[id, text, name, value]| SavedRecord {
            id,
            name: "web".to_owned(),
            endpoint: 1,
            text,
            env: vec![Variable { name, value }],
            inactive: None,
            access: None,
        })
    });
    let changes = known(vec("[/ab]{0,4}", 0..3).prop_map(|paths| {
        let mut changes = Changes::default();
        for path in paths {
            changes.add(Change {
                path,
                kind: ChangeKind::Added,
            });
        }
        changes
    }));
    (
        known(record),
        known(vec(inspected(), 0..5)),
        known(vec(json(), 0..2)),
        vec((select(&IDS[..]), changes), 0..3),
        any::<String>(),
    )
        .prop_map(|(record, containers, networks, changes, text)| {
            let mut snapshot = snapshot(Vec::new());
            snapshot.record = record;
            snapshot.containers = containers;
            snapshot.volumes = networks.clone();
            snapshot.networks = networks;
            snapshot.changes = changes
                .into_iter()
                .map(|(id, changes)| (id.to_owned(), changes))
                .collect();
            snapshot.compose.text = text;
            snapshot
        })
}

#[test]
fn b18_a_domain_name_is_kept_without_a_hostname() {
    let recreated = |network_mode| {
        let mut saved = container("web-a-1", "a", "", network_mode);
        saved["Config"]["Domainname"] = json!("example.org");
        saved["Config"]["Hostname"] = saved["Id"].as_str().expect("an ID")[..12].into();
        let recipe = Inspected(&saved).recipe("x", &NewIds::new());
        ["Hostname", "Domainname"].map(|key| recipe.body.get(key).cloned())
    };
    assert_eq!(recreated("web_default"), [None, Some(json!("example.org"))]);
    assert_eq!(recreated("container:1"), [None, None]);
}

proptest! {
    #[test]
    fn a_snapshot_is_read_as_it_was_written(snapshot in any_snapshot()) {
        let written = serde_json::to_vec(&snapshot).expect("JSON");
        let read: Snapshot = serde_json::from_slice(&written).expect("a snapshot");
        prop_assert!(read == snapshot);
        let _ = (read.unknowns(), format!("{read:?}"));
    }

    #[test]
    fn a_restore_plans_every_container_once(snapshot in any_snapshot(), others in vec(inspected(), 0..3)) {
        let containers = saved(&snapshot);
        let ids: NewIds = containers
            .iter()
            .map(|container| (container.id().to_owned(), "0".repeat(64)))
            .collect();
        for container in &containers {
            prop_assert_eq!(container.differences(*container), []);
            prop_assert!(container.recipe(container.image_name(), &ids).body.is_object());
            let _ = container.own_files(&["/a", "/a/b", "//", ""], &[]);
        }
        let same = snapshot.containers.known().cloned().unwrap_or_default();
        for existing in [Vec::new(), same, others] {
            let plan = Plan::new(&snapshot, &existing, &BTreeSet::new());
            let mut order = plan.dependencies.order().to_vec();
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..containers.len()));
            prop_assert_eq!(plan.keep.len() + plan.create.len(), containers.len());
        }
    }
}
