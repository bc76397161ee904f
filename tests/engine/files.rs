//! B18: the files of a container's own layer, on a real engine.

use super::bench::Stack;

/// Compose copies the content of `web.conf` and the value of the secret into the container before it starts it.
const STACK: &str = "services:
  web:
    image: $IMAGE
    init: true
    command: [/bin/sh, -c, 'cat /web.conf /run/secrets/key > /read-at-start; exec sleep 600']
    configs: [web.conf]
    secrets: [key]
    volumes: ['data:/srv/volume']
  job:
    image: $IMAGE
    command: [/bin/sh, -c, 'echo done > /done']
configs: {web.conf: {content: listen 80}}
secrets: {key: {environment: STACK_KEY}}
volumes: {data: {}}
";

const KEY: &str = "hunter2-of-the-layer";

fn started() -> Stack {
    let env = format!("STACK_KEY={KEY}\n");
    Stack::new().running(STACK, &[(".env", &env)])
}

/// Directories, files, links, owners and modes, as `ls` shows them, without the link counts and times.
const LOOK: &str = "cat /read-at-start /web.conf /run/secrets/key /srv/own/sub/file /srv/own/link /srv/volume/x; \
    busybox stat -c '%n %a %u %g %s %F' /web.conf /run/secrets /run/secrets/key /srv/own /srv/own/sub /srv/own/sub/* \
    /srv/own/link /bin /bin/echo /bin/true /bin/true/in; busybox readlink /srv/own/link";

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b18_what_compose_copied_and_what_was_written_inside_comes_back() {
    let stack = started();
    stack.sh(
        "web",
        "mkdir -p /srv/own/sub && echo 1 > /srv/own/sub/file && busybox chown -R 7:8 /srv/own && chmod 700 /srv/own && \
         busybox ln -s sub/file /srv/own/link && busybox ln /srv/own/sub/file /srv/own/sub/hard && echo v > /srv/volume/x && \
         echo 1 > /run/web.pid && touch /tmp/gone && rm /tmp/gone && \
         rm /bin/true && mkdir /bin/true && echo 1 > /bin/true/in && chmod 711 /bin",
    );
    let (before, look) = (stack.state(), stack.sh("web", LOOK));
    assert!(look.contains("listen 80") && look.contains(KEY), "{look}");
    stack.migrate();
    // Compose itself keeps the restored containers.
    stack.comes_back(&before).hides(KEY);
    assert_eq!(stack.sh("web", LOOK), look);
    assert_eq!(stack.sh("web", "ls /run"), "secrets", "no PID file");
    let job = stack.docker("diff $PROJECT-job-1");
    assert!(job.contains("/done"), "{job}");
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn n17_what_compose_copies_into_a_container_that_it_recreates_is_there() {
    let stack = started();
    stack.write(&STACK.replace("init: true", "init: true\n    labels: {edited: '1'}"));
    stack.run("adopt $PROJECT --rerun-jobs").code(0);
    let copied = stack.sh("web", "cat /web.conf /run/secrets/key");
    assert!(copied.contains("listen 80"), "{copied}");
    assert!(copied.contains(KEY), "{copied}");
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b18_what_is_too_large_is_a_difference_each_time() {
    let stack = started();
    let large = "busybox dd if=/dev/zero of=/large bs=1M count=2";
    stack.sh("web", &format!("{large}; rm /bin/nc; echo 1 > /small"));
    stack.migrate();
    let warned = [
        "these cannot be restored",
        "files written inside the container: /large",
    ];
    let lost = "these files inside the container are lost: /large";
    let again = "files of its image that were deleted in $PROJECT-web-1 exist again: /bin/nc";
    stack
        .run("restore $PROJECT")
        .fails(&warned)
        .says(lost)
        .says(again);
    stack.run("restore $PROJECT").fails(lost);
    assert_eq!(stack.sh("web", "cat /small /web.conf"), "1\nlisten 80");
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b17_the_snapshot_of_a_restore_keeps_files_that_were_written_since() {
    let stack = started();
    stack.migrate();
    stack.up();
    stack.sh("web", "echo 2 > /since");
    stack.docker("update --memory=64m --memory-swap=64m $PROJECT-web-1");
    let kept = "1 file written since then is removed, and kept in a new snapshot: /since";
    stack.run("restore $PROJECT").succeeds(kept);
    let last = stack.snapshots().pop().unwrap();
    let id = last.file_stem().unwrap().to_str().unwrap();
    stack.run(&format!("restore $PROJECT --to {id}")).code(0);
    let expected = format!("2\n{KEY}");
    assert_eq!(stack.sh("web", "cat /since /run/secrets/key"), expected);
}
