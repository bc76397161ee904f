//! Sessions on a terminal, each in a file: a stack, what runs, commands, and all that they print and do.
//!
//! `tests/transcripts/README.md` describes the files. `STACKLIFT_BLESS=1` writes what differs into them.

#[path = "transcripts/arrange.rs"]
mod arrange;
#[path = "integration/bench.rs"]
#[allow(dead_code, reason = "the tests in Rust use more of it")]
mod bench;
#[path = "transcripts/format.rs"]
mod format;
#[path = "transcripts/listener.rs"]
mod listener;
#[path = "transcripts/query.rs"]
mod query;
#[path = "integration/schema.rs"]
#[allow(dead_code, reason = "the tests in Rust use more of it")]
mod schema;
#[path = "integration/screen.rs"]
#[allow(dead_code, reason = "the tests in Rust use more of it")]
mod screen;
#[path = "transcripts/session.rs"]
mod session;

use std::{
    env, fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::ExitCode,
};

use libtest_mimic::{Arguments, Failed, Trial};
use snapbox::{Assert, Data, assert::Action};

/// The files end so.
const END: &str = "session";

/// What is in the names of those that need root or a real Compose program.
const IGNORED: [&str; 2] = ["as_root_", "real_compose_"];

/// How many sessions run at the same time.
const THREADS: usize = 12;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut paths = Vec::new();
    find(&folder, &mut paths);
    // Those that wait for deadlines begin, so that no thread waits for them at the end.
    paths.sort_by_key(|path| !path.to_string_lossy().contains("/limits/"));
    let trials = paths.into_iter().map(|path| trial(&folder, path)).collect();
    let mut arguments = Arguments::from_args();
    // Most of the time, a session waits.
    arguments.test_threads.get_or_insert(THREADS);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Finds the transcripts below a folder.
fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of transcripts") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|end| end == END) {
            found.push(path);
        }
    }
}

/// The test of a transcript, which is named after its file: `adopt::b18_a_reported_success_is_read_back`.
fn trial(folder: &Path, path: PathBuf) -> Trial {
    let name = path.strip_prefix(folder).expect("below the folder");
    let name = name.with_extension("").display().to_string();
    let is_ignored = IGNORED.iter().any(|part| name.contains(part));
    Trial::test(name.replace('/', "::"), move || compare(&path)).with_ignored_flag(is_ignored)
}

/// Runs a transcript, and compares what happened with what it says.
fn compare(path: &Path) -> Result<(), Failed> {
    let expected = fs::read_to_string(path)?;
    let ran = panic::catch_unwind(AssertUnwindSafe(|| session::run(&expected)));
    let actual = ran.map_err(|_| "the session ended, as said above")??;
    let is_blessed = env::var_os("STACKLIFT_BLESS").is_some();
    let action = if is_blessed {
        Action::Overwrite
    } else {
        Action::Verify
    };
    let assert = Assert::new().action(action);
    let expected = Data::read_from(path, None).raw();
    let compared = assert.try_eq(None, Data::text(actual).raw(), expected);
    compared.map_err(|error| format!("{error}\nto write this: STACKLIFT_BLESS=1").into())
}
