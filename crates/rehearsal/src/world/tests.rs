//! The rules of the world, by the fact that each of them models.

mod adopting;
mod late;
mod newer;
mod up;

use super::{entities::HostPath, *};

const TEXT: &str = "services:
  a:
    image: busybox
    volumes:
      - /scratch
  b:
    image: busybox
    volumes:
      - data:/data
volumes:
  data:
";

fn world() -> World {
    World::new("secret")
}

/// A world in which `text` is running as `app`, started by hand.
fn running(text: &str) -> World {
    let mut world = world();
    start(&mut world, text, "");
    world
}

fn start(world: &mut World, text: &str, env: &str) {
    world.add_stack("/opt/stacks/app", [("docker-compose.yml", text)]);
    if !env.is_empty() {
        world.add_file("/opt/stacks/app/.env", env);
    }
    world.start_by_hand("app", "/opt/stacks/app").unwrap();
}

/// Moves a name to a newer image, as a pull does, and returns its ID. The older image loses the name.
fn renew_image(world: &mut World, name: &str) -> String {
    let mut newer = world.image(name).unwrap().clone();
    world.images.get_mut(&newer.id).unwrap().tags.clear();
    newer.id = format!("sha256:{}", "f".repeat(64));
    let id = newer.id.clone();
    world.images.insert(id.clone(), newer);
    id
}

fn create(world: &mut World, text: &str) -> Result<u64, PortainerError> {
    create_with(world, text, &[])
}

fn create_with(world: &mut World, text: &str, env: &[(&str, &str)]) -> Result<u64, PortainerError> {
    let variable = |(name, value): &(&str, &str)| Variable {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    let env = env.iter().map(variable).collect();
    world.create(1, "app", text.to_owned(), Some(env), "admin")
}

fn update(world: &mut World, id: u64, text: &str) -> Result<(), PortainerError> {
    world.update(
        id,
        Some(1),
        Update {
            text: text.to_owned(),
            env: None,
        },
        "admin",
    )
}

fn ids(world: &World) -> Vec<String> {
    world
        .project("app")
        .into_iter()
        .map(|container| container.id.clone())
        .collect()
}

fn anonymous(world: &World, name: &str) -> String {
    let mounts = &world.container(name).unwrap().mounts;
    mounts
        .iter()
        .find(|mount| mount.anonymous)
        .unwrap()
        .name
        .clone()
        .unwrap()
}

/// The variables from Compose, without the `PATH` of the image.
fn env(world: &World) -> Vec<String> {
    let mut env = world.container("app-a-1").unwrap().env.clone();
    assert!(env.pop().unwrap().starts_with("PATH="));
    env
}

fn service(lines: &str) -> String {
    format!("services:\n  a:\n    image: busybox\n{lines}")
}

#[test]
fn the_examples_are_running() {
    let world = World::with_examples("key", "/opt/stacks").unwrap();
    let summary = world.summary().to_string();
    for example in super::super::seed::examples() {
        assert!(
            !world.project(example.name).is_empty(),
            "{}\n{summary}",
            example.name
        );
    }
    assert!(
        world.containers.values().all(Container::is_running),
        "{summary}"
    );
    assert!(
        summary.contains("Portainer stack 1 in environment 2, active"),
        "{summary}"
    );
    assert!(
        summary.contains("watchtower  containrrr/watchtower:1.7.1  Up 44 hours"),
        "{summary}"
    );
}

#[test]
fn the_summary_groups_by_stack() {
    let mut world = running(TEXT);
    create(&mut world, TEXT).unwrap();
    world.add_container("lone", "busybox:1");
    world.advance(world.now + 7_200_000);
    let short = |name: &str| world.container(name).unwrap().id[..12].to_owned();
    let (a, b, lone) = (short("app-a-1"), short("app-b-1"), short("lone"));
    let expected = format!(
        "(no stack)\n  {lone}  lone  busybox:1  Up 2 hours\napp\n  Portainer stack 1 in environment 1, active\n  {a}  \
         app-a-1  busybox  Up 2 hours\n  {b}  app-b-1  busybox  Up 2 hours"
    );
    assert_eq!(world.summary().to_string(), expected);
    assert_eq!(World::new("secret").summary().to_string(), "no stacks");
}

#[test]
fn every_example_can_be_created_after_the_literal_rewrite() {
    for example in super::super::seed::examples() {
        let mut world = World::with_examples("key", "/opt/stacks").unwrap();
        let folder = format!("/opt/stacks/{}", example.name);
        let find = |name: &str| example.files.iter().find(|(file, _)| *file == name);
        let (_, text) = find("docker-compose.yml").unwrap();
        let rewritten = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("env_file:") && line.trim() != "- .env")
            .map(|line| line.replace("./", &format!("{folder}/")) + "\n")
            .collect::<String>();
        let lines = find(".env").map_or("", |(_, text)| text).lines();
        let env = lines
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once('='));
        let env = env.map(|(name, value)| Variable {
            name: name.to_owned(),
            value: value.to_owned(),
        });
        let created = world.create(1, example.name, rewritten, Some(env.collect()), "admin");
        assert!(created.is_ok(), "{}: {created:?}", example.name);
    }
}

