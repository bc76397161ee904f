//! Both adapters on a real engine, with containers that the real `docker` command started.
//!
//! The tests are ignored by default. `scripts/test` runs them, and starts an engine if none is running.

mod fixtures;
#[path = "../../tests/engine/host.rs"]
#[allow(
    dead_code,
    reason = "the tests of adopt need more programs of the host"
)]
mod host;
mod objects;
mod restoring;

use std::{collections::BTreeMap, thread, time::Duration};

use super::{Choice, ClientConfig, Engine, Options};
use crate::{
    model::{Container, Mount, MountKind, PublishedPort},
    trace::Trace,
};

use self::{
    host::{Host, IMAGE, PROJECT, docker},
    objects::{
        inspects_each_kind_and_leaves_out_missing_objects, lists_the_changed_files_of_a_container,
        lists_the_networks_and_volumes_of_the_project,
    },
};

/// Runs each test with both adapters.
macro_rules! by_both_adapters {
    ($($test:ident),+ $(,)?) => {
        mod api {
            $(
                #[test]
                #[ignore = "needs a container engine: run scripts/test"]
                fn $test() { super::$test(&super::Host::new(), &super::engine(super::Choice::Api)); }
            )+
        }
        mod command {
            $(
                #[test]
                #[ignore = "needs a container engine: run scripts/test"]
                fn $test() { super::$test(&super::Host::new(), &super::engine(super::Choice::Command)); }
            )+
        }
    };
}

by_both_adapters! {
    c52_lists_the_project_in_every_state,
    c52_removes_the_project_and_nothing_else,
    c52_removes_thirty_at_once,
    c52_a_container_that_no_longer_exists_counts_as_removed,
    c52_two_concurrent_removals_both_succeed,
    c52_takes_any_project_name_literally,
    c54_reports_names_ports_and_mounts,
    b03_reports_the_id_of_the_engine,
    b04_reports_the_image_name_that_the_container_was_created_with,
    inspects_each_kind_and_leaves_out_missing_objects,
    lists_the_networks_and_volumes_of_the_project,
    lists_the_changed_files_of_a_container,
}

/// The engine, reached by this adapter.
fn engine(choice: Choice) -> Engine {
    Engine::open(Options {
        tool: "docker".to_owned(),
        choice,
        client: ClientConfig::from_env(),
        read_timeout: Duration::from_secs(30),
        connect_timeout: Duration::from_secs(10),
        removal_timeout: Duration::from_mins(2),
        change_timeout: Duration::from_mins(2),
        trace: Trace::off(),
    })
}

fn names(containers: &[Container]) -> Vec<&str> {
    containers
        .iter()
        .flat_map(|found| &found.names)
        .map(String::as_str)
        .collect()
}

/// Creates containers that do not belong to the project.
fn strangers(host: &Host) {
    let longer = format!("{}x", host.project);
    host.run("other", Some("stacklift-test-other"), &["--network=none"]);
    host.create("longer", Some(&longer), &[]);
    host.create("unlabelled", None, &[]);
    let other_tool = format!("com.podman.compose.project={}", host.project);
    host.create("othertool", None, &["--label", &other_tool]);
}

const STRANGERS: [&str; 4] = ["longer", "other", "othertool", "unlabelled"];

fn c52_lists_the_project_in_every_state(host: &Host, engine: &Engine) {
    let project = Some(host.project.as_str());
    strangers(host);
    host.run("web", project, &["--network=none"]);
    host.create("created", project, &[]);
    host.run_to_end("job", &["/bin/true"]);
    host.run("paused", project, &["--network=none"]);
    docker(&["pause", &host.name("paused")]);

    let found = engine.list(&host.project).unwrap();
    let states: Vec<_> = found
        .iter()
        .map(|found| (found.names[0].as_str(), found.state.as_str()))
        .collect();
    let name = |short| host.name(short);
    assert_eq!(
        states,
        [
            (name("created").as_str(), "created"),
            (name("job").as_str(), "exited"),
            (name("paused").as_str(), "paused"),
            (name("web").as_str(), "running"),
        ]
    );
    let starts = ["Created", "Exited (0) ", "Up ", "Up "];
    for (container, start) in found.iter().zip(starts) {
        assert!(container.status.starts_with(start), "{container:?}");
        let id = docker(&["inspect", "--format", "{{.Id}}", &container.names[0]]);
        assert_eq!(container.id, id);
    }
    assert!(found[2].status.ends_with("(Paused)"), "{:?}", found[2]);
    assert_eq!(engine.list("stacklift-test-no-such-project").unwrap(), []);
}

