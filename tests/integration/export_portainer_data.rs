//! `stacklift export --from portainer-data`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    bench::{Bench, MARKED, PLAIN},
    plan::{labeled, with_hashes},
};

const TEXT: &str = "# Kept.
services:
  a:
    image: busybox:1.36
    env_file: stack.env
    volumes: ['./data:/data']
";

const EXPORT: &str = "export web --from portainer-data";

/// The stack `web`, which a Portainer that is gone started, without a directory of its own.
fn lost() -> Bench {
    let bench = Bench::new();
    let dir = bench.started("web", &TEXT.replace("stack.env", ".env"), Some("A=1\n"));
    fs::remove_dir_all(dir).expect("the directory");
    for (label, value) in [
        ("project.working_dir", "/data/compose/7"),
        ("project.config_files", "/data/compose/7/docker-compose.yml"),
        ("project.environment_file", "/data/compose/7/stack.env"),
    ] {
        bench.label(label, value);
    }
    bench
}

/// What was mounted at that Portainer's `/data`.
fn data(bench: &Bench, name: &str) -> PathBuf {
    let data = bench.root().join(name);
    let folder = data.join("compose/7");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("docker-compose.yml"), TEXT).expect("a file");
    fs::write(folder.join("stack.env"), format!("TOKEN={MARKED}\nB=\n")).expect("a file");
    data
}

/// Mounts a directory of this host into a container of another project.
fn mount(bench: &Bench, data: &Path, target: &str) {
    let text = format!(
        "services: {{a: {{image: 'portainer/portainer-ce:2.19.0', volumes: ['{}:{target}']}}}}\n",
        data.display()
    );
    let name = data.file_name().and_then(|name| name.to_str());
    bench.started(name.expect("a name"), &text, None);
}

fn names_the_export(bench: &Bench) {
    let to = bench.root().join("web");
    let export = format!(
        "stacklift export web --to {} --from portainer-data\n",
        to.display()
    );
    let row = format!("web    1/1         not in this Portainer  no Compose file: {export}");
    bench.succeeds("list", &row);
    bench.fails("plan web", &["there is no stack named web", &export]);
}

/// Runs the export from `data` to `to`.
fn export_command(data: &Path, to: &Path) -> String {
    let (data, to) = (data.display(), to.display());
    format!("export web --to {to} --portainer-data {data}")
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("a file")
}

/// The Compose file of a Git stack is in a folder of its repository, with other env files. Portainer writes `stack.env` to the
/// root of its clone.
#[test]
fn m24_a_git_stack_is_found_in_its_folder_with_its_env_files() {
    let bench = lost();
    let folder = "/data/compose/7/app";
    bench.label("project.working_dir", folder);
    bench.label("project.config_files", &format!("{folder}/compose.yaml"));
    names_the_export(&bench);

    let data = data(&bench, "old");
    let folder = data.join("compose/7/app");
    fs::create_dir(&folder).expect("a folder");
    let text = TEXT.replace("stack.env", "[../stack.env, app.env]");
    fs::write(folder.join("compose.yaml"), text).expect("a file");
    let to = bench.root().join("web");
    let export = export_command(&data, &to);
    bench.fails(&export, "  - line 5: the env file /data/compose/7/app/app.env of service a does not exist\nhint: copy the Compose file and the variables from Portainer's data, and change them there\n");
    fs::write(folder.join("app.env"), "OF_APP=1\n").expect("a file");
    bench.succeeds(&export, "2 variables").hides(MARKED);
    let text = read(to.join("compose.yaml"));
    let expected = "  a:
    environment:
      OF_APP: \"1\"
    image: busybox:1.36
    env_file: .env
    volumes: ['/data/compose/7/app/data:/data']
";
    assert!(text.ends_with(expected), "{text}");
    assert_eq!(read(to.join(".env")), format!("TOKEN={MARKED}\nB=\n"));

    // Without variables, Compose reads the `.env` of the repository.
    fs::remove_file(data.join("compose/7/stack.env")).expect("a file");
    fs::write(folder.join(".env"), "# Kept.\nOF_REPOSITORY=2\n").expect("a file");
    let text = TEXT.replace("stack.env", ".env");
    fs::write(folder.join("compose.yaml"), text).expect("a file");
    let of_containers = labeled(&bench);
    with_hashes(&bench, &format!("{export} --force"), &of_containers).code(0);
    let text = read(to.join("compose.yaml"));
    assert!(text.contains("    env_file: .env\n"), "{text}");
    assert_eq!(read(to.join(".env")), "OF_REPOSITORY=2\n");
}

