use std::{ffi::OsString, os::unix::fs::symlink};

use tempfile::TempDir;

use super::*;

fn native() -> Program {
    Program::Native("/usr/bin/docker".into())
}

fn socket(path: &str) -> Endpoint {
    Endpoint::Socket {
        path: path.into(),
        by: "the default context".to_owned(),
    }
}

fn elsewhere() -> Endpoint {
    Endpoint::Elsewhere("DOCKER_HOST is tcp://10.0.0.1:2375".to_owned())
}

#[test]
fn the_api_is_taken_only_where_it_is_certain() {
    let script = Program::Script("/usr/local/bin/docker".into());
    let alias = Program::Alias {
        path: "/snap/bin/docker".into(),
        target: "/usr/bin/snap".into(),
    };
    let unreadable = Program::Unreadable {
        path: "/usr/bin/docker".into(),
        why: "permission denied".to_owned(),
    };
    let api = "the Engine API on /run/d.sock";
    let command = "the `docker` command";
    #[rustfmt::skip]
    let table = [
        (Choice::Auto, "docker", native(), socket("/run/d.sock"), format!("{api} (the default context)")),
        (Choice::Auto, "docker", native(), elsewhere(), format!("{command} (DOCKER_HOST is tcp://10.0.0.1:2375)")),
        (Choice::Auto, "docker", script.clone(), socket("/run/d.sock"), format!("{command} (/usr/local/bin/docker is not a native binary)")),
        (Choice::Auto, "docker", alias, socket("/run/d.sock"), format!("{command} (/snap/bin/docker is a link to /usr/bin/snap)")),
        (Choice::Auto, "docker", unreadable, socket("/run/d.sock"), format!("{command} (/usr/bin/docker cannot be looked into: permission denied)")),
        (Choice::Auto, "docker", Program::Missing, socket("/run/d.sock"), format!("{command} (there is no `docker` on PATH to compare with)")),
        (Choice::Auto, "podman", native(), socket("/run/d.sock"), "the `podman` command (the engine behind `podman` is not known)".to_owned()),
        (Choice::Command, "docker", native(), socket("/run/d.sock"), format!("{command} (as asked for)")),
        (Choice::Api, "docker", script, socket("/run/d.sock"), format!("{api} (as asked for, the default context)")),
        (Choice::Api, "podman", Program::Missing, socket("/run/d.sock"), format!("{api} (as asked for, the default context)")),
        (Choice::Api, "docker", native(), elsewhere(), "nothing (DOCKER_HOST is tcp://10.0.0.1:2375)".to_owned()),
    ];
    for (choice, tool, program, endpoint, expected) in table {
        let adapter = decide(tool, choice, &program, &endpoint);
        assert_eq!(
            adapter.to_string(),
            expected,
            "{choice} {tool} {program:?} {endpoint:?}"
        );
    }
}

#[test]
fn a_choice_reads_as_it_is_written() {
    for choice in [Choice::Auto, Choice::Api, Choice::Command] {
        assert_eq!(choice.to_string().parse(), Ok(choice));
    }
    assert_eq!(
        "API".parse::<Choice>().unwrap_err(),
        "`API` is none of auto, api, command"
    );
}

/// A folder with a home, a store of contexts and programs.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        file
    }

    fn program(&self, name: &str, content: &[u8]) -> PathBuf {
        let file = self.write(name, content);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn context(&self, name: &str, host: &str) {
        let meta = format!(
            r#"{{"Name":"{name}","Metadata":{{}},"Endpoints":{{"docker":{{"Host":"{host}"}}}}}}"#
        );
        self.write(&format!("home/contexts/meta/of-{name}/meta.json"), meta);
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings {
            config_dir: Some(self.path("home")),
            ..Surroundings::default()
        }
    }

    fn search(&self, folders: &[&str]) -> OsString {
        std::env::join_paths(folders.iter().map(|folder| self.path(folder))).unwrap()
    }
}

#[test]
fn a_program_is_judged_by_what_it_is() {
    let disk = Disk::new();
    let native = disk.program("bin/docker", b"\x7fELF\x02\x01");
    let script = disk.program("scripts/docker", b"#!/bin/sh\n");
    let empty = disk.program("empty/docker", b"");
    let podman = disk.program("bin/podman", b"\x7fELF\x02\x01");
    fs::create_dir_all(disk.path("links")).unwrap();
    fs::create_dir_all(disk.path("same")).unwrap();
    symlink(&podman, disk.path("links/docker")).unwrap();
    symlink(&native, disk.path("same/docker")).unwrap();
    disk.write("data/docker", b"\x7fELF, but nobody may run it");
    fs::create_dir_all(disk.path("folder/docker")).unwrap();

    let find = |folders: &[&str]| find_program("docker", Some(&disk.search(folders)));
    assert_eq!(find(&["bin", "scripts"]), Program::Native(native.clone()));
    assert_eq!(find(&["scripts", "bin"]), Program::Script(script));
    assert_eq!(find(&["empty"]), Program::Script(empty));
    assert_eq!(find(&["same"]), Program::Native(disk.path("same/docker")));
    let alias = Program::Alias {
        path: disk.path("links/docker"),
        target: podman.canonicalize().unwrap(),
    };
    assert_eq!(find(&["links", "bin"]), alias);
    assert_eq!(
        find(&["data", "folder", "nowhere", "bin"]),
        Program::Native(native)
    );
    assert_eq!(find(&["data", "folder", "nowhere"]), Program::Missing);
    assert_eq!(find_program("docker", None), Program::Missing);
}

