use std::{
    ffi::OsString,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use tempfile::TempDir;

use super::*;

fn native() -> Program {
    Program::Native("/usr/bin/docker".into())
}

fn socket(path: &str) -> DockerHost {
    DockerHost::Socket {
        path: path.into(),
        source: "the default context".to_owned(),
    }
}

fn remote() -> DockerHost {
    DockerHost::Other("DOCKER_HOST is tcp://10.0.0.1:2375".to_owned())
}

#[test]
fn auto_uses_the_api_only_if_it_reaches_the_same_engine() {
    let script = Program::Script("/usr/local/bin/docker".into());
    let alias = Program::Alias {
        path: "/snap/bin/docker".into(),
        target: "/usr/bin/snap".into(),
    };
    let unreadable = Program::Unreadable {
        path: "/usr/bin/docker".into(),
        why: "permission denied".to_owned(),
    };
    let api = Route::Api("/run/d.sock".into());
    let command = Route::Command;
    let tcp = "DOCKER_HOST is tcp://10.0.0.1:2375";
    #[rustfmt::skip]
    let table = [
        (Choice::Auto, "docker", native(), socket("/run/d.sock"), &api, "the default context"),
        (Choice::Auto, "docker", native(), remote(), &command, tcp),
        (Choice::Auto, "docker", script.clone(), socket("/run/d.sock"), &command, "/usr/local/bin/docker is not a native binary"),
        (Choice::Auto, "docker", alias, socket("/run/d.sock"), &command, "/snap/bin/docker is a link to /usr/bin/snap"),
        (Choice::Auto, "docker", unreadable, socket("/run/d.sock"), &command, "cannot read /usr/bin/docker: permission denied"),
        (Choice::Auto, "docker", Program::Missing, socket("/run/d.sock"), &command, "`docker` not found on PATH"),
        (Choice::Auto, "podman", native(), socket("/run/d.sock"), &command, "the engine of `podman` is unknown"),
        (Choice::Command, "docker", native(), socket("/run/d.sock"), &command, "as requested"),
        (Choice::Api, "docker", script, socket("/run/d.sock"), &api, "as requested, the default context"),
        (Choice::Api, "podman", Program::Missing, socket("/run/d.sock"), &api, "as requested, the default context"),
        (Choice::Api, "docker", native(), remote(), &Route::Unavailable, tcp),
    ];
    for (choice, tool, program, host, route, reason) in table {
        let expected = Adapter {
            tool: tool.to_owned(),
            route: route.clone(),
            reason: reason.to_owned(),
        };
        assert_eq!(decide(tool, choice, &program, &host), expected);
    }
}

#[test]
fn a_choice_is_parsed_by_its_name() {
    for (name, choice) in [
        ("auto", Choice::Auto),
        ("api", Choice::Api),
        ("command", Choice::Command),
    ] {
        assert_eq!(name.parse(), Ok(choice));
    }
    assert_eq!(
        "API".parse::<Choice>().unwrap_err(),
        "expected auto, api or command"
    );
}

/// A directory with a home, a context store and programs.
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

    fn config(&self) -> ClientConfig {
        ClientConfig {
            config_dir: Some(self.path("home")),
            ..ClientConfig::default()
        }
    }

    fn search_path(&self, folders: &[&str]) -> OsString {
        std::env::join_paths(folders.iter().map(|folder| self.path(folder))).unwrap()
    }
}

#[test]
fn a_program_is_classified_by_its_file() {
    let disk = Disk::new();
    let native = disk.program("bin/docker", b"\x7fELF\x02\x01");
    let script = disk.program("scripts/docker", b"#!/bin/sh\n");
    let empty = disk.program("empty/docker", b"");
    let podman = disk.program("bin/podman", b"\x7fELF\x02\x01");
    fs::create_dir_all(disk.path("links")).unwrap();
    fs::create_dir_all(disk.path("same")).unwrap();
    symlink(&podman, disk.path("links/docker")).unwrap();
    symlink(&native, disk.path("same/docker")).unwrap();
    disk.write("data/docker", b"\x7fELF, but not executable");
    fs::create_dir_all(disk.path("folder/docker")).unwrap();

    let find = |folders: &[&str]| find_program("docker", Some(&disk.search_path(folders)));
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
    // A relative directory, and an empty one, which is the working directory.
    for folder in ["", "bin"] {
        assert_eq!(
            find_program("docker", Some(folder.as_ref())),
            Program::Missing
        );
    }
    assert_eq!(find_program("docker", None), Program::Missing);
}

