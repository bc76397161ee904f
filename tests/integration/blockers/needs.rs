//! What the text needs: images, files, volumes, networks, names and ports.

use std::{
    fs,
    path::{Path, PathBuf},
};

use testbed::{Call, Era};

use super::{adopt, dir, listed, refuses};
use crate::bench::{Bench, MARKED, PLAIN, instead};
use crate::restoring::write_file;

#[test]
fn m06_what_would_make_the_deployment_fail_is_listed_at_once() {
    let bench = Bench::web(PLAIN);
    bench.world(|world| {
        world.add_container("taken", "y");
        world.add_container("web-app-1", "y");
    });
    let text = format!(
        "{PLAIN}  app:\n    build: .\n  b:\n    image: absent:1\n    container_name: taken\n    networks: [n]\n    volumes: ['vol:/v', {{type: bind, source: ./absent, target: /b}}]\n    secrets: [s]\nnetworks:\n  n: {{external: true}}\nvolumes:\n  vol: {{external: true}}\nsecrets:\n  s: {{file: ./secret}}\n"
    );
    bench.stack("web", &text, None);
    fs::write(bench.dir("web").join("Dockerfile"), "FROM y\n").expect("a file");
    let run = adopt(&bench, "web").code(1);
    let folder = dir(&bench, "web");
    for expected in [
        "b mounts ./absent, which does not exist".to_owned(),
        "secret s needs ./secret, which does not exist".to_owned(),
        "network n does not exist".to_owned(),
        "volume vol does not exist".to_owned(),
        format!(
            "app: web-app\nb: absent:1\nget them first: docker pull absent:1 && cd {folder} && docker compose build app"
        ),
        "the container name taken is used by another container of image y".to_owned(),
        "the container name web-app-1 is used by another container of image y".to_owned(),
    ] {
        assert!(
            listed(&run).iter().any(|one| one.contains(&expected)),
            "{expected} in {run:#?}"
        );
    }
    assert!(bench.nothing_was_changed());
}

#[test]
fn b20_an_address_that_this_host_does_not_have() {
    let bench = Bench::web(PLAIN);
    for port in ["18732", "18732-18733", ""] {
        let text = format!("{PLAIN}    ports: ['192.0.2.1:{port}:80']\n");
        bench.stack("web", &text, None);
        let why = "a port is published on 192.0.2.1, which is not an address of this host\nchange the address";
        refuses(&bench, "web", why);
    }
}

#[test]
fn b20_a_container_that_a_service_shares_something_with() {
    let bench = Bench::web(PLAIN);
    let id = bench.world(|world| {
        world.add_container("halted", "y");
        world.stop_by_hand("halted");
        world.add_container("up", "y")
    });
    let stack = |part: &str| {
        let service = format!("  b:\n    image: y\n    container_name: own\n    {part}\n");
        bench.stack("web", &format!("{PLAIN}{service}"), None);
    };
    let gone = "b needs the container gone, which does not exist\ncreate that container first, or correct its name";
    let halted = "b needs the container halted, which does not run\nstart that container first, or correct its name";
    for (part, why) in [
        ("network_mode: 'container:gone'", gone),
        ("pid: 'container:halted'", halted),
        ("volumes_from: ['container:gone:ro']", gone),
    ] {
        stack(part);
        refuses(&bench, "web", why);
    }
    for part in [
        "network_mode: 'container:/up'",
        &format!("pid: 'container:{}'", &id[..12]),
        "ipc: 'container:own'",
        "network_mode: 'service:a'",
        "volumes_from: ['container:halted']",
    ] {
        stack(part);
        bench.succeeds("plan web", "Next: stacklift adopt web\n");
    }
}

