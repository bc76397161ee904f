//! What `adopt` refuses: everything at once, with nothing touched, each with the way out.

use std::fs;

use rehearsal::{Call, FaultKind, Status};

use crate::bench::{Bench, PLAIN, Run};

/// Asserts that `adopt` is refused for these blockers only, as printed, and that nothing was touched.
#[track_caller]
fn refuses(bench: &Bench, args: &[&str], blockers: &[String]) {
    let world = || {
        bench.rehearsal.world(|world| {
            let records: Vec<_> = world.records.keys().copied().collect();
            (world.containers.clone(), records)
        })
    };
    let before = world();
    let run = adopt(bench, args).code(1);
    assert_eq!(listed(&run), blockers, "{run:#?}");
    run.says(&[
        "fix all of them, then run the command again",
        "this run changed nothing",
    ]);
    assert!(bench.nothing_was_changed());
    assert!(world() == before);
    assert!(!bench.state().join("snapshots").exists(), "no snapshot");
    // Long lines are wrapped.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plan = words(&bench.run(&[&["plan"], args].concat()).all());
    for blocker in blockers {
        let message = blocker.split('\n').next().expect("a line");
        assert!(plan.contains(&words(message)), "{message} in {plan}");
    }
    assert!(bench.nothing_was_changed());
}

fn adopt(bench: &Bench, args: &[&str]) -> Run {
    bench.run(&[&["adopt"], args].concat())
}

/// The blockers of a run: each with its lines, without their indentation.
fn listed(run: &Run) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_list = false;
    for line in run.err.lines() {
        let words = line.trim_start();
        if line.contains("cannot adopt the stack") {
            is_list = true;
        } else if words.starts_with("hint: fix all of them") || words.starts_with("state:") {
            is_list = false;
        } else if let Some(first) = words.strip_prefix("- ").filter(|_| is_list) {
            found.push(first.to_owned());
        } else if let Some(last) = found.last_mut().filter(|_| is_list) {
            last.push('\n');
            last.push_str(words);
        }
    }
    found
}

/// Asserts that `adopt` succeeds, with the containers untouched.
#[track_caller]
fn adopts(bench: &Bench, project: &str, args: &[&str]) {
    let before = bench.containers(project);
    adopt(bench, args).code(0);
    assert_eq!(bench.containers(project), before);
    assert_eq!(bench.calls(Call::Create).len(), 1);
}

/// The engine's state of a container.
fn exits(bench: &Bench, name: &str, code: i64) {
    bench.rehearsal.world(|world| {
        let now = world.now / 1000;
        let id = world.container(name).expect(name).id.clone();
        let container = world.containers.get_mut(&id).expect(name);
        container.exit(code, now);
    });
}

