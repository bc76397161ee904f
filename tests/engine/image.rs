//! The image of `packaging/Containerfile`, which `STACKLIFT_TEST_RELEASE`, the folder of an unpacked release, contains. No
//! registry is asked: Compose 5 stands for the image with Compose.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    process::{Command, Stdio},
};

use testbed::Era;

use crate::{
    bench::{Case, Stack},
    host::{Compose, required},
    portainer,
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

/// The image `$PROJECT-image`, and what is mounted.
struct Image<'s> {
    stack: &'s Stack,
    mounts: Vec<String>,
}

impl<'s> Image<'s> {
    fn build(stack: &'s Stack) -> Self {
        let release = required("STACKLIFT_TEST_RELEASE");
        let home = stack.state_dir().with_file_name("image");
        fs::create_dir_all(&home).expect("a folder");
        fs::copy(Compose::Five.program(), home.join("docker-compose")).expect("Compose");
        let folder = home.to_str().expect("UTF-8");
        let mut tar = Command::new("tar");
        tar.args([
            "-C",
            folder,
            "-cf",
            &format!("{folder}/tar"),
            "docker-compose",
        ]);
        assert!(tar.status().expect("tar").success());
        stack.docker(&format!("import {folder}/tar docker/compose-bin:$PROJECT"));
        stack.docker(&format!(
            "build -q -t $PROJECT-image --build-arg COMPOSE=$PROJECT -f {release}/Containerfile {release}"
        ));

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
        mounts.push(format!("{}:/var/run/docker.sock", portainer::socket()));
        mounts.push(format!("{0}:{0}", stack.root().display()));
        Self { stack, mounts }
    }

    /// Runs `docker run` with the mounts, and with these arguments of stacklift.
    fn run(&self, line: &str) -> Run {
        let mounts = self.mounts.join(" -v ");
        let run =
            format!("run --rm --network=host --label $MARK -v {mounts} $PROJECT-image {line}");
        let words = shlex::split(&self.stack.host.filled(&run)).expect("words");
        let mut command = Command::new("docker");
        self.stack.ended(command.args(words).stdin(Stdio::null()))
    }
}

/// A plan in the image says what one on the host says. An adoption there keeps what runs, and leaves its snapshot on the host.
/// The stack's directory belongs to a user whom the image does not know.
fn adopts(origin: Compose) {
    let (host, era) = (Compose::Five, Era::Sync);
    let stack = Stack::by(Case { origin, host, era });
    let stack = stack.running(TEXT, &[(".env", "A=1\n"), ("conf/a", "a\n")]);
    for (path, mode) in [("", 0o700), (".env", 0o600), ("docker-compose.yml", 0o600)] {
        let path = stack.dir().join(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        chown(&path, Some(54_321), Some(54_321)).expect("root");
    }
    let ids = stack.ids();
    let mut image = Image::build(&stack);

    let plan = image.run("plan $PROJECT").code(0).all();
    let said =
        "$PROJECT  2 containers on this host, not in Portainer yet\n\n  =  db, web  keep running\n";
    assert!(plan.starts_with(said), "{plan}");
    // The Compose program of this host is the same one.
    assert_eq!(plan, stack.run("plan $PROJECT").all());
    // Another test may have a stack that makes the columns wider.
    let row = "$PROJECT  2/2         by hand";
    image.run("list").succeeds(&[row, "  keeps running\n"]);

    let lost = "the directory for snapshots, /var/lib/stacklift, would be lost with this container";
    image.run("adopt $PROJECT --yes").fails(lost);
    let state = stack.state_dir();
    fs::create_dir(&state).expect("a folder");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).expect("a mode");
    image
        .mounts
        .push(format!("{}:/var/lib/stacklift", state.display()));
    let adopted = image.run("adopt $PROJECT --yes");
    adopted.succeeds("adopted $PROJECT: 2 containers kept running");
    assert_eq!(stack.ids(), ids);
    assert_eq!(stack.snapshots().len(), 1);
    let plan = image.run("plan $PROJECT");
    plan.succeeds("is up to date in Portainer");
    let restored = image.run("restore $PROJECT --yes");
    restored.succeeds("restored $PROJECT");
}

#[test]
#[ignore = "needs root, a container engine, STACKLIFT_TEST_RELEASE and STACKLIFT_TEST_COMPOSE_5: scripts/test-packages runs it"]
fn as_root_a_stack_is_adopted_in_the_image() {
    adopts(Compose::Five);
}

/// B47: the image needs no other Compose than its own.
#[test]
#[ignore = "needs root, a container engine, STACKLIFT_TEST_RELEASE and STACKLIFT_TEST_COMPOSE_5: scripts/test-packages runs it"]
fn as_root_a_stack_of_another_version_is_adopted_in_the_image() {
    adopts(Compose::Two);
}
