//! C20–C22: the backup.

use std::fs;

use crate::bench::{Bench, PLAIN, Run, mode, set_mode};

#[test]
fn c20_the_path_is_of_the_local_date() {
    let bench = Bench::web(PLAIN);
    // At every moment one of these zones has another date than the other.
    for zone in ["<+14>-14", "<-12>+12"] {
        Run::of(bench.command("web").env("TZ", zone)).code(0);
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
    set_mode(&file, 0o640);
    bench.succeeds("web", &["backup", "written"]);
    let backups = bench.backups("web");
    assert_eq!(fs::read(&backups[0]).expect("a backup"), text.as_bytes());
    assert_eq!(mode(&backups[0]), 0o640);
    assert_eq!(fs::read(&file).expect("the file"), text.as_bytes());
    // Nothing else is left in the directory.
    assert_eq!(fs::read_dir(&dir).expect("read").count(), 2);
}

#[test]
fn c22_one_that_is_there_is_kept() {
    let bench = Bench::web(PLAIN);
    let today = chrono::Utc::now().format("%Y-%m-%d");
    let name = format!("docker-compose.yml.bak-pre-stackmgr-migration-{today}");
    let path = bench.write("web", &name, "older");
    bench.succeeds("web", &[&name, "already exists and is kept"]);
    assert_eq!(fs::read_to_string(&path).expect("the backup"), "older");
}