fn dir(bench: &Bench, name: &str) -> String {
    bench.dir(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn another_engine_an_unknown_one_and_a_forbidden_one() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench
        .rehearsal
        .world(|world| world.add_endpoint(2, "other"));
    let hint = "hint: pass the ID of this host's environment with --endpoint";
    refuses(
        &bench,
        &["web", "--endpoint", "2"],
        &[format!("environment 2 is not this host's engine\n{hint}")],
    );
    refuses(
        &bench,
        &["web", "--endpoint", "99"],
        &[format!("Portainer has no environment 99\n{hint}")],
    );
    let body = r#"{"message":"Permission denied to access environment","details":"Unauthorized"}"#;
    let kind = FaultKind::Status(403, body.to_owned());
    bench.rehearsal.faults().set(Call::Info, kind);
    refuses(
        &bench,
        &["web"],
        &[
            "the API key is not allowed to use environment 1 (403)\nhint: use an administrator's API key"
                .to_owned(),
        ],
    );
    bench.rehearsal.faults().clear();
    bench
        .rehearsal
        .faults()
        .set(Call::Info, FaultKind::Status(200, "{}".to_owned()));
    refuses(
        &bench,
        &["web"],
        &[
            "cannot verify that environment 1 is this host: Portainer's response contains no engine ID\nhint: Portainer and the engine of this host must both be reachable"
                .to_owned(),
        ],
    );
}

#[test]
fn c59_a_name_that_portainer_would_change() {
    let bench = Bench::new();
    let folder = dir(&bench, "AdvBig");
    bench.stack("AdvBig", PLAIN, None);
    bench
        .rehearsal
        .world(|world| world.start_by_hand("advbig", &folder))
        .expect("a stack that starts");
    refuses(
        &bench,
        &["AdvBig"],
        &[format!(
            "the stack cannot have the name AdvBig in Portainer: the name of its project would be \"advbig\"\nhint: adopt it under the name of its project: stacklift adopt advbig --dir {folder}"
        )],
    );
    adopts(&bench, "advbig", &["advbig", "--dir", &folder]);
}

#[test]
fn containers_of_the_directory_that_belong_to_another_project() {
    let bench = Bench::new();
    let folder = dir(&bench, "web");
    bench.stack("web", PLAIN, None);
    bench
        .rehearsal
        .world(|world| world.start_by_hand("shop", &folder))
        .expect("a stack that starts");
    refuses(
        &bench,
        &["web"],
        &[format!(
            "1 container of {folder} belongs to project shop, not to web\nshop-a-1\nhint: adopt them under that name: stacklift adopt shop --dir {folder}"
        )],
    );
    adopts(&bench, "shop", &["shop", "--dir", &folder]);
}

#[test]
fn a_text_that_names_another_project() {
    let bench = Bench::new();
    let folder = dir(&bench, "web");
    bench.stack("web", &format!("name: shop\n{PLAIN}"), None);
    bench
        .rehearsal
        .world(|world| world.add_image("busybox:1.36"));
    refuses(
        &bench,
        &["web"],
        &[format!(
            "the project of {folder} is shop, not web: its volumes and networks have that name\nhint: adopt it under that name: stacklift adopt shop --dir {folder}"
        )],
    );
    // The containers show that the stack was started under the other name.
    bench
        .rehearsal
        .world(|world| world.start_by_hand("web", &folder))
        .expect("a stack that starts");
    adopts(&bench, "web", &["web"]);
}

#[test]
fn containers_that_were_started_in_another_directory() {
    let bench = Bench::new();
    let (here, there) = (dir(&bench, "web"), dir(&bench, "old"));
    bench.stack("web", PLAIN, None);
    bench.stack("old", PLAIN, None);
    bench
        .rehearsal
        .world(|world| world.start_by_hand("web", &there))
        .expect("a stack that starts");
    refuses(
        &bench,
        &["web"],
        &[format!(
            "containers of project web were started in {there}, not in {here}\nweb-a-1\nhint: adopt them from there: stacklift adopt web --dir {there}"
        )],
    );
    fs::remove_dir_all(&here).expect("removed");
    adopt(&bench, &["web"])
        .code(1)
        .says(&[&format!("pass --dir {there}")]);
    // A directory that was moved.
    let moved = dir(&bench, "moved");
    fs::rename(&there, &moved).expect("moved");
    refuses(
        &bench,
        &["web", "--dir", &moved],
        &[format!(
            "containers of project web were started in {there}, not in {moved}\nweb-a-1\nhint: that directory is gone: recreate the containers from this one with `docker compose -p web up -d --force-recreate`"
        )],
    );
    fs::rename(&moved, &there).expect("moved back");
    adopts(&bench, "web", &["web", "--dir", &there]);
}

#[test]
fn a_directory_that_is_a_link_is_the_same_one() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let link = bench.root().join("link");
    std::os::unix::fs::symlink(bench.dir("web"), &link).expect("a link");
    let link = link.to_str().expect("UTF-8");
    adopt(&bench, &["web", "--dir", link]).code(0);
}

