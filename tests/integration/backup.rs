//! C20–C22: the backup.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::bench::{Bench, PLAIN, Run};

fn today() -> String {
    chrono::Local::now().format("%Y-%m-%d").to_string()
}

#[test]
fn c20_the_path_is_of_the_local_date() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    // At every moment one of these zones has another date than the other.
    for zone in ["<+14>-14", "<-12>+12"] {
        let mut command = bench.command(&["web"]);
        command.env("TZ", zone);
        Run::of(&mut command).code(0);
    }
    let backups = bench.backups("web");
    assert_eq!(backups.len(), 2, "{backups:?}");
    for (path, hours) in backups.iter().zip([-12, 14]) {
        let zone = chrono::FixedOffset::east_opt(hours * 3600).expect("a zone");
        let day = chrono::Utc::now().with_timezone(&zone).format("%Y-%m-%d");
        let name = format!("docker-compose.yml.bak-pre-stackmgr-migration-{day}");
        assert_eq!(*path, bench.dir("web").join(name));
    }
}

#[test]
fn c21_byte_for_byte_with_its_mode() {
    let bench = Bench::new();
    let text = "\u{feff}# ./x\r\nservices:\r\n  a:\r\n    image: x";
    let dir = bench.stack("web", text, None);
    let file = dir.join("docker-compose.yml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("a mode");
    bench.run(&["web"]).code(0).says(&["backup", "written"]);
    let backups = bench.backups("web");
    assert_eq!(fs::read(&backups[0]).expect("a backup"), text.as_bytes());
    let mode = fs::metadata(&backups[0])
        .expect("a backup")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o640);
    assert_eq!(fs::read(&file).expect("the file"), text.as_bytes());
    // Nothing else is left in the directory.
    assert_eq!(fs::read_dir(&dir).expect("read").count(), 2);
}

#[test]
fn c21_nothing_is_removed_where_it_cannot_be_written() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    // A name that is too long for the file system fails for root, too.
    let long = format!("{}.yml", "x".repeat(240));
    fs::write(dir.join(&long), PLAIN).expect("a file");
    bench
        .run(&["web", "--file", &long])
        .code(1)
        .says(&["failed to write the backup", "this run changed nothing"]);
    assert!(bench.nothing_was_changed());
    assert_eq!(bench.containers("web").len(), 1);
}

#[test]
fn c22_one_that_is_there_is_kept() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    let name = format!("docker-compose.yml.bak-pre-stackmgr-migration-{}", today());
    let path = dir.join(&name);
    fs::write(&path, "older").expect("a backup");
    bench
        .run(&["web"])
        .code(0)
        .says(&[&name, "already exists and is kept"]);
    assert_eq!(fs::read_to_string(&path).expect("the backup"), "older");
}

#[test]
fn c22_never_overwritten_by_two_runs_at_once() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let mut runs: Vec<_> = (0..4)
        .map(|_| {
            let mut command = bench.command(&["web"]);
            command
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("a run")
        })
        .collect();
    let succeeded = runs
        .iter_mut()
        .filter_map(|run| run.wait().ok())
        .filter(std::process::ExitStatus::success)
        .count();
    assert!(succeeded >= 1);
    let backups = bench.backups("web");
    assert_eq!(backups.len(), 1);
    assert_eq!(fs::read_to_string(&backups[0]).expect("it"), PLAIN);
    let left: Vec<_> = fs::read_dir(bench.dir("web")).expect("read").collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(Path::new(&backups[0]).is_file());
}
