//! `stacklift export --from portainer-data`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::bench::{Bench, MARKED, PLAIN};

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
    bench.started(
        data.file_name()
            .and_then(|name| name.to_str())
            .expect("a name"),
        &text,
        None,
    );
}

#[test]
fn what_portainer_stored_becomes_two_files() {
    let bench = lost();
    let row =
        "web    1/1         its Portainer is gone  stacklift export web --from portainer-data\n";
    bench.succeeds("list", row);
    bench.fails("plan web", &["there is no stack named web", EXPORT]);

    let data = data(&bench, "old");
    let to = bench.root().join("web");
    let (shown, file) = (to.display(), data.join("compose/7/docker-compose.yml"));
    let run = bench.run(&format!(
        "export web --to {shown} --portainer-data {}",
        data.display()
    ));
    let run = run.code(0).hides(MARKED);
    let expected = format!(
        "    found {}
exported web to {shown}: compose.yaml and .env, 2 variables
     note line 6 of the file in Portainer is changed: there, it depends on /data/compose/7 or the container of Portainer
next: check the files, then stacklift adopt web --dir {shown}
",
        file.display()
    );
    run.prints(expected);
    assert_eq!(
        fs::read_to_string(to.join("compose.yaml")).expect("a file"),
        "# Kept.
name: \"web\"
\"x-stacklift\": \"from portainer-data\"
services:
  a:
    image: busybox:1.36
    env_file: .env
    volumes: ['/data/compose/7/data:/data']
"
    );
    let env = fs::read_to_string(to.join(".env")).expect("a file");
    assert_eq!(env, format!("TOKEN={MARKED}\nB=\n"));
    bench.run("plan web").hides("were started in");
    let row = "web    1/1         its Portainer is gone  blocked: variables differ\n";
    bench.succeeds("list", row);
}

/// The Compose file of a Git stack is in a folder of its repository, with other env files. Portainer writes `stack.env` to the
/// root of its clone.
#[test]
fn m24_a_git_stack_is_found_in_its_folder_with_its_env_files() {
    let bench = lost();
    for (label, value) in [
        ("project.working_dir", "/data/compose/7/app"),
        ("project.config_files", "/data/compose/7/app/compose.yaml"),
    ] {
        bench.label(label, value);
    }
    let row =
        "web    1/1         its Portainer is gone  stacklift export web --from portainer-data\n";
    bench.succeeds("list", row);
    bench.fails("plan web", &["there is no stack named web", EXPORT]);

    let data = data(&bench, "old");
    let folder = data.join("compose/7/app");
    fs::create_dir(&folder).expect("a folder");
    let text = TEXT.replace("stack.env", "[../stack.env, app.env]");
    fs::write(folder.join("compose.yaml"), text).expect("a file");
    let to = bench.root().join("web");
    let export = format!(
        "export web --to {} --portainer-data {}",
        to.display(),
        data.display()
    );
    bench
        .fails(
            &export,
            &[
                "line 5: the env file /data/compose/7/app/app.env of service a does not exist",
                "hint: copy the Compose file and the variables from Portainer's data, and change them there",
            ],
        );
    fs::write(folder.join("app.env"), "OF_APP=1\n").expect("a file");
    bench.succeeds(&export, "2 variables").hides(MARKED);
    let text = fs::read_to_string(to.join("compose.yaml")).expect("a file");
    let expected = "  a:
    environment:
      OF_APP: \"1\"
    image: busybox:1.36
    env_file: [.env]
    volumes: ['/data/compose/7/app/data:/data']
";
    assert!(text.ends_with(expected), "{text}");
    let env = fs::read_to_string(to.join(".env")).expect("a file");
    assert_eq!(env, format!("TOKEN={MARKED}\nB=\n"));

    // Without variables, Compose reads the `.env` of the repository.
    fs::remove_file(data.join("compose/7/stack.env")).expect("a file");
    fs::write(folder.join(".env"), "# Kept.\nOF_REPOSITORY=2\n").expect("a file");
    let text = TEXT.replace("stack.env", ".env");
    fs::write(folder.join("compose.yaml"), text).expect("a file");
    bench.run(&format!("{export} --force")).code(0);
    let text = fs::read_to_string(to.join("compose.yaml")).expect("a file");
    assert!(text.contains("    env_file: .env\n"), "{text}");
    let env = fs::read_to_string(to.join(".env")).expect("a file");
    assert_eq!(env, "OF_REPOSITORY=2\n");
}

#[test]
fn several_files_are_shown_and_none_is_chosen() {
    let bench = lost();
    bench.fails(
        EXPORT,
        &[
            "found no /data/compose/7/docker-compose.yml of web",
            "--portainer-data",
        ],
    );
    let other = data(&bench, "other");
    let text = TEXT.replace("  a:", "  b:");
    fs::write(other.join("compose/7/docker-compose.yml"), text).expect("a file");
    mount(&bench, &other, "/data");
    bench.fails(EXPORT, "found no ");
    let (one, two) = (data(&bench, "one"), data(&bench, "two"));
    mount(&bench, &one, "/data");
    let to = bench.root().join("web");
    let export = format!("{EXPORT} --to {}", to.display());
    bench.run(&export).code(0);
    fs::remove_dir_all(&to).expect("the files");
    mount(&bench, &two.join("compose"), "/data/compose");
    let files = [one, two].map(|data| {
        data.join("compose/7/docker-compose.yml")
            .display()
            .to_string()
    });
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
    bench.fails(
        &export,
        &[
            "the newest containers of web were started from /data/compose/5/docker-compose.yml, but only",
            &found(&old, "7"),
        ],
    );
    mount(&bench, &new, "/data");
    bench.fails(
        &export,
        &[
            "found several Compose files of web",
            &found(&old, "7"),
            &found(&new, "5"),
        ],
    );
    fs::remove_dir_all(old).expect("the data");
    bench.succeeds(&export, &found(&new, "5"));
}

#[test]
fn what_portainer_did_not_start_is_not_searched() {
    let bench = Bench::web(PLAIN);
    bench.fails(
        EXPORT,
        &[
            "no container of web was started by Portainer",
            "--from containers",
        ],
    );
}