#[test]
fn containers_that_were_started_from_another_file() {
    let bench = Bench::new();
    let folder = dir(&bench, "web");
    bench.stack("web", "services:\n  b:\n    image: other\n", None);
    let prod = format!("{folder}/prod.yml");
    fs::write(&prod, PLAIN).expect("a file");
    bench.rehearsal.world(|world| {
        world.add_stack(&folder, [("prod.yml", PLAIN)]);
        world
            .start_file_by_hand("web", &folder, &prod)
            .expect("a stack that starts");
    });
    refuses(
        &bench,
        &["web", "--file", "docker-compose.yml", "--leave-orphans"],
        &[
            format!(
                "containers were started from other Compose files than {folder}/docker-compose.yml: {prod}\nweb-a-1\nhint: to adopt the stack from that file, pass --file prod.yml; if the stack no longer uses it, move it away"
            ),
            "images are not on this host: if Portainer cannot get one, it removes the whole stack\nservice b: image other\nhint: get them first: docker pull other; or pass --pull".to_owned(),
        ],
    );
    // Without `--file`, the label of the containers decides.
    adopts(&bench, "web", &["web"]);
}

#[test]
fn m20_portainer_stacks_of_the_same_name() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench
        .rehearsal
        .world(|world| world.add_endpoint(2, "other"));
    let id = bench.record("web", 2);
    refuses(
        &bench,
        &["web"],
        &[format!(
            "Portainer stack {id} on environment 2 has the same name, and Portainer allows each name only once\nhint: if environment 2 is this host, pass --endpoint 2; otherwise delete that Portainer stack first, which removes its containers there"
        )],
    );
    let first = bench.record("web", 1);
    let second = bench.record("web", 1);
    refuses(
        &bench,
        &["web"],
        &[format!(
            "Portainer stack {second} on environment 1 has the same name as Portainer stack {first}\nhint: delete one of them in Portainer: this removes the containers of the project, so take a copy of their data first"
        )],
    );
}

#[test]
fn a_portainer_stack_that_an_update_would_damage() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let text = format!("{PLAIN}  more:\n    image: x\n");
    let id = bench.rehearsal.world(|world| {
        let id = world.add_record("web", 1, &text);
        let record = world.records.get_mut(&id).expect("a record");
        record.git = Some(serde_json::json!({"URL": "https://u:s3cr3t-@git.example/web"}));
        record.auto_update = Some(serde_json::json!({"Interval": "5m"}));
        record.status = Status::Deploying;
        id
    });
    refuses(
        &bench,
        &["web"],
        &[
            format!(
                "Portainer stack {id} is still deploying\nhint: wait until Portainer has finished, then run the command again"
            ),
            format!(
                "an update of Portainer stack {id} would break its link\nit is deployed from Git: https://***@git.example/web\nit is updated automatically\nhint: change the Compose file where the Portainer stack takes it from; or remove the link in Portainer first"
            ),
            format!(
                "Portainer stack {id} has services that the Compose file lacks\nmore\nhint: add them to the Compose file, or remove them from the stack in Portainer; to leave their containers as they are, pass --leave-orphans"
            ),
        ],
    );
}

#[test]
fn a_portainer_stack_of_a_swarm() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let id = bench.record("web", 1);
    let list = format!(r#"[{{"Id":{id},"Name":"web","Type":1,"EndpointId":1,"Status":1}}]"#);
    bench
        .rehearsal
        .faults()
        .set(Call::List, FaultKind::Status(200, list));
    refuses(
        &bench,
        &["web"],
        &[format!(
            "Portainer stack {id} has the same name and is a stack of a swarm\nhint: delete it in Portainer first: Portainer allows each name only once"
        )],
    );
}

#[test]
fn b04_portainer_itself() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: portainer/portainer-ce:2.23.0\n";
    bench.started("tools", text, None);
    refuses(
        &bench,
        &["tools"],
        &["the stack runs Portainer itself: container tools-a-1 runs portainer/portainer-ce:2.23.0\nhint: manage this stack by hand: removing it would cut off Portainer".to_owned()],
    );
}