fn c52_removes_the_project_and_nothing_else(host: &Host, engine: &Engine) {
    let project = Some(host.project.as_str());
    strangers(host);
    let named = host.volume("data");
    let mount = format!("{named}:/data");
    host.run(
        "web",
        project,
        &["--network=none", "-v", &mount, "-v", "/anonymous"],
    );
    host.create("created", project, &[]);
    host.run_to_end("job", &["/bin/true"]);
    host.run("paused", project, &["--network=none"]);
    docker(&["pause", &host.name("paused")]);

    let found = engine.list(&host.project).unwrap();
    let volumes: Vec<_> = found
        .iter()
        .flat_map(|found| &found.mounts)
        .cloned()
        .collect();
    assert_eq!(volumes.len(), 2);
    engine.remove(&found).unwrap();

    assert_eq!(host.existing(), STRANGERS);
    assert_eq!(engine.list(&host.project).unwrap(), []);
    for volume in volumes {
        let name = volume.name.unwrap();
        assert_eq!(
            docker(&["volume", "inspect", "--format", "{{.Name}}", &name]),
            name
        );
        docker(&["volume", "rm", &name]);
    }
}

fn c52_removes_thirty_at_once(host: &Host, engine: &Engine) {
    const MANY: usize = 30;
    let started: Vec<_> = (0..MANY).collect();
    thread::scope(|scope| {
        for part in started.chunks(MANY / 3) {
            scope.spawn(move || {
                for at in part {
                    host.run(
                        &format!("web-{at}"),
                        Some(&host.project),
                        &["--network=none"],
                    );
                }
            });
        }
    });
    let found = engine.list(&host.project).unwrap();
    assert_eq!(found.len(), MANY);
    assert!(found.iter().all(|found| found.state == "running"));
    engine.remove(&found).unwrap();
    assert_eq!(host.existing(), <[&str; 0]>::default());
}

fn c52_a_container_that_no_longer_exists_counts_as_removed(host: &Host, engine: &Engine) {
    let project = Some(host.project.as_str());
    for name in ["a", "b", "c"] {
        host.create(name, project, &[]);
    }
    let found = engine.list(&host.project).unwrap();
    docker(&["rm", &host.name("b")]);
    engine.remove(&found).unwrap();
    assert_eq!(host.existing(), <[&str; 0]>::default());
    engine.remove(&found).unwrap();
}

fn c52_two_concurrent_removals_both_succeed(host: &Host, engine: &Engine) {
    for at in 0..6 {
        host.run(
            &format!("web-{at}"),
            Some(&host.project),
            &["--network=none"],
        );
    }
    let found = engine.list(&host.project).unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| engine.remove(&found));
        engine.remove(&found).unwrap();
        other.join().unwrap().unwrap();
    });
    assert_eq!(host.existing(), <[&str; 0]>::default());
}

fn c52_takes_any_project_name_literally(host: &Host, engine: &Engine) {
    let odd = format!("{} \"ü\" 100% a=b&c+d", host.project);
    host.create("odd", Some(&odd), &[]);
    host.create("plain", Some(&host.project), &[]);
    assert_eq!(names(&engine.list(&odd).unwrap()), [host.name("odd")]);
    assert_eq!(
        names(&engine.list(&host.project).unwrap()),
        [host.name("plain")]
    );
    // The command trims its filters, which must not match another project.
    let spaced = format!("{} ", host.project);
    assert_eq!(engine.list(&spaced).unwrap(), []);
}