#[test]
fn b20_an_ipc_namespace_that_a_container_keeps_to_itself() {
    let bench = Bench::web(PLAIN);
    let b = "  b:\n    image: busybox:1.36\n    ipc: 'service:a'\n";
    let why = |mode: &str| {
        format!(
            "b shares the IPC namespace of a, whose IPC mode is {mode}: Docker would not start it\nset `ipc: shareable` for a"
        )
    };
    // The kept container has Docker's default.
    for (own, mode) in [("", "private"), ("    ipc: none\n", "none")] {
        bench.stack("web", &format!("{PLAIN}{own}{b}"), None);
        refuses(&bench, "web", &why(mode));
    }
    for own in ["shareable", "host", "'${MODE:-shareable}'"] {
        bench.stack("web", &format!("{PLAIN}    ipc: {own}\n{b}"), None);
        let run = bench.run("plan web").code(0);
        run.says("Next: stacklift adopt web\n");
    }
}

#[test]
fn b20_a_volume_that_stands_for_a_directory() {
    let of = |device: &str| {
        let options = format!("{{driver_opts: {{type: none, o: 'bind,ro', device: {device}}}}}");
        format!("{PLAIN}    volumes: ['data:/v']\nvolumes:\n  data: {options}\n")
    };
    let bench = Bench::web(&of("/absent"));
    bench.succeeds("plan web", "Next: stacklift adopt web\n");
    let why = "a mounts the volume data of /absent, which does not exist\ncreate /absent, or correct the path in docker-compose.yml";
    let bench = Bench::web(PLAIN);
    bench.stack("web", &of("/absent"), None);
    refuses(&bench, "web", why);
    bench.stack("web", &of("/"), None);
    bench.succeeds("plan web", "Next: stacklift adopt web\n");
}

#[test]
fn b13_a_value_is_hidden_in_the_name_of_what_is_missing() {
    let bench = Bench::web(PLAIN);
    let text = format!(
        "{PLAIN}    networks: [n]\nnetworks:\n  n: {{external: true, name: 'net-${{TOKEN}}'}}\n"
    );
    bench.stack("web", &text, Some(&format!("TOKEN={MARKED}\n")));
    for args in ["plan web", "plan web --output json", "list"] {
        bench.run(args).says("network net-*** does not exist");
    }
}

/// A container command that can only pull: into the world's engine it puts nothing.
fn puller(bench: &Bench, code: u8) -> PathBuf {
    let log = bench.root().join("pulls");
    let script = format!(
        "[ \"$1\" = pull ] || exit 1\necho \"$@ key=$STACKMGR_API_KEY\" >> {}\necho 'no such image' >&2\nexit {code}\n",
        log.display()
    );
    bench.script("docker", &script)
}

#[test]
fn b13_the_value_of_a_variable_in_the_name_of_an_image_is_hidden() {
    let bench = Bench::web(PLAIN);
    let text = format!("{PLAIN}  b:\n    image: absent:${{TAG}}\n");
    bench.stack("web", &text, Some("TAG=Hunter2Hunter2\n"));
    let bin = puller(&bench, 1);
    for (args, code) in [("-v plan web --pull", 0), ("-v adopt web --pull --yes", 1)] {
        let run = bench.run_with(args, "PATH", bench.path(&[&bin])).code(code);
        run.says("absent:***").hides("Hunter2Hunter2");
    }
}

#[test]
fn missing_images_are_pulled_on_request_before_anything_else() {
    let bench = Bench::web(PLAIN);
    let text = format!("{PLAIN}  b:\n    image: absent:1\n  c:\n    image: absent:1\n");
    bench.stack("web", &text, None);
    let pulls = || fs::read_to_string(bench.root().join("pulls")).unwrap_or_default();
    let with_command = |bin: &Path, args: &[&str]| {
        let path = bench.path(&[bin]);
        bench.run_with(args, "PATH", path).code(1)
    };
    let bin = puller(&bench, 1);
    with_command(&bin, &["adopt", "web"]);
    let plan = bench.fails("plan web", "pass --pull, or pull it first");
    plan.hides("pulled first");
    for args in ["plan web --pull", "adopt web --pull --dry-run"] {
        let pulled = "note: absent:1 is pulled first: `adopt` then plans again\n";
        bench.succeeds(args, &[pulled, "\nNext: stacklift adopt web --pull\n"]);
    }
    bench.run("plan web --pull --request").code(0);
    assert_eq!(pulls(), "", "not without --pull");
    with_command(&bin, &["adopt", "web", "--pull", "--endpoint", "99"]);
    assert_eq!(pulls(), "", "not if something else prevents it");
    with_command(&bin, &["adopt", "web", "--pull"]).says("error: failed to pull absent:1\n`docker pull` failed (exit status: 1): no such image\nNothing was changed.\n");
    assert_eq!(pulls(), "pull -- absent:1 key=\n", "once, without the key");
    // The engine is asked again.
    let bin = puller(&bench, 0);
    let run = with_command(&bin, &["adopt", "web", "--pull"]);
    let run = run.says("this run pulled images and changed nothing else");
    assert!(listed(&run)[0].contains("b: absent:1"), "{run:#?}");
    assert!(bench.nothing_was_changed());
}