#[test]
fn n09_services_that_run_and_are_not_started_by_the_text() {
    let bench = Bench::new();
    let all = format!("{PLAIN}  old:\n    image: x\n  debug:\n    image: x\n");
    bench.started("web", &all, None);
    let text = format!("{PLAIN}  debug:\n    image: x\n    profiles: [debug]\n");
    bench.stack("web", &text, None);
    refuses(
        &bench,
        &["web"],
        &["containers of project web run that Portainer would not start: it removes them when the stack is deleted or stopped\nweb-debug-1: no profile of service debug is active in Portainer\nweb-old-1: the Compose file does not define service old\nhint: add the services to the Compose file, set COMPOSE_PROFILES in .env, or stop the containers; to leave them as they are, pass --leave-orphans".to_owned()],
    );
    adopts(&bench, "web", &["web", "--leave-orphans"]);
}

#[test]
fn n09_containers_that_have_stopped_do_not_prevent_anything() {
    let bench = Bench::new();
    let all = format!("{PLAIN}  old:\n    image: x\n");
    bench.started("web", &all, None);
    exits(&bench, "web-old-1", 0);
    bench.stack("web", PLAIN, None);
    adopts(&bench, "web", &["web"]);
}

#[test]
fn n08_jobs_that_would_run_again() {
    let bench = Bench::new();
    let text = format!(
        "{PLAIN}  job:\n    image: x\n  retry:\n    image: x\n    restart: on-failure\n  kept:\n    image: x\n    restart: unless-stopped\n"
    );
    bench.started("web", &text, None);
    exits(&bench, "web-job-1", 0);
    exits(&bench, "web-retry-1", 3);
    refuses(
        &bench,
        &["web"],
        &["containers that have finished would run again: Portainer starts every container of the stack\nweb-job-1 exited with code 0\nweb-retry-1 exited with code 3\nhint: to let them run again, pass --rerun-jobs; to keep Portainer from starting a service, give it a profile that is not active".to_owned()],
    );
    adopts(&bench, "web", &["web", "--rerun-jobs"]);
}

#[test]
fn n08_a_stopped_service_is_not_started_unsaid() {
    let bench = Bench::new();
    let text = format!("{PLAIN}    restart: unless-stopped\n");
    bench.started("web", &text, None);
    exits(&bench, "web-a-1", 137);
    adopt(&bench, &["web"])
        .code(0)
        .says(&["web-a-1: it is stopped (exited) and will be started"]);
}

#[test]
fn m05_paused_containers() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.rehearsal.world(|world| {
        let id = world.container("web-a-1").expect("web-a-1").id.clone();
        world.containers.get_mut(&id).expect("web-a-1").state = "paused".to_owned();
    });
    refuses(
        &bench,
        &["web"],
        &["paused containers cannot be adopted: Compose cannot start them, and Portainer then removes the whole stack\nweb-a-1\nhint: unpause them first: docker unpause web-a-1".to_owned()],
    );
}

#[test]
fn m06_what_would_make_the_deployment_fail_is_listed_at_once() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.rehearsal.world(|world| {
        world.add_container("taken", "y");
    });
    let text = format!(
        "{PLAIN}  app:\n    build: .\n  b:\n    image: absent:1\n    container_name: taken\n    networks: [n]\n    volumes: ['vol:/v', {{type: bind, source: ./absent, target: /b}}]\n    secrets: [s]\nnetworks:\n  n: {{external: true}}\nvolumes:\n  vol: {{external: true}}\nsecrets:\n  s: {{file: ./secret}}\n"
    );
    bench.stack("web", &text, None);
    fs::write(bench.dir("web").join("Dockerfile"), "FROM y\n").expect("a file");
    let run = adopt(&bench, &["web"]).code(1);
    let folder = dir(&bench, "web");
    for expected in [
        format!("service b: bind mount: {folder}/absent does not exist"),
        format!("secret s: {folder}/secret does not exist"),
        "network n does not exist".to_owned(),
        "volume vol does not exist".to_owned(),
        format!(
            "service app: image web-app\nservice b: image absent:1\nhint: get them first: docker pull absent:1 && cd {folder} && docker compose build app"
        ),
        "service b: the container name taken is used by container".to_owned(),
    ] {
        assert!(
            listed(&run).iter().any(|one| one.contains(&expected)),
            "{expected} in {run:#?}"
        );
    }
    assert!(bench.nothing_was_changed());
}

