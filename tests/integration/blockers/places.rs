//! Names, directories and files of the stack.

use std::{fs, path::Path};

use super::{adopt, adopts, dir, refuses};
use testbed::{Call, FaultKind};

use crate::bench::{Bench, CHANGED, PLAIN};

#[test]
fn c59_a_name_that_portainer_would_change() {
    let bench = Bench::new();
    let folder = dir(&bench, "AdvBig");
    bench.stack("AdvBig", PLAIN, None);
    bench.start_as("advbig", &folder);
    let why = "the stack cannot have the name AdvBig in Portainer: the name of its project would be \"advbig\"";
    let hint = "adopt it under the name of its project: stacklift adopt advbig --dir";
    let why = format!("{why}\n{hint} {folder}");
    refuses(&bench, "AdvBig", &why);
    adopts(&bench, "advbig", &format!("advbig --dir {folder}"));
}

#[test]
fn containers_of_the_directory_that_belong_to_another_project() {
    let bench = Bench::new();
    let folder = dir(&bench, "web");
    bench.stack("web", PLAIN, None);
    bench.start_as("shop", &folder);
    let why = format!("containers of {folder} belong to project shop, not to web\nshop-a-1");
    let hint = format!("adopt them under that name: stacklift adopt shop --dir {folder}");
    let why = format!("{why}\n{hint}");
    refuses(&bench, "web", &why);
    // One cause is one reason.
    bench.stack("web", &format!("name: shop\n{PLAIN}"), None);
    refuses(&bench, "web", &why);
    bench.run("plan web").code(1).hides("migrate");
    adopts(&bench, "shop", &format!("shop --dir {folder}"));
}

#[test]
fn the_name_of_a_directory_in_which_another_project_was_started() {
    let bench = Bench::new();
    let folder = dir(&bench, "web");
    bench.stack("web", PLAIN, None);
    bench.start_as("shop", &folder);
    let file = Path::new(&folder).join("docker-compose.yml");
    fs::rename(&file, file.with_file_name("one.yml")).expect("a file");
    let why = "docker-compose.yml is not a file";
    let hint = "the containers of its directory belong to project shop: pass that name instead";
    bench.fails("plan web", &[why, hint]);
}

#[test]
fn a_text_that_names_another_project() {
    let bench = Bench::new();
    let folder = dir(&bench, "web");
    bench.stack("web", &format!("name: shop\n{PLAIN}"), None);
    bench.world(|world| world.add_image("busybox:1.36"));
    let why = format!(
        "the project of {folder} is shop, not web: its volumes and networks have that name"
    );
    let hint = format!("adopt it under that name: stacklift adopt shop --dir {folder}");
    let why = format!("{why}\n{hint}");
    refuses(&bench, "web", &why);
    // The containers show that the stack was started under the other name.
    bench.start_as("web", &folder);
    adopts(&bench, "web", "web");
}

#[test]
fn the_name_of_the_project_is_that_of_its_containers() {
    let bench = Bench::new();
    let folder = dir(&bench, "web");
    let text = "services:\n  a:\n    build: .\n";
    bench.stack("web", text, None);
    bench.world(|world| world.add_image("shop-a"));
    bench.start_as("shop", &folder);
    let args = format!("shop --dir {folder}");
    let rendered = bench
        .run(&format!("render --as adopt --reveal {args}"))
        .code(0);
    assert!(!rendered.err.contains("same name"), "{rendered:?}");
    adopt(&bench, &args).code(0);
    let sent = &bench.calls(testbed::Call::Create)[0].body;
    assert_eq!(rendered.out.as_bytes(), sent);
    let sent = bench.sent_text();
    assert!(sent.contains("image: \"shop-a\""), "{sent}");
}

#[test]
fn m07_the_folder_of_a_portainer_stack_is_not_adopted() {
    let bench = Bench::new();
    // As on a host where Portainer's data has the same path as in its container.
    let folder = dir(&bench, "compose/1");
    bench.stack("compose/1", PLAIN, None);
    bench.start_as("web", &folder);
    adopts(&bench, "web", &format!("web --dir {folder}"));
    let ids = bench.world(|world| world.records.keys().copied().collect::<Vec<_>>());
    assert_eq!(ids, [1]);
    bench.stack("compose/1", &format!("# edited\n{PLAIN}"), None);
    let why = format!(
        "{folder} is the directory of Portainer stack 1: the stack is in Portainer already\n     change the stack in Portainer, or write it into a directory of your own: stacklift export web\n"
    );
    adopt(&bench, &format!("web --dir {folder}")).fails(&why);
    let list = bench.run("list").code(0);
    assert!(!list.out.contains("ready"), "{list:#?}");
    let all = bench.run("adopt --all --yes").code(0);
    assert!(bench.calls(Call::Update).is_empty(), "{all:#?}");
}

#[test]
fn two_directories_with_the_same_project_name() {
    let bench = Bench::new();
    let (here, there) = (dir(&bench, "web"), dir(&bench, "old"));
    bench.started("web", PLAIN, None);
    bench.stack("old", "services:\n  b:\n    image: busybox:1.36\n", None);
    bench.start_as("web", &there);
    let why = format!(
        "containers of project web were started in {there}, not in {here}\n     - web-b-1\n     both directories use the project name web: set another `name:` in one of the Compose files"
    );
    adopt(&bench, "web").fails(&why);
}