#[test]
fn a_directory_that_a_container_mounts_and_that_was_deleted() {
    let text = format!("{PLAIN}    volumes: ['./data:/data']\n");
    let bench = Bench::web(&text);
    let folder = dir(&bench, "web");
    fs::remove_dir(bench.dir("web").join("data")).expect("a directory");
    let expected = format!(
        "web  1 container on this host, not in Portainer yet\n\nCannot be adopted yet:\n  1. a mounts ./data, which does not exist\n     create {folder}/data, or correct the path in docker-compose.yml\n"
    );
    let run = bench.run("plan web");
    assert!(run.out.starts_with(&expected), "{run:#?}");
    let says = "no longer exists: Docker mounts an empty directory at";
    bench.run("plan web --compare").says(says);
    fs::create_dir(bench.dir("web").join("data")).expect("a directory");
    bench.run("plan web --compare").code(0).hides("exist");
    // Docker creates one that no container mounts yet, and a plan says so.
    bench.stack("web", &text.replace("./data", "./new"), None);
    let says = "./new of a does not exist: Docker creates an empty directory\n";
    bench.succeeds("plan web", says);
}

#[test]
fn a_port_of_another_stack_stops_a_migration_in_its_plan_too() {
    let bench = Bench::new();
    let text = format!("{PLAIN}    ports: ['127.0.0.1:18731:80']\n");
    bench.started("other", &text, None);
    bench.started("web", PLAIN, None);
    bench.stack("web", &text, None);
    let refused = "port 18731/tcp is used by other-a-1";
    let planned = format!("migrate\nCannot be migrated yet:\n  1. {refused}\n");
    bench.run("plan web --compare").says(&planned);
    bench.fails("web", &format!("refusing to migrate: {refused}"));
}

#[test]
fn a_port_of_a_container_that_stays_beside_the_stack() {
    let old = format!("{PLAIN}    ports: ['127.0.0.1:18731:80']\n");
    let bench = Bench::web(&old);
    let new = old.replace("  a:", "  b:");
    bench.stack("web", &new, None);
    let why = "port 18731/tcp is used by web-a-1\nstop that container, or change the port";
    refuses(&bench, "web --leave-orphans", why);
    // The container that publishes the port now is recreated by its own service.
    bench.stack("web", &old.replace("1000", "2000"), None);
    adopt(&bench, "web").code(0);
}

#[test]
fn a_port_that_a_program_of_this_host_uses() {
    let bench = Bench::web(PLAIN);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let text = format!("{PLAIN}    ports: ['127.0.0.1:{port}:80']\n");
    bench.stack("web", &text, None);
    let why = format!(
        "port {port}/tcp is used by a program of this host\nstop that program, or change the port"
    );
    refuses(&bench, "web", &why);
}

/// Portainer 2.23 has Compose 2.29.2, which knows neither the key nor the value.
#[test]
fn b20_what_the_compose_of_portainer_rejects() {
    let bench = Bench::web(PLAIN);
    for part in ["use_api_socket: false", "pull_policy: daily"] {
        bench.stack("web", &format!("{PLAIN}    {part}\n    x-a: 1\n"), None);
        let run = bench.stops("adopt web", "hint: ");
        let what = "Compose 2.29.2 in Portainer rejects a part of the Compose file";
        assert!(listed(&run)[0].starts_with(what), "{run:#?}");
    }
    bench.stack("web", &format!("{PLAIN}    x-a: 1\n"), None);
    adopt(&bench, "web").code(0);
}