/// A container command that can only pull: into the world's engine it puts nothing.
fn puller(bench: &Bench, code: u8) -> std::path::PathBuf {
    let log = bench.root().join("pulls");
    let script = format!(
        "[ \"$1\" = pull ] || exit 1\necho \"$@ key=$STACKMGR_API_KEY\" >> {}\necho 'no such image' >&2\nexit {code}\n",
        log.display()
    );
    bench.script("docker", &script)
}

#[test]
fn missing_images_are_pulled_on_request_before_anything_else() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let text = format!("{PLAIN}  b:\n    image: absent:1\n  c:\n    image: absent:1\n");
    bench.stack("web", &text, None);
    let pulls = || fs::read_to_string(bench.root().join("pulls")).unwrap_or_default();
    let with_command = |bin: &std::path::Path, args: &[&str]| {
        let mut command = bench.command(args);
        command.env("PATH", bench.path(&[bin]));
        Run::of(&mut command).code(1)
    };
    let bin = puller(&bench, 1);
    with_command(&bin, &["adopt", "web"]);
    assert_eq!(pulls(), "", "not without --pull");
    with_command(&bin, &["adopt", "web", "--pull", "--endpoint", "99"]);
    assert_eq!(pulls(), "", "not if something else prevents it");
    with_command(&bin, &["adopt", "web", "--pull"]).says(&[
        "failed to pull absent:1",
        "no such image",
        "this run changed nothing",
    ]);
    assert_eq!(pulls(), "pull -- absent:1 key=\n", "once, without the key");
    // The engine is asked again.
    let bin = puller(&bench, 0);
    let run = with_command(&bin, &["adopt", "web", "--pull"]);
    let run = run.says(&["this run pulled images and changed nothing else"]);
    assert!(
        listed(&run)[0].contains("service b: image absent:1"),
        "{run:#?}"
    );
    assert!(bench.nothing_was_changed());
}

#[test]
fn a_port_of_a_container_that_stays_beside_the_stack() {
    let bench = Bench::new();
    let old = format!("{PLAIN}    ports: ['127.0.0.1:18731:80']\n");
    bench.started("web", &old, None);
    let new = old.replace("  a:", "  b:");
    bench.stack("web", &new, None);
    refuses(
        &bench,
        &["web", "--leave-orphans"],
        &["ports or container names are in use: a container that cannot start makes Portainer remove the whole stack\nservice b: port 18731/tcp is used by container web-a-1\nhint: stop what uses them, or change the Compose file".to_owned()],
    );
    // The container that publishes the port now is recreated by its own service.
    bench.stack("web", &old.replace("1000", "2000"), None);
    adopt(&bench, &["web"]).code(0);
}

#[test]
fn a_port_that_a_program_of_this_host_uses() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    bench.stack(
        "web",
        &format!("{PLAIN}    ports: ['127.0.0.1:{port}:80']\n"),
        None,
    );
    refuses(
        &bench,
        &["web"],
        &[format!(
            "ports or container names are in use: a container that cannot start makes Portainer remove the whole stack\nservice a: port {port}/tcp of this host is in use\nhint: stop what uses them, or change the Compose file"
        )],
    );
}

#[test]
fn a_stack_that_portainer_has_already_is_not_refused() {
    let bench = Bench::new();
    let text = format!("{PLAIN}  job:\n    image: x\n");
    bench.started("web", &text, None);
    adopts(&bench, "web", &["web"]);
    exits(&bench, "web-job-1", 0);
    bench.rehearsal.forget_requests();
    adopt(&bench, &["web"]).code(0).says(&["nothing"]);
    assert!(bench.nothing_was_changed());
}