#[test]
fn containers_that_were_started_in_another_directory() {
    let bench = Bench::new();
    let (here, there) = (dir(&bench, "web"), dir(&bench, "old"));
    bench.stack("web", PLAIN, None);
    bench.stack("old", PLAIN, None);
    bench.start_as("web", &there);
    let why = format!(
        "containers of project web were started in {there}, not in {here}\nweb-a-1\nadopt them from there: stacklift adopt web --dir {there}"
    );
    refuses(&bench, "web", &why);
    fs::remove_dir_all(&here).expect("removed");
    let found = format!("web is in {there}, where it was started\n");
    bench.succeeds("plan web", "").says(&found);
    // A directory that was moved.
    let moved = dir(&bench, "moved");
    fs::rename(&there, &moved).expect("moved");
    let why = format!(
        "containers of project web were started in {there}, not in {moved}\nweb-a-1\nthat directory is gone: {RECREATE}"
    );
    refuses(&bench, &format!("web --dir {moved}"), &why);
    fs::rename(&moved, &there).expect("moved back");
    adopts(&bench, "web", &format!("web --dir {there}"));
}

/// The answer to who uses the key.
const STANDARD_USER: &[u8] = br#"{"Username":"somebody","Role":2}"#;

const RECREATE: &str = "recreate the containers from this directory with `docker compose -p web up -d --force-recreate`: each is interrupted and loses the files written inside it; its volumes stay";

#[test]
fn m07_containers_that_a_portainer_outside_a_container_may_have_started() {
    let bench = Bench::new();
    let (here, there) = (dir(&bench, "web"), dir(&bench, "opt/compose/56"));
    bench.stack("web", PLAIN, None);
    bench.stack("opt/compose/56", PLAIN, None);
    bench.start_as("web", &there);
    let refused = |hint: &str| {
        let expected = format!(
            "containers of project web were started in {there}, not in {here}\nweb-a-1\n{hint}"
        );
        refuses(&bench, "web", &expected);
    };
    refused(&format!(
        "adopt them from there: stacklift adopt web --dir {there}"
    ));
    let user = FaultKind::Body(200, STANDARD_USER.to_vec());
    bench.always(Call::Me, user);
    refused(&format!(
        "if Portainer started them, use the API key of an administrator, who sees every Portainer stack; otherwise, adopt them from there: stacklift adopt web --dir {there}"
    ));
    let moved = dir(&bench, "moved");
    fs::rename(&here, &moved).expect("moved");
    let otherwise = format!("with the API key of an administrator; otherwise, pass --dir {there}");
    adopt(&bench, "web").fails(&format!(
        "if that is Portainer's directory, `stacklift export` writes the file, {otherwise}"
    ));
    fs::rename(&moved, &here).expect("moved back");
    fs::remove_dir_all(&there).expect("removed");
    refused(
        "Portainer may have started them in a directory of its own: use the API key of an administrator, who sees every Portainer stack",
    );
    bench.faults().clear();
    refused(&format!("that directory is gone: {RECREATE}"));
}

/// An administrator's key has nothing more to see.
#[test]
fn m07_containers_of_a_portainer_stack_that_is_gone() {
    let bench = Bench::new();
    let here = dir(&bench, "web");
    bench.stack("web", PLAIN, None);
    bench.start_as("web", &here);
    bench.stack("web", CHANGED, None);
    bench.label("project.working_dir", "/data/compose/7");
    for (rights, hint) in [
        (
            Some(STANDARD_USER),
            "Portainer started them: use the API key of an administrator, who sees every Portainer stack".to_owned(),
        ),
        (
            None,
            format!(
                "Portainer has no stack for them: if they are of another Portainer that is gone, run: stacklift export web --to {here} --force --from portainer-data; otherwise, {RECREATE}"
            ),
        ),
    ] {
        bench.faults().clear();
        if let Some(user) = rights {
            bench.always(Call::Me, FaultKind::Body(200, user.to_vec()));
        }
        let expected = format!(
            "containers of project web were started in /data/compose/7, not in {here}\nweb-a-1\n{hint}"
        );
        refuses(&bench, "web", &expected);
    }
}

#[test]
fn containers_that_were_started_from_another_file() {
    let bench = Bench::new();
    let folder = dir(&bench, "web");
    bench.stack("web", "services:\n  b:\n    image: other\n", None);
    let prod = format!("{folder}/prod.yml");
    fs::write(&prod, PLAIN).expect("a file");
    bench.world(|world| {
        world.add_stack(&folder, [("prod.yml", PLAIN)]);
        world
            .start_by_hand("web", &folder, &[&prod])
            .expect("a stack that starts");
    });
    refuses(&bench, "web --file docker-compose.yml --leave-orphans",
        &[
            format!(
                "containers were started from other Compose files than {folder}/docker-compose.yml: {prod}\nweb-a-1\nto adopt the stack from that file, pass --file prod.yml; if the stack no longer uses it, move it away"
            ),
            "1 image is not on this host\nb: other\npass --pull, or pull it first: docker pull other".to_owned(),
        ],
    );
    // Without `--file`, the label of the containers decides.
    adopts(&bench, "web", "web");
}