fn c54_reports_names_ports_and_mounts(host: &Host, engine: &Engine) {
    let project = Some(host.project.as_str());
    let named = host.volume("data");
    let mount = format!("{named}:/named");
    let options = [
        "-p",
        "80",
        "-p",
        "127.0.0.1::90/udp",
        "--expose",
        "70",
        "-v",
        &mount,
        "-v",
        "/anonymous",
        "-v",
        "/etc:/bind:ro",
        "--mount",
        "type=tmpfs,target=/tmpfs",
        "--label",
        "a.b=c=d",
    ];
    host.run("web", project, &options);
    // A link adds a name to the first container.
    let link = format!("{}:alias", host.name("web"));
    host.run("linked", project, &["--link", &link]);

    let found = engine.list(&host.project).unwrap();
    assert_eq!(names(&found), [host.name("linked"), host.name("web")]);
    let web = &found[1];
    assert_eq!(web.image, IMAGE);
    let labels = [
        ("a.b", "c=d"),
        (PROJECT, &host.project),
        ("stacklift.test", &host.project),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(web.labels, BTreeMap::from(labels));

    let name = host.name("web");
    let published = |port: &str| -> Vec<u16> {
        let lines = docker(&["port", &name, port]);
        lines
            .lines()
            .map(|line| line.rsplit_once(':').unwrap().1.parse().unwrap())
            .collect()
    };
    let port = |address: &str, host_port, container_port, protocol: &str| PublishedPort {
        address: address.to_owned(),
        host_port,
        container_port,
        protocol: protocol.to_owned(),
    };
    let ipv4: Vec<_> = web
        .ports
        .iter()
        .filter(|port| port.address != "::")
        .cloned()
        .collect();
    let (tcp, udp) = (published("80/tcp"), published("90/udp"));
    assert_eq!(
        ipv4,
        [
            port("0.0.0.0", tcp[0], 80, "tcp"),
            port("127.0.0.1", udp[0], 90, "udp")
        ]
    );
    assert_eq!(web.ports.len(), tcp.len() + udp.len());

    let anonymous = web.mounts[0].name.clone().unwrap();
    let mount = |kind, name: Option<&str>, source: &str, target: &str| Mount {
        kind,
        name: name.map(str::to_owned),
        source: source.to_owned(),
        target: target.to_owned(),
    };
    assert_eq!(
        web.mounts,
        [
            mount(MountKind::Volume, Some(&anonymous), "", "/anonymous"),
            mount(MountKind::Bind, None, "/etc", "/bind"),
            mount(MountKind::Volume, Some(&named), "", "/named"),
            mount(MountKind::Other, None, "", "/tmpfs"),
        ]
    );
    assert_eq!(
        docker(&["volume", "inspect", "--format", "{{.Name}}", &anonymous]),
        anonymous
    );
}

fn b03_reports_the_id_of_the_engine(_: &Host, engine: &Engine) {
    assert_eq!(
        engine.id().unwrap(),
        docker(&["info", "--format", "{{.ID}}"])
    );
}

fn b04_reports_the_image_name_that_the_container_was_created_with(host: &Host, engine: &Engine) {
    let image = format!("{}:latest", host.project);
    docker(&["tag", IMAGE, &image]);
    docker(&[
        "create",
        "--name",
        &host.name("old"),
        "--label",
        &format!("stacklift.test={}", host.project),
        "--label",
        &format!("{PROJECT}={}", host.project),
        &image,
        "/bin/true",
    ]);
    // The tag moves to another image: the engine then lists the ID of the old image.
    docker(&["commit", &host.name("old"), &image]);
    let images: Vec<_> = engine
        .list(&host.project)
        .unwrap()
        .into_iter()
        .map(|found| found.image)
        .collect();
    assert_eq!(images, [image]);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn both_adapters_and_auto_report_the_same() {
    let host = Host::new();
    let project = Some(host.project.as_str());
    host.run("web", project, &["-p", "80", "-v", "/anonymous"]);
    host.create("created", project, &["-p", "80"]);
    let [api, command, auto] = [Choice::Api, Choice::Command, Choice::Auto].map(|choice| {
        let mut found = engine(choice).list(&host.project).unwrap();
        for container in &mut found {
            // `Up 1 second` may become `Up 2 seconds`.
            container.status.truncate(2);
        }
        found
    });
    assert_eq!(api, command);
    assert_eq!(auto, command);
}
