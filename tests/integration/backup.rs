//! C20–C22: the backup.

use crate::bench::{Bench, PLAIN, Run};

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
