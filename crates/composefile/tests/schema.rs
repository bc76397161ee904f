//! The keys of the schema are those that the measured Compose programs accept.
//!
//! The fixtures are the JSON schemas that are embedded in the programs, printed by `fixtures/flatten.py`. Of the releases of
//! Compose from 2.17.2 to 5.3.1, `fixtures/first-releases.txt` has the keys that are new in the `schema/compose-spec.json` of
//! the compose-go that their `go.mod` names.

use std::collections::BTreeSet;

use composefile::schema::{NEWEST, ROOT, Release, SchemaNode};

/// The paths of keys.
type Keys = BTreeSet<String>;

const OLD: &str = include_str!("fixtures/schema-2.26.1.txt");
/// Debian's build of 2.26.1 has the compose-go of 2.33.
const OLD_ACCEPTS: Release = (2, 33, 0);
const NEW: &str = include_str!("fixtures/schema-5.7.1.txt");

#[test]
fn the_table_is_the_union_of_the_measured_schemas() {
    let both = read(OLD).union(&read(NEW)).cloned().collect();
    assert_same(&keys(NEWEST), &both);
    assert!(both.len() > 250, "only {} keys", both.len());
}

#[test]
fn keys_are_marked_with_the_first_release_that_accepts_them() {
    assert_same(&keys(OLD_ACCEPTS), &read(OLD));
    assert_same(&keys(NEWEST), &read(NEW));
    let releases = include_str!("fixtures/first-releases.txt").lines();
    let mut before = keys((2, 17, 2));
    for line in releases {
        let (release, expected) = line.split_once(' ').expect("a release and its keys");
        let numbers: Vec<u16> = release.split('.').map(|n| n.parse().unwrap()).collect();
        let now = keys((numbers[0], numbers[1], numbers[2]));
        // A hook has most keys of a container since 5.6.1.
        let of_hook = |path: &str| path.starts_with("services.*.pre_start[].");
        let new: BTreeSet<_> = now
            .difference(&before)
            .filter(|path| !of_hook(path))
            .collect();
        let expected = expected.split(' ').filter(|path| is_compared(path));
        let expected: BTreeSet<_> = expected.filter(|path| !of_hook(path)).collect();
        assert!(new.iter().eq(expected.iter()), "{release}: {new:?}");
        before = now;
    }
}

fn assert_same(found: &Keys, expected: &Keys) {
    let differences: Vec<_> = found.symmetric_difference(expected).collect();
    assert!(differences.is_empty(), "{differences:?}");
}

fn read(fixture: &str) -> Keys {
    let paths = fixture.lines().filter_map(|line| line.split(' ').next());
    let paths = paths.map(|path| path.trim_matches('.').to_owned());
    paths.filter(|path| is_compared(path)).collect()
}

/// Whether a path names a key of a place whose keys the table has.
fn is_compared(path: &str) -> bool {
    let names_key = !path.is_empty() && !path.ends_with(['*', ']', '.']);
    let mut place = &ROOT;
    let steps = path.replace("[]", ".[]");
    let (above, last) = steps.rsplit_once('.').unwrap_or(("", &steps));
    for step in above.split('.').filter(|step| !step.is_empty()) {
        let below = match step {
            "[]" => place.item(),
            name => place.key(name),
        };
        match below {
            Some(below) => place = below,
            None => return false,
        }
    }
    let is_open = place.since("unknown").is_some() && place.key(last).is_none();
    names_key && !is_open && last != "device"
}

/// The keys of the table that a version accepts.
fn keys(version: Release) -> Keys {
    let mut found = Keys::new();
    collect(&ROOT, String::new(), version, &mut found);
    found.retain(|path| is_compared(path));
    found
}

fn collect(place: &'static SchemaNode, path: String, version: Release, found: &mut Keys) {
    let below = |name: &str| format!("{path}.{name}").trim_start_matches('.').to_owned();
    for (name, since, key) in place.keys() {
        if since <= version {
            collect(key, below(name), version, found);
        }
    }
    if let Some(any) = place.key("*") {
        collect(any, below("*"), version, found);
    }
    if let Some(item) = place.item() {
        collect(item, format!("{path}[]"), version, found);
    }
    found.insert(path);
}
