use crate::plan::tests::{World, world};

/// A stack without containers: only the text loses something.
fn stopped(compose: &str) -> World {
    let mut world = world(compose);
    world.containers.clear();
    world
}

#[test]
fn b01_nothing_of_the_text_is_lost_if_both_readings_agree() {
    let compose = "
services:
  web:
    image: x:${TAG}
    build: https://example.com/app.git
    environment: {BARE: , SET: '${TAG}', EMPTY: ''}
    labels: [a=b]
    volumes: ['./data/:/data', './/more:/more', named:/named, /anonymous]
    secrets: [token]
    x-note: ./note
volumes: {named: }
secrets: {token: {file: ./token}}
x-note: ./note
";
    let mut world = stopped(compose);
    world.env = Some("TAG=1\n".to_owned());
    world.loses([""; 0]);
}

#[test]
fn b01_paths_that_become_other_places() {
    let compose = "
services:
  web:
    image: x
    build: {context: ./app, additional_contexts: {base: ../base}}
    volumes:
      - ../up:/up
      - ~/home:/home/
      - /srv/../data:/data
      - {type: bind, source: bare, target: /bare}
  db: {build: src, secrets: [token]}
secrets: {token: {file: token}}
";
    stopped(compose).loses([
        "service db: paths that will be inside Portainer: build.context",
        "service web: a path inside Portainer is mounted at /up instead of /s/up",
        "service web: a path inside Portainer is mounted at /home instead of /root/home",
        "service web: /srv/s/web/data is mounted at /data instead of /data",
        "service web: a path inside Portainer is mounted at /bare instead of /s/web/bare",
        "service web: paths that will be inside Portainer: build.additional_contexts.base",
        "service web: Portainer may be unable to read the build directory ./app",
        "secret token: paths that will be inside Portainer: file",
    ]);
}

#[test]
fn b01_texts_that_the_rewrite_changes_although_they_are_no_paths() {
    let compose = "
services:
  web:
    image: x
    command: [run, ./run]
    environment: {URL: 'http://x/./y', DIR: ./dir}
    labels: {dir: ./labels}
    working_dir: ./work
    configs: [c]
    volumes: ['named:/a/./b', /x/./y]
volumes: {named: {driver_opts: {o: ./o}}}
configs: {c: {content: 'path: ./x'}}
";
    stopped(compose).loses([
        "service web: volume named is no longer mounted at /a/b",
        "service web: an anonymous volume is no longer mounted at /x/y",
        "service web: the rewrite changes what is not a path: command[1], environment.DIR, environment.URL, labels.dir, working_dir",
        "config c: the rewrite changes what is not a path: content",
        "volume named: the rewrite changes what is not a path: driver_opts.o",
    ]);
}

#[test]
fn b01_values_that_only_the_shell_has() {
    let compose = "
services:
  web:
    image: x:${TAG:-latest}
    environment: [SHELL, 'NAME=${NAME:-none}', SET]
    labels: {owner: '${USER}'}
    volumes: ['${DATA:-named}:/data', 'named:/named:${MODE:-rw}']
    secrets: [token, known]
  jobs: {image: x, profiles: [jobs]}
volumes: {named: {driver: '${DRIVER:-local}'}}
secrets: {token: {environment: TOKEN}, known: {environment: SET}}
networks: {default: {name: '${NETWORK:-web_default}'}}
";
    let mut world = stopped(compose);
    world.env = Some("SET=1\n".to_owned());
    for pair in [
        ("TAG", "1"),
        ("SHELL", "/bin/sh"),
        ("NAME", "n"),
        ("USER", "u"),
        ("DATA", "/srv"),
        ("MODE", "ro"),
        ("DRIVER", "nfs"),
        ("NETWORK", "lan"),
        ("TOKEN", "t"),
        ("COMPOSE_PROFILES", "jobs"),
    ] {
        world.shell.push(pair);
    }
    world.loses([
        "service jobs: will not start: no profile of it is active in Portainer",
        "service web: volume named is mounted at /data instead of /srv",
        "service web: the mount at /named has other options",
        "service web: variables with another value: NAME",
        "service web: variables no longer set: SHELL",
        "service web: settings with another value: image, labels.owner",
        "volume named: settings with another value: driver",
        "network default: settings with another value: name",
        "secret token: its content is the variable TOKEN, which .env does not set",
    ]);
}

#[test]
fn b01_a_service_that_does_not_start_is_named_once() {
    let compose = "
services:
  web: {image: x}
  jobs: {image: x, profiles: [jobs]}
";
    let mut world = world(compose);
    world.shell.push(("COMPOSE_PROFILES", "jobs"));
    let container = crate::plan::tests::container("web-jobs-1", "jobs");
    world.containers.push(container);
    world.loses([
        "web-jobs-1: removed and not recreated: no profile of service jobs is active in Portainer",
    ]);
}

#[test]
fn m15_another_name_of_the_project() {
    let compose = "
name: mine
services:
  web: {image: x, volumes: ['data:/data']}
volumes: {data: }
";
    stopped(compose).loses([
        "Compose file: the project is named web instead of mine, with new volumes and networks",
    ]);
}

#[test]
fn m08_an_env_that_portainer_cannot_read() {
    let mut world = stopped("services: {web: {image: x}}");
    world.env = Some("KEY=\"one\ntwo\"\n".to_owned());
    world.loses([".env: the deployment would fail, because Portainer cannot parse it"]);
}