#[test]
fn m02_the_name_is_normalised() {
    let mut world = world();
    let id = world
        .create(1, "Rec.Two_x-1", TEXT.to_owned(), None, "admin")
        .unwrap();
    assert_eq!(world.records[&id].name, "rectwo_x-1");
    assert_eq!(world.project("rectwo_x-1").len(), 2);
}

#[test]
fn m04_down_keeps_named_volumes_and_forgets_anonymous_ones() {
    let mut world = running(TEXT);
    let scratch = anonymous(&world, "app-a-1");
    world.down("app");
    assert!(world.project("app").is_empty());
    assert!(world.networks.iter().all(Network::is_predefined));
    let dangling = world
        .dangling()
        .into_iter()
        .map(|volume| &volume.name)
        .collect::<Vec<_>>();
    assert_eq!(dangling, ["app_data", &scratch]);
}

#[test]
fn m05_create_leaves_containers_that_are_as_they_should_be() {
    let mut world = running(TEXT);
    let before = world.clone();
    create(&mut world, TEXT).unwrap();
    assert_eq!(world.containers, before.containers);
    assert_eq!(world.volumes, before.volumes);
    assert_eq!(world.networks, before.networks);
}

#[test]
fn m05_create_recreates_what_differs_and_only_that() {
    let mut world = running(TEXT);
    let before = ids(&world);
    create(&mut world, &TEXT.replacen("busybox", "busybox:2", 1)).unwrap();
    let after = ids(&world);
    assert_ne!(after[0], before[0]);
    assert_eq!(after[1], before[1]);
}

#[test]
fn m06_a_failing_create_takes_every_container_of_the_project_and_leaves_no_record() {
    let mut world = running(TEXT);
    world.unpullable.insert("private/image".to_owned());
    let other = world.add_container("other", "busybox");
    let error = create(&mut world, &TEXT.replacen("busybox", "private/image", 1)).unwrap_err();
    assert_eq!(error.status, 500);
    assert!(
        error.message.starts_with("failed to deploy a stack: "),
        "{error:?}"
    );
    assert_eq!(world.containers.keys().collect::<Vec<_>>(), [&other]);
    assert!(world.records.is_empty());
    assert!(world.volume("app_data").is_some());
}

#[test]
fn m06_a_failing_put_leaves_the_old_record_as_it_was() {
    let mut world = world();
    let id = create(&mut world, TEXT).unwrap();
    let before = world.records[&id].clone();
    update(&mut world, id, "services: [").unwrap_err();
    assert_eq!(world.records[&id], before);
    assert_eq!(before.status, Status::Active);
    assert!(world.project("app").is_empty());
}

#[test]
fn m07_stack_env_can_be_named_and_m08_is_read_by_compose() {
    let mut world = world();
    let text = service("    env_file: stack.env\n");
    let given = [
        ("CUT", "x # y"),
        ("KEPT", "'x # y $HOME'"),
        ("TWO", "\"line1\\nline2\""),
        ("RAW", "first\nsecond=1"),
    ];
    create_with(&mut world, &text, &given).unwrap();
    assert_eq!(
        env(&world),
        [
            "CUT=x",
            "KEPT=x # y $HOME",
            "RAW=first",
            "TWO=line1\nline2",
            "second=1"
        ]
    );
}