#[test]
fn docker_host_comes_before_every_context() {
    let disk = Disk::new();
    disk.context("remote", "ssh://somewhere");
    let resolve = |host: &str| {
        resolve_endpoint(&Surroundings {
            docker_host: Some(host.to_owned()),
            docker_context: Some("remote".to_owned()),
            ..disk.surroundings()
        })
    };
    let by_host = |path: &str| Endpoint::Socket {
        path: path.into(),
        by: "DOCKER_HOST".to_owned(),
    };
    assert_eq!(
        resolve("unix:///run/user/7/docker.sock"),
        by_host("/run/user/7/docker.sock")
    );
    assert_eq!(resolve("unix://"), by_host(DEFAULT_SOCKET));
    for uncertain in [
        "tcp://127.0.0.1:2375",
        "ssh://host",
        "unix://relative.sock",
        "unix:///a://b",
        "/run/docker.sock",
        " ",
    ] {
        assert!(
            matches!(resolve(uncertain), Endpoint::Elsewhere(why) if why.starts_with("DOCKER_HOST is")),
            "{uncertain}"
        );
    }
    let Endpoint::Elsewhere(why) = resolve("") else {
        panic!("an empty DOCKER_HOST counts as unset");
    };
    assert_eq!(why, "context remote of DOCKER_CONTEXT is ssh://somewhere");
}

#[test]
fn the_context_is_followed_as_docker_follows_it() {
    let disk = Disk::new();
    let resolve = |context: Option<&str>| {
        resolve_endpoint(&Surroundings {
            docker_context: context.map(str::to_owned),
            ..disk.surroundings()
        })
    };
    let default = Endpoint::Socket {
        path: DEFAULT_SOCKET.into(),
        by: "the default context".to_owned(),
    };
    // Without any file.
    assert_eq!(resolve(None), default);
    assert_eq!(resolve(Some("")), default);
    assert!(matches!(resolve(Some("rootless")), Endpoint::Elsewhere(_)));

    disk.context("rootless", "unix:///run/user/7/docker.sock");
    disk.context("remote", "tcp://10.0.0.1:2375");
    disk.context("empty", "");
    disk.write("home/contexts/meta/broken/meta.json", "{");
    let rootless = |by: &str| Endpoint::Socket {
        path: "/run/user/7/docker.sock".into(),
        by: format!("context rootless of {by}"),
    };
    for no_context in [
        "{}",
        r#"{"currentContext":""}"#,
        r#"{"currentContext":null,"auths":{}}"#,
    ] {
        disk.write("home/config.json", no_context);
        assert_eq!(resolve(None), default, "{no_context}");
    }
    disk.write(
        "home/config.json",
        r#"{"auths":{},"currentContext":"rootless"}"#,
    );
    assert_eq!(resolve(None), rootless("config.json"));
    assert_eq!(resolve(Some("default")), default);
    let elsewhere = |context| match resolve(context) {
        Endpoint::Elsewhere(why) => why,
        found @ Endpoint::Socket { .. } => panic!("{found:?}"),
    };
    assert_eq!(
        elsewhere(Some("remote")),
        "context remote of DOCKER_CONTEXT is tcp://10.0.0.1:2375"
    );
    assert_eq!(
        elsewhere(Some("empty")),
        "context empty of DOCKER_CONTEXT: it names no host"
    );
    assert_eq!(
        elsewhere(Some("gone")),
        "context gone of DOCKER_CONTEXT: there is no such context"
    );
    disk.write("home/config.json", r#"{"CurrentContext":"rootless"}"#);
    assert_eq!(resolve(None), rootless("config.json"));
    assert_eq!(resolve(Some("rootless")), rootless("DOCKER_CONTEXT"));
    for unclear in ["{", "[]", r#"{"currentContext":7}"#] {
        disk.write("home/config.json", unclear);
        assert!(
            elsewhere(None).contains("config.json is unclear: "),
            "{unclear}"
        );
    }
    fs::remove_file(disk.path("home/config.json")).unwrap();
    fs::create_dir(disk.path("home/config.json")).unwrap();
    assert!(elsewhere(None).contains("config.json cannot be read: "));
}

#[test]
fn without_a_home_or_with_tls_nothing_is_certain() {
    let homeless = Surroundings::default();
    assert!(matches!(
        resolve_endpoint(&homeless),
        Endpoint::Elsewhere(_)
    ));
    let tls = Surroundings {
        docker_tls: true,
        docker_host: Some("unix:///run/docker.sock".to_owned()),
        ..Surroundings::default()
    };
    assert!(matches!(resolve_endpoint(&tls), Endpoint::Elsewhere(_)));
}