#[test]
fn several_files_are_shown_and_none_is_chosen() {
    let bench = lost();
    let says = "found no /data/compose/7/docker-compose.yml of web\nhint: pass the directory that was mounted at /data with --portainer-data";
    bench.fails(EXPORT, says);
    let missing = format!("{EXPORT} --portainer-data /nosuch");
    bench.fails(&missing, "error: cannot find the directory /nosuch\n");
    let other = data(&bench, "other");
    let text = TEXT.replace("  a:", "  b:");
    fs::write(other.join("compose/7/docker-compose.yml"), text).expect("a file");
    mount(&bench, &other, "/data");
    bench.fails(EXPORT, "found no ");
    let text = TEXT.replace("1.36", "${B}9");
    fs::write(other.join("compose/7/docker-compose.yml"), text).expect("a file");
    let doubt = "may be the Compose file of another stack: a of web runs busybox:1.36, and the file has image busybox:9\n";
    bench.fails(EXPORT, doubt);
    let to = bench.root().join("web");
    bench.succeeds(&export_command(&other, &to), doubt);
    fs::remove_dir_all(&to).expect("the files");
    // Or if a container has another configuration.
    let mut hashes = labeled(&bench);
    for is_other in [false, true] {
        let one = data(&bench, "equal");
        let run = with_hashes(&bench, &export_command(&one, &to), &hashes).code(0);
        assert_eq!(
            run.err.contains("a of web has another configuration"),
            is_other,
            "{run:#?}"
        );
        hashes.insert("a".to_owned(), "0".repeat(64));
        fs::remove_dir_all(&to).expect("the files");
    }
    let (one, two) = (data(&bench, "one"), data(&bench, "two"));
    mount(&bench, &one, "/data");
    let export = format!("{EXPORT} --to {}", to.display());
    bench.run(&export).code(0);
    fs::remove_dir_all(&to).expect("the files");
    mount(&bench, &two.join("compose"), "/data/compose");
    let files = [one, two].map(|data| data.join("compose/7/docker-compose.yml"));
    let files = files.map(|file| file.display().to_string());
    let says = ["found several Compose files of web", &files[0], &files[1]];
    bench.fails(&export, &says);
    assert!(!to.exists());
}

/// A container that was kept names the folder of a Portainer before the last one.
#[test]
fn the_folder_of_older_containers_is_not_chosen_silently() {
    let bench = lost();
    let (old, new) = (data(&bench, "old"), data(&bench, "new"));
    fs::rename(new.join("compose/7"), new.join("compose/5")).expect("a folder");
    let mut newer = bench.container("web-a-1");
    newer.id = "f".repeat(64);
    newer.name = "web-a-2".to_owned();
    newer.created += 60;
    for (name, label) in &mut newer.labels {
        if name.starts_with("com.docker.compose.project.") {
            *label = label.replace("/7", "/5");
        }
    }
    bench.world(|world| world.containers.insert(newer.id.clone(), newer));
    let to = bench.root().join("web");
    let export = format!("{EXPORT} --to {}", to.display());
    let found = |data: &Path, id: &str| {
        let file = format!("compose/{id}/docker-compose.yml");
        data.join(file).display().to_string()
    };
    let says = "found no /data/compose/5/docker-compose.yml of web";
    bench.fails(&export, says);
    for (data, id) in [(&old, "7"), (&new, "5")] {
        let export = format!("{export} --portainer-data {}", data.display());
        bench.succeeds(&export, &found(data, id));
        fs::remove_dir_all(&to).expect("the files");
    }

    mount(&bench, &old, "/data");
    let newest =
        "the newest containers of web were started from /data/compose/5/docker-compose.yml";
    let (of_old, of_new) = (found(&old, "7"), found(&new, "5"));
    bench.fails(&export, &format!("{newest}, but only {of_old} was found\n"));
    mount(&bench, &new, "/data");
    let both = ["found several Compose files of web", &of_old, &of_new];
    bench.fails(&export, &both);
    fs::remove_dir_all(old).expect("the data");
    bench.succeeds(&export, &of_new);
}