#[test]
fn docker_host_takes_precedence_over_every_context() {
    let disk = Disk::new();
    disk.context("remote", "ssh://somewhere");
    let resolve = |host: &str| {
        resolve_host(&ClientConfig {
            docker_host: Some(host.to_owned()),
            docker_context: Some("remote".to_owned()),
            ..disk.config()
        })
    };
    let by_host = |path: &str| DockerHost::Socket {
        path: path.into(),
        source: "DOCKER_HOST".to_owned(),
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
            matches!(resolve(uncertain), DockerHost::Other(why) if why.starts_with("DOCKER_HOST is")),
            "{uncertain}"
        );
    }
    let DockerHost::Other(why) = resolve("") else {
        panic!("an empty DOCKER_HOST must count as unset");
    };
    assert_eq!(why, "context remote of DOCKER_CONTEXT is ssh://somewhere");
}

#[test]
fn the_context_is_resolved_as_docker_resolves_it() {
    let disk = Disk::new();
    let resolve = |context: Option<&str>| {
        resolve_host(&ClientConfig {
            docker_context: context.map(str::to_owned),
            ..disk.config()
        })
    };
    let default = DockerHost::Socket {
        path: DEFAULT_SOCKET.into(),
        source: "the default context".to_owned(),
    };
    // No files.
    assert_eq!(resolve(None), default);
    assert_eq!(resolve(Some("")), default);
    assert!(matches!(resolve(Some("rootless")), DockerHost::Other(_)));

    disk.context("rootless", "unix:///run/user/7/docker.sock");
    disk.context("remote", "tcp://10.0.0.1:2375");
    disk.context("empty", "");
    disk.write("home/contexts/meta/broken/meta.json", "{");
    let rootless = |source: &str| DockerHost::Socket {
        path: "/run/user/7/docker.sock".into(),
        source: format!("context rootless of {source}"),
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
    let reason = |context| match resolve(context) {
        DockerHost::Other(why) => why,
        found @ DockerHost::Socket { .. } => panic!("{found:?}"),
    };
    assert_eq!(
        reason(Some("remote")),
        "context remote of DOCKER_CONTEXT is tcp://10.0.0.1:2375"
    );
    assert_eq!(
        reason(Some("empty")),
        "context empty of DOCKER_CONTEXT: it has no host"
    );
    assert_eq!(
        reason(Some("gone")),
        "context gone of DOCKER_CONTEXT: context not found"
    );
    disk.write("home/config.json", r#"{"CurrentContext":"rootless"}"#);
    assert_eq!(resolve(None), rootless("config.json"));
    assert_eq!(resolve(Some("rootless")), rootless("DOCKER_CONTEXT"));
    for invalid in ["{", "[]", r#"{"currentContext":7}"#] {
        disk.write("home/config.json", invalid);
        assert!(reason(None).contains("cannot parse "), "{invalid}");
    }
    fs::remove_file(disk.path("home/config.json")).unwrap();
    fs::create_dir(disk.path("home/config.json")).unwrap();
    assert!(reason(None).contains("cannot read "));
}

#[test]
fn without_a_home_or_with_tls_the_host_is_uncertain() {
    let homeless = ClientConfig::default();
    assert!(matches!(resolve_host(&homeless), DockerHost::Other(_)));
    let tls = ClientConfig {
        docker_tls: true,
        docker_host: Some("unix:///run/docker.sock".to_owned()),
        ..ClientConfig::default()
    };
    assert!(matches!(resolve_host(&tls), DockerHost::Other(_)));
}
