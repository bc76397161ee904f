use std::{
    ffi::OsString,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use tempfile::TempDir;

use super::*;

fn socket(path: &str, source: &str) -> Socket {
    Socket {
        path: path.into(),
        source: source.to_owned(),
    }
}

#[test]
fn auto_uses_the_api_only_if_it_reaches_the_same_engine() {
    let api = || Route::Api("/run/d.sock".into());
    let local = || Ok(socket("/run/d.sock", "the default context"));
    let tcp = || Err("DOCKER_HOST is tcp".to_owned());
    let script = Some("/usr/bin/docker is not a native binary");
    #[rustfmt::skip]
    let table = [
        (Choice::Auto, None, local(), api(), "the default context"),
        (Choice::Auto, None, tcp(), Route::Command, "DOCKER_HOST is tcp"),
        (Choice::Auto, script, local(), Route::Command, "/usr/bin/docker is not a native binary"),
        (Choice::Command, None, local(), Route::Command, "as requested"),
        (Choice::Api, script, local(), api(), "as requested, the default context"),
        (Choice::Api, None, tcp(), Route::Unavailable, "DOCKER_HOST is tcp"),
    ];
    for (choice, doubt, socket, route, reason) in table {
        let program = Program {
            path: None,
            doubt: doubt.map(str::to_owned),
        };
        let expected = Adapter {
            tool: "docker".to_owned(),
            route,
            reason: reason.to_owned(),
        };
        assert_eq!(decide("docker", choice, &program, socket), expected);
    }
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
    let certain = |path: &Path| Program {
        path: Some(path.to_owned()),
        doubt: None,
    };
    let doubt = |folders: &[&str]| find(folders).doubt.expect("a doubt");
    assert_eq!(find(&["bin", "scripts"]), certain(&native));
    let not_native = |path: &Path| format!("{} is not a native binary", path.display());
    assert_eq!(doubt(&["scripts", "bin"]), not_native(&script));
    assert_eq!(doubt(&["empty"]), not_native(&empty));
    assert_eq!(find(&["same"]), certain(&disk.path("same/docker")));
    let target = podman.canonicalize().unwrap();
    assert!(doubt(&["links", "bin"]).ends_with(&format!("is a link to {}", target.display())));
    let all = ["data", "folder", "nowhere", "bin"];
    assert_eq!(find(&all), certain(&native));
    assert_eq!(doubt(&all[..3]), "`docker` not found on PATH");
    let other = find_program("podman", Some(&disk.search_path(&["bin"])));
    assert!(other.path.is_some());
    let expected = Some("the engine of `podman` is unknown");
    assert_eq!(other.doubt.as_deref(), expected);
    // A relative directory, and an empty one, which is the working directory.
    for folder in ["", "bin"] {
        assert_eq!(find_program("docker", Some(folder.as_ref())).path, None);
    }
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
    let by_host = |path: &str| Ok(socket(path, "DOCKER_HOST"));
    let path = "/run/user/7/docker.sock";
    assert_eq!(resolve(&format!("unix://{path}")), by_host(path));
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
            matches!(resolve(uncertain), Err(why) if why.starts_with("DOCKER_HOST is")),
            "{uncertain}"
        );
    }
    let why = resolve("").expect_err("an empty DOCKER_HOST counts as unset");
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
    let default = Ok(socket(DEFAULT_SOCKET, "the default context"));
    // No files.
    assert_eq!(resolve(None), default);
    assert_eq!(resolve(Some("")), default);
    assert!(resolve(Some("rootless")).is_err());

    disk.context("rootless", "unix:///run/user/7/docker.sock");
    disk.context("remote", "tcp://10.0.0.1:2375");
    disk.context("empty", "");
    disk.write("home/contexts/meta/broken/meta.json", "{");
    let rootless = |source: &str| {
        let source = format!("context rootless of {source}");
        Ok(socket("/run/user/7/docker.sock", &source))
    };
    for no_context in [
        "{}",
        r#"{"currentContext":""}"#,
        r#"{"currentContext":null,"auths":{}}"#,
    ] {
        disk.write("home/config.json", no_context);
        assert_eq!(resolve(None), default, "{no_context}");
    }
    let config = r#"{"auths":{},"currentContext":"rootless"}"#;
    disk.write("home/config.json", config);
    assert_eq!(resolve(None), rootless("config.json"));
    assert_eq!(resolve(Some("default")), default);
    let reason = |context| resolve(context).expect_err("no socket");
    for (context, why) in [
        ("remote", " is tcp://10.0.0.1:2375"),
        ("empty", ": it has no host"),
        ("gone", ": context not found"),
    ] {
        let expected = format!("context {context} of DOCKER_CONTEXT{why}");
        assert_eq!(reason(Some(context)), expected);
    }
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
    resolve_host(&ClientConfig::default()).expect_err("no home");
    let tls = ClientConfig {
        docker_tls: true,
        docker_host: Some("unix:///run/docker.sock".to_owned()),
        ..ClientConfig::default()
    };
    resolve_host(&tls).expect_err("TLS");
}
