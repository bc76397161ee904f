//! What `adopt` refuses: everything at once, with nothing touched, each with the way out.

use crate::bench::{Bench, Run, Texts};

mod dependencies;
mod needs;

/// Asserts that `adopt` is refused for these blockers only, as printed, and that nothing was touched.
#[track_caller]
fn refuses<'a>(bench: &Bench, args: &str, blockers: impl Texts<'a>) {
    let blockers = blockers.list();
    let hint = "fix the problems above, then run the command again";
    let run = bench.stops(&format!("adopt {args}"), hint);
    assert_eq!(listed(&run), blockers, "{run:#?}");
    assert!(!bench.state().join("snapshots").exists(), "no snapshot");
    let plan = bench.run(&format!("plan {args}"));
    for blocker in blockers {
        plan.wraps(blocker.split('\n').next().expect("a line"));
    }
    assert!(bench.nothing_was_changed());
}

fn adopt(bench: &Bench, args: &str) -> Run {
    bench.run(&format!("adopt {args}"))
}

/// The blockers of a run: each with its lines, without their indentation.
fn listed(run: &Run) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_list = false;
    for line in run.err.lines() {
        let words = line.trim_start();
        let number = words.trim_start_matches(|c: char| c.is_ascii_digit());
        let item = (number.len() < words.len()).then(|| number.strip_prefix(". "));
        if line.contains("error: cannot adopt ") {
            is_list = true;
        } else if words.starts_with("hint: fix the problems above")
            || words == "Nothing was changed."
        {
            is_list = false;
        } else if let Some(first) = item.flatten().filter(|_| is_list) {
            found.push(first.to_owned());
        } else if let Some(last) = found.last_mut().filter(|_| is_list) {
            last.push('\n');
            last.push_str(words.strip_prefix("- ").unwrap_or(words));
        }
    }
    found
}