#[test]
fn n17_content_that_portainer_did_not_copy_is_found_afterwards() {
    let text = format!("{PLAIN}    configs: [motd]\nconfigs: {{motd: {{content: hello}}}}\n");
    let bench = Bench::web(&text);
    write_file(&bench, "web", "/motd");
    // The simulated Compose copies nothing.
    bench.stack("web", &text.replace("1000", "2000"), None);
    adopt(&bench, "web --yes").fails(
        "error: web does not run as before\n  - web-a-1: Portainer did not copy /motd into it\n",
    );
}

#[test]
fn n17_versions_that_lose_inline_configs() {
    let text = format!(
        "{PLAIN}    configs: [motd, {{source: host}}]\n    secrets: [token]\nconfigs:\n  motd:\n    content: hello\n  host:\n    file: /etc/hosts\nsecrets:\n  token:\n    environment: TOKEN\n"
    );
    let bench = Bench::with_env(&text, "TOKEN=x\n");
    for (version, fixed) in [("2.33.4", "2.33.6"), ("2.36.0", "2.37.0")] {
        bench.faults().clear();
        let status = format!("{{\"Version\":\"{version}\"}}");
        bench.always(Call::Status, instead(200, &status));
        let why = format!(
            "Portainer {version} does not put the content of configs and secrets into containers\nconfigs.motd\nsecrets.token\nupgrade Portainer to {fixed} or later, or mount these as files"
        );
        refuses(&bench, "web", &why);
        let loss = format!(
            "Portainer {version} does not put the content of configs and secrets into containers: configs.motd, secrets.token\n"
        );
        bench.succeeds("migrate web --dry-run", &loss);
    }
    bench.succeeds("web", "the stack will lose:").says(
        "Portainer 2.36.0 does not put the content of configs and secrets into containers: configs.motd, secrets.token",
    );
    bench.faults().clear();
    bench.always(Call::Status, instead(200, r#"{"Version":"2.33.6"}"#));
    bench.run("plan web").code(0);
    bench.run("web").code(0).hides("does not put the content");
}

/// The engine of the rehearsal is 20.10.
#[test]
fn n33_settings_that_need_a_newer_engine() {
    let interval = format!(
        "{PLAIN}    healthcheck: {{test: [CMD, x], start_period: 2s, start_interval: 1s}}\n"
    );
    let address =
        format!("{PLAIN}    networks: {{default: {{mac_address: '02:42:0a:d6:09:32'}}}}\n");
    for (text, setting) in [
        (interval, "a: healthcheck.start_interval"),
        (address, "a: networks.default.mac_address"),
    ] {
        for era in [Era::Sync, Era::Async] {
            let bench = Bench::web_of(era, &text);
            // A container that stays has the setting already.
            bench.run(&["plan", "web"]).code(0);
            bench.stack("web", &text.replace("1000", "2000"), None);
            let why = format!(
                "Compose in Portainer cannot create a container with these settings on Docker 20.10.24\n{setting}\nupgrade Docker to 25 or later, or remove these settings from the Compose file"
            );
            refuses(&bench, "web", &why);
            bench.stops(
                "web",
                &["cannot create a container with these settings", setting],
            );
            bench.world(|world| world.engine_version = "25.0.3".to_owned());
            bench.run("adopt web --wait 2s --yes").code(0);
        }
    }
}

#[test]
fn n31_a_date_without_quotes() {
    let text = format!("{PLAIN}    labels: {{built: 2024-01-01}}\n");
    let bench = Bench::web_of(Era::Async, &text);
    bench.stops("web", "Compose in Portainer rejects dates without quotes");
    let before = bench.containers("web");
    adopt(&bench, "web --wait 2s --yes").code(0);
    assert_eq!(bench.containers("web"), before);
    let sent = bench.first_record().text;
    assert!(
        sent.contains(r#"{built: "2024-01-01 00:00:00 +0000 UTC"}"#),
        "{sent}"
    );
}
