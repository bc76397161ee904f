//! The image of `packaging/Containerfile`, which `STACKLIFT_TEST_RELEASE`, the folder of an unpacked release, contains. No
//! registry is asked: Compose 5 stands for the image with Compose.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::Path,
    process::{Command, Stdio},
};

use testbed::Era;

use crate::{
    bench::Stack,
    host::{Compose, attempt, docker, required},
    run::{KEY, Run},
};

const TEXT: &str = "services:
  db:
    $SLEEP
    environment: {SECRET: $PROJECT}
    volumes: [data:/data]
  web:
    $SLEEP
    env_file: .env
    volumes: ['./conf:/conf:ro']
    ports: ['127.0.0.1:$PORT:80']
volumes: {data: {}}
";

/// What runs in the image, and what is mounted.
struct Image<'s> {
    stack: &'s Stack,
    /// Its name.
    name: String,
    mounts: Vec<String>,
}

impl<'s> Image<'s> {
    fn build(stack: &'s Stack) -> Self {
        let release = required("STACKLIFT_TEST_RELEASE");
        let name = stack.host.name("image");
        let home = stack.state().with_file_name("image");
        fs::create_dir_all(&home).expect("a folder");
        let program = home.join("docker-compose");
        fs::copy(required("STACKLIFT_TEST_COMPOSE_5"), &program).expect("Compose");
        let (tar, compose) = (home.join("tar"), format!("docker/compose-bin:{name}"));
        let folder = home.to_str().expect("UTF-8");
        let packed = Command::new("tar")
            .args(["-C", folder, "-cf"])
            .arg(&tar)
            .arg("docker-compose")
            .status();
        assert!(packed.expect("tar").success());
        docker(&["import", tar.to_str().expect("UTF-8"), &compose]);
        let version = format!("COMPOSE={name}");
        let file = format!("{release}/Containerfile");
        let build = ["build", "-q", "-t", &name, "--build-arg", &version];
        docker(&[&build[..], &["-f", &file, &release]].concat());
        docker(&["rmi", &compose]);

        let settings = format!(
            "base-url = \"{}\"\nstacks-root = \"{}\"\napi-key-file = \"/etc/stacklift.key\"\n",
            stack.rehearsal.base_url(),
            stack.root().display(),
        );
        let mut mounts = Vec::new();
        for (path, text, mode) in [
            ("stacklift.toml", settings.as_str(), 0o644),
            ("stacklift.key", KEY, 0o600),
        ] {
            let own = home.join(path);
            fs::write(&own, text).expect("a file");
            fs::set_permissions(&own, fs::Permissions::from_mode(mode)).expect("a mode");
            mounts.push(format!("{}:/etc/{path}:ro", own.display()));
        }
        let socket = env::var("DOCKER_HOST").unwrap_or_default();
        let socket = socket
            .strip_prefix("unix://")
            .unwrap_or("/var/run/docker.sock");
        mounts.push(format!("{socket}:/var/run/docker.sock"));
        mounts.push(format!("{0}:{0}", stack.root().display()));
        Self {
            stack,
            name,
            mounts,
        }
    }

    /// Runs `docker run` with the mounts, and with these arguments of stacklift.
    fn run(&self, arguments: &[&str]) -> Run {
        let mark = self.stack.host.mark();
        let mut command = Command::new("docker");
        command
            .args(["run", "--rm", "--network=host", "--label", &mark])
            .args(self.mounts.iter().flat_map(|mount| ["-v", mount]))
            .arg(&self.name)
            .args(arguments)
            .stdin(Stdio::null());
        Run::of(&mut command)
    }
}

impl Drop for Image<'_> {
    fn drop(&mut self) {
        attempt(&["rmi", "-f", &self.name]).ok();
    }
}

/// A plan in the image says what one on the host says. An adoption there keeps what runs, and leaves its snapshot on the host.
/// The stack's directory belongs to a user whom the image does not know.
fn adopts(origin: Compose) {
    let stack = Stack::between(origin, &Compose::five(), Era::Sync)
        .running(TEXT, &[(".env", "A=1\n"), ("conf/a", "a\n")]);
    for (path, mode) in [("", 0o700), (".env", 0o600), ("docker-compose.yml", 0o600)] {
        let path = stack.dir().join(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        chown(&path, Some(54_321), Some(54_321)).expect("root");
    }
    let (project, ids) = (stack.host.project.as_str(), stack.ids());
    let mut image = Image::build(&stack);

    let plan = image.run(&["plan", project]).code(0).all();
    let said = format!(
        "{project}  2 containers on this host, not in Portainer yet\n\n  =  db, web  keep running\n"
    );
    assert!(plan.starts_with(&said), "{plan}");
    // The Compose program of this host is the same one.
    let config = stack.state().with_file_name("docker");
    fs::create_dir_all(config.join("cli-plugins")).expect("a folder");
    Compose::five().install(&config.join("cli-plugins"));
    let mut on_host = stack.command("plan $PROJECT");
    let on_host = Run::of(on_host.env("DOCKER_CONFIG", config));
    assert_eq!(plan, on_host.all());
    // Another test may have a stack that makes the columns wider.
    let row = format!("{project}  2/2         by hand");
    image.run(&["list"]).succeeds(&[&*row, "  keeps running\n"]);

    let lost = "the directory for snapshots, /var/lib/stacklift, would be lost with this container";
    let adopt = ["adopt", project, "--yes"];
    image.run(&adopt).fails(lost);
    let state = stack.state();
    fs::create_dir(&state).expect("a folder");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).expect("a mode");
    image
        .mounts
        .push(format!("{}:/var/lib/stacklift", state.display()));
    let adopted = image.run(&adopt).code(0);
    adopted.says(&format!("adopted {project}: 2 containers kept running"));
    assert_eq!(stack.ids(), ids);
    let snapshots = fs::read_dir(Path::new(&state).join("snapshots")).expect("snapshots");
    assert_eq!(snapshots.count(), 1);
    image
        .run(&["plan", project])
        .succeeds("is up to date in Portainer");
    image
        .run(&["restore", project, "--yes"])
        .succeeds(&format!("restored {project}"));
}

#[test]
#[ignore = "needs root, a container engine, STACKLIFT_TEST_RELEASE and STACKLIFT_TEST_COMPOSE_5: scripts/test-packages runs it"]
fn as_root_a_stack_is_adopted_in_the_image() {
    adopts(Compose::five());
}

/// B47: the image needs no other Compose than its own.
#[test]
#[ignore = "needs root, a container engine, STACKLIFT_TEST_RELEASE and STACKLIFT_TEST_COMPOSE_5: scripts/test-packages runs it"]
fn as_root_a_stack_of_another_version_is_adopted_in_the_image() {
    adopts(Compose::new());
}