#[test]
fn m08_a_name_with_a_blank_fails() {
    let error = create_with(&mut world(), TEXT, &[("A B", "1")]).unwrap_err();
    assert_eq!(
        error.message,
        "failed to deploy a stack: failed to read /data/compose/1/stack.env: line 1: key cannot \
         contain a space\n"
    );
}

#[test]
fn m09_env_alone_reaches_no_container() {
    let mut world = world();
    let text = service("    command: sleep ${A}\n");
    create_with(&mut world, &text, &[("A", "7")]).unwrap();
    let container = world.container("app-a-1").unwrap();
    assert_eq!(env(&world), [""; 0]);
    assert_eq!(container.command, ["sleep", "7"]);
}

#[test]
fn m10_and_m11_what_the_manager_cannot_read_fails() {
    for lines in [
        "    env_file: stack.env\n",
        "    env_file: /opt/stacks/app/.env\n",
        "    build: /opt/stacks/app\n",
        "    extends:\n      file: /opt/stacks/app/base.yml\n      service: x\n",
    ] {
        let mut world = world();
        world.add_file("/opt/stacks/app/.env", "A=1\n");
        assert_eq!(
            create(&mut world, &service(lines)).unwrap_err().status,
            500,
            "{lines}"
        );
    }
}

#[test]
fn m12_a_relative_bind_becomes_an_empty_directory_of_the_manager() {
    let text = service("    volumes:\n      - ./conf:/conf\n      - ~/x:/x\n");
    let mut world = running(&text);
    let by_hand = world.container("app-a-1").unwrap().clone();
    assert_eq!(by_hand.mounts[0].source, "/opt/stacks/app/conf");
    let id = create(&mut world, &text).unwrap();
    let managed = world.container("app-a-1").unwrap();
    assert_ne!(managed.id, by_hand.id);
    assert_eq!(managed.mounts[0].source, format!("/data/compose/{id}/conf"));
    assert_ne!(managed.mounts[1].source, by_hand.mounts[1].source);
    assert_eq!(
        world.host[&format!("/data/compose/{id}/conf")],
        HostPath::Directory
    );
}

#[test]
fn m13_a_missing_bind_source_fails_in_long_syntax_only() {
    let long = service("    volumes:\n      - {type: bind, source: /no/such, target: /x}\n");
    let short = service("    volumes:\n      - /no/such:/x\n");
    let error = create(&mut world(), &long).unwrap_err();
    assert!(
        error
            .message
            .contains("bind source path does not exist: /no/such"),
        "{error:?}"
    );
    let mut world = world();
    create(&mut world, &short).unwrap();
    assert!(world.has_path("/no/such"));
}

#[test]
fn m14_profiles_start_only_when_they_are_named() {
    let text = format!(
        "{}    profiles: [x]\n  b:\n    image: busybox\n",
        service("")
    );
    let mut world = world();
    create(&mut world, &text).unwrap();
    assert!(world.container("app-a-1").is_none());
    world.down("app");
    world.records.clear();
    create_with(&mut world, &text, &[("COMPOSE_PROFILES", "x")]).unwrap();
    assert!(world.container("app-a-1").is_some());
}

#[test]
fn m15_a_name_in_the_text_is_overridden() {
    let mut world = world();
    create(&mut world, &format!("name: other\n{TEXT}")).unwrap();
    assert_eq!(world.project("app").len(), 2);
}

#[test]
fn m16_a_put_carries_anonymous_volumes_over_and_n04_the_library_does_not() {
    for (era, kept) in [(Era::Sync, true), (Era::Async, false)] {
        let mut world = running(TEXT);
        world.era = era;
        let scratch = anonymous(&world, "app-a-1");
        let content = world.volume(&scratch).unwrap().content.clone();
        let id = create(&mut world, TEXT).unwrap();
        world.finish_deployment(id);
        assert_eq!(anonymous(&world, "app-a-1"), scratch, "{era:?}");
        update(&mut world, id, &TEXT.replacen("busybox", "busybox:2", 1)).unwrap();
        world.finish_deployment(id);
        let now = anonymous(&world, "app-a-1");
        assert_eq!(now == scratch, kept, "{era:?}");
        assert_eq!(
            world.volume(&now).unwrap().content == content,
            kept,
            "{era:?}"
        );
        assert_eq!(
            world.volume(&scratch).unwrap().content,
            content,
            "dangling at most"
        );
    }
}