/// The files in the directory of the stack are kept beside those that are written.
#[test]
fn the_printed_export_replaces_the_files_of_the_directory() {
    for file in ["docker-compose.yml", "compose.yaml"] {
        let bench = lost();
        fs::create_dir(bench.dir("web")).expect("a directory");
        bench.write("web", file, PLAIN);
        mount(&bench, &data(&bench, "old"), "/data");
        bench.succeeds(
            "list",
            "not in this Portainer  blocked: started in another directory",
        );
        let plan = bench.run("plan web");
        let command = plan.out.split("run: stacklift ").nth(1).expect("a command");
        let command = command.split("; otherwise").next().expect("a command");
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        let to_other = BTreeMap::from([("a".to_owned(), "0".repeat(64))]);
        let refused = with_hashes(&bench, &command, &to_other);
        refused.fails("may be the Compose file of another stack: a of web has another configuration\nhint: pass an empty directory with --to, and compare the files\n");
        assert_eq!(read(bench.dir("web").join(file)), PLAIN);
        with_hashes(&bench, &command, &labeled(&bench)).code(0);
        bench.run("list").hides("started in another directory");
    }
}

/// Portainer was restored from a backup, and has given the ID of `web` to its twin.
#[test]
fn the_directory_of_a_successor_is_not_exported() {
    let bench = lost();
    fs::create_dir(bench.dir("web")).expect("a directory");
    bench.write("web", "compose.yaml", PLAIN);
    mount(&bench, &data(&bench, "old"), "/data");
    bench.record("twin", 2);
    bench.world(|world| {
        let (_, mut twin) = world.records.pop_first().expect("a stack");
        twin.id = 7;
        world.records.insert(7, twin);
    });
    let says = "that directory is now the one of the Portainer stack twin: recreate the containers";
    bench.run("plan web").says(says).hides("portainer-data");
    let to = bench.dir("web");
    let export = format!("{EXPORT} --to {} --force", to.display());
    let says = "/data/compose/7 is now the directory of the Portainer stack twin, and not of web\nhint: pass an older copy of Portainer's data with --portainer-data";
    with_hashes(&bench, &export, &labeled(&bench)).fails(says);
    assert_eq!(read(to.join("compose.yaml")), PLAIN);
}

/// A link would lead out of Portainer's data, or to another file than in its container (B44).
#[test]
fn b44_a_link_in_the_data_of_portainer_is_not_followed() {
    for linked in [
        "compose/7/docker-compose.yml",
        "compose/7/stack.env",
        "compose/7",
    ] {
        let bench = lost();
        let data = data(&bench, "old");
        let (path, away) = (data.join(linked), bench.root().join("away.env"));
        fs::rename(&path, &away).expect("renamed");
        std::os::unix::fs::symlink(&away, &path).expect("a link");
        let to = bench.root().join("web");
        let run = bench.run(&export_command(&data, &to));
        let run = run
            .fails("a link or `..` is on the path to it")
            .hides(MARKED);
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(run.err.contains("as root"), !is_root);
        assert!(!to.exists());
    }
    let bench = lost();
    let folder = "/data/compose/7/../../..";
    bench.label("project.config_files", &format!("{folder}/outside.yml"));
    let data = data(&bench, "old");
    fs::write(data.join("../outside.yml"), TEXT).expect("a file");
    let to = bench.root().join("web");
    let run = bench.run(&export_command(&data, &to)).code(1);
    run.says("a link or `..` is on the path to it");
}