#[test]
fn m19_delete_runs_down_where_it_is_told() {
    let mut world = running(TEXT);
    world.add_endpoint(2, "edge");
    let id = create(&mut world, TEXT).unwrap();
    assert_eq!(world.delete(id, 7).unwrap_err().status, 404);
    assert_eq!(world.records.len(), 1);
    world.delete(id, 2).unwrap();
    assert!(world.records.is_empty());
    assert_eq!(world.project("app").len(), 2);
}

#[test]
fn m20_a_name_is_taken_on_every_endpoint() {
    let mut world = world();
    world.add_endpoint(2, "edge");
    world.add_record("app", 2, TEXT);
    assert_eq!(create(&mut world, TEXT).unwrap_err().status, 409);
}

#[test]
fn an_invalid_compose_file_fails_with_the_message_of_compose() {
    for (text, reason) in [
        ("services:\n  a: [\n", "yaml: line "),
        (
            "foo: bar\n",
            "(root) Additional property foo is not allowed",
        ),
        ("services:\n  a: text\n", "services.a must be a mapping"),
        (
            "services:\n  a:\n    image: x\n    foo: 1\n",
            "services.a Additional property foo",
        ),
        (
            "services:\n  a:\n    command: x\n",
            "has neither an image nor a build context",
        ),
        (
            "services:\n  a:\n    image: x - other.env\n",
            "invalid reference format",
        ),
        (
            "services:\n  a:\n    image: ${X:?is needed}\n",
            "required variable X is missing a value",
        ),
        (
            "services:\n  a:\n    image: x\n    volumes: [v:/v]\n",
            "refers to undefined volume v",
        ),
        (
            "services:\n  a:\n    image: x\n    networks: [n]\n",
            "refers to undefined network n",
        ),
        (
            "services:\n  a:\n    image: x\n    depends_on: [b]\n",
            "depends on undefined service",
        ),
        (
            "services:\n  a:\n    image: x\nnetworks:\n  default:\n    external: true\n",
            "external",
        ),
    ] {
        let error = create(&mut world(), text).unwrap_err();
        assert!(error.message.contains(reason), "{text}: {error:?}");
    }
}

#[test]
fn the_container_name_of_another_project_is_taken() {
    let mut world = running(&service("    container_name: web\n"));
    let text = service("    container_name: web\n");
    let error = world.create(1, "other", text, None, "admin").unwrap_err();
    assert!(
        error
            .message
            .contains("The container name \"/web\" is already in use"),
        "{error:?}"
    );
    assert!(world.container("web").is_some());
}

#[test]
fn a_container_is_recreated_with_the_container_whose_network_it_uses() {
    let text = "services:\n  a:\n    image: x\n  b:\n    image: x\n    network_mode: service:a\n";
    let mut world = running(text);
    let before = ids(&world);
    create(&mut world, &text.replacen("image: x", "image: y", 1)).unwrap();
    let (a, b) = (
        world.container("app-a-1").unwrap(),
        world.container("app-b-1").unwrap(),
    );
    assert_ne!(b.id, before[1]);
    assert_eq!(b.network_mode, format!("container:{}", a.id));
}

#[test]
fn debug_output_hides_secrets() {
    let mut world = World::new("ptr_secret");
    start(&mut world, TEXT, "TOKEN=hidden\n");
    create_with(&mut world, TEXT, &[("TOKEN", "hidden")]).unwrap();
    let shown = format!("{:?} {:?}", world.keys, world.records);
    assert!(
        !shown.contains("ptr_secret") && !shown.contains("hidden"),
        "{shown}"
    );
    let world = serde_json::to_string(&world).unwrap();
    assert!(!world.contains("ptr_secret"));
}
