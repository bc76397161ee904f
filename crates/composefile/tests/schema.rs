//! The schema is what the measured Compose programs accept.
//!
//! The fixtures are the JSON schemas that are embedded in the programs, printed by `fixtures/flatten.py`. Of the releases of
//! Compose from 2.17.2 to 5.3.1, `fixtures/first-releases.txt` has the keys that are new in the `schema/compose-spec.json` of
//! the compose-go that their `go.mod` names.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use composefile::schema::{NEWEST, Place, ROOT, Release, Type};

/// Types by path, in the words of the fixtures.
type Places = BTreeMap<String, BTreeSet<String>>;

const OLD: &str = include_str!("fixtures/schema-2.26.1.txt");
/// Debian's build of 2.26.1 has the compose-go of 2.33.
const OLD_ACCEPTS: Release = (2, 33, 0);
const NEW: &str = include_str!("fixtures/schema-5.6.1.txt");

/// How the programs differ from their own JSON schemas: the types that they accept besides, or reject although the
/// schema has them. A path that starts with `.`, `*` or `[` stands for every path that ends with it.
const MEASURED: [(&str, &[Type], &[Type]); 4] = [
    // Dropped before the JSON schema is applied.
    ("include", &[Type::Null], &[]),
    (".extends.file", &[Type::Null], &[]),
    // Interpolation makes it a boolean.
    (".depends_on.*.required", &[Type::Text], &[]),
    // Both programs crash.
    (".pid", &[], &[Type::Null]),
];
/// Where a date becomes a string. `name` is read before the JSON schema is applied.
const DATES: &str = "name .environment.* .labels.* .annotations.* .sysctls.* .args.* .additional_contexts.* .ssh.* \
    [].options.* .command .entrypoint .mem_limit .mem_reservation .mem_swappiness .memswap_limit .shm_size .provenance .sbom \
    .ipam.options.* .limits.memory .reservations.memory .aux_addresses.* .driver_opts.* .logging.options.* [].rate \
    *.env_file[] .pre_start[].env_file[]";

#[test]
fn the_table_is_the_union_of_the_measured_schemas() {
    let (old, new) = (read(OLD), read(NEW));
    let mut expected = new.clone();
    for (path, types) in &old {
        expected
            .entry(path.clone())
            .or_default()
            .extend(types.iter().cloned());
    }
    for (path, types) in &mut expected {
        let dates = DATES
            .split(' ')
            .map(|end| (end, &[Type::Date][..], &[][..]));
        for (end, more, less) in dates.chain(MEASURED) {
            if path == end || (end.starts_with(['.', '*', '[']) && path.ends_with(end)) {
                types.extend(more.iter().copied().map(word));
                types.retain(|name| !less.iter().any(|&one| word(one) == *name));
            }
        }
    }
    // A key of its own in the table, one of any in the JSON schemas.
    let device = expected["volumes.*.driver_opts.*"].clone();
    expected.insert("volumes.*.driver_opts.device".into(), device);
    assert_same(&places(NEWEST), &expected);
}

#[test]
fn keys_are_marked_with_the_first_release_that_accepts_them() {
    let keys = |places: Places| -> BTreeSet<String> {
        let keys = places.into_keys();
        keys.filter(|path| !path.ends_with("driver_opts.device"))
            .collect()
    };
    assert_eq!(keys(places(OLD_ACCEPTS)), read(OLD).into_keys().collect());
    assert_eq!(keys(places(NEWEST)), read(NEW).into_keys().collect());
    let keys = |places: Places| -> BTreeSet<String> {
        let mut paths = keys(places);
        paths.retain(|path| !path.ends_with(['*', ']']));
        paths
    };
    let releases = include_str!("fixtures/first-releases.txt").lines();
    let mut before = keys(places((2, 17, 2)));
    for line in releases {
        let (release, expected) = line.split_once(' ').expect("a release and its keys");
        let numbers: Vec<u16> = release.split('.').map(|n| n.parse().unwrap()).collect();
        let now = keys(places((numbers[0], numbers[1], numbers[2])));
        // A hook has most keys of a container since 5.6.1.
        let of_hook = |path: &str| path.starts_with("services.*.pre_start[].");
        let new: BTreeSet<_> = now
            .difference(&before)
            .filter(|path| !of_hook(path))
            .collect();
        let expected: BTreeSet<_> = expected.split(' ').filter(|path| !of_hook(path)).collect();
        assert!(new.iter().eq(expected.iter()), "{release}: {new:?}");
        before = now;
    }
}

fn assert_same(found: &Places, expected: &Places) {
    let differences: Vec<_> = found
        .keys()
        .chain(expected.keys())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .filter(|path| found.get(*path) != expected.get(*path))
        .map(|path| {
            format!(
                "{path}: {:?}, expected {:?}",
                found.get(path),
                expected.get(path)
            )
        })
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn read(fixture: &str) -> Places {
    let lines = fixture.lines().map(|line| line.split(' '));
    lines
        .map(|mut words| {
            let path = words
                .next()
                .unwrap_or_default()
                .trim_matches('.')
                .to_owned();
            (path, words.map(str::to_owned).collect())
        })
        .collect()
}

/// The places of the table that a version accepts.
fn places(version: Release) -> Places {
    let mut found = Places::new();
    collect(&ROOT, String::new(), version, &mut found);
    found
}

fn collect(place: &'static Place, path: String, version: Release, found: &mut Places) {
    let mut types: BTreeSet<_> = place.types().iter().copied().map(word).collect();
    let below = |name: &str| format!("{path}.{name}").trim_start_matches('.').to_owned();
    for key in place.keys().filter(|key| key.since <= version) {
        collect(key.place, below(key.name), version, found);
    }
    match place.any_key() {
        Some(any) if any.is_unchecked() => {
            types.insert("open".into());
        }
        Some(any) => collect(any, below("*"), version, found),
        None => {}
    }
    if let Some(item) = place.item() {
        collect(item, format!("{path}[]"), version, found);
    }
    found.insert(path, types);
}

fn word(of: Type) -> String {
    match of {
        Type::Null => "null",
        Type::Text => "text",
        Type::Bool => "bool",
        Type::Number => "number",
        Type::Date => "date",
        Type::List => "list",
        Type::Mapping => "mapping",
    }
    .to_owned()
}

/// Neither program accepts a type or a key that the table does not have.
#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn compose_rejects_what_the_table_rejects() {
    let accepts = program("STACKLIFT_TEST_COMPOSE");
    let mut wrong = Vec::new();
    // Places where no sample is accepted, so that a rejection proves nothing: most allow certain words only.
    let mut unjudged = Vec::new();
    let mut tried = 0;
    let mut try_all = |path: &str, place: &'static Place| {
        let mut accepted = SAMPLES.iter().filter(|(of, _)| place.accepts(*of));
        if !accepted.any(|(_, value)| accepts(&file(path, value))) {
            unjudged.push(path.to_owned());
        }
        // Compose 5.6.1 accepts dates almost everywhere in a hook, and does not crash there without a `pid`.
        let is_hook = path.contains(".pre_start.");
        let is_odd =
            |of: Type| is_hook && (of == Type::Date || path.rsplit('.').next() == Some("pid"));
        let rejected = SAMPLES
            .iter()
            .filter(|(of, _)| !place.accepts(*of) && !is_odd(*of));
        for (_, value) in rejected {
            tried += 1;
            if accepts(&file(path, value)) {
                wrong.push(format!("{path}: {value} is accepted"));
            }
        }
        let is_closed = place.accepts(Type::Mapping) && place.key("unknown").is_none();
        if is_closed {
            tried += 1;
            if accepts(&file(path, "{unknown: x}")) {
                wrong.push(format!("{path}: any key is accepted"));
            }
        }
    };
    visit(&ROOT, "", &mut HashSet::new(), &mut try_all);
    assert!(wrong.is_empty(), "of {tried}:\n{}", wrong.join("\n"));
    assert!(tried > 1000, "only {tried} probes");
    eprintln!("not judged: {}", unjudged.join(" "));
}

/// An old Compose accepts no value of a key that is newer.
#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn newer_keys_are_rejected_with_each_compose() {
    for (variable, release) in [
        ("STACKLIFT_TEST_COMPOSE", OLD_ACCEPTS),
        ("STACKLIFT_TEST_COMPOSE_2_40", (2, 40, 3)),
    ] {
        let accepts = program(variable);
        let old = places(release);
        let is_old = |path: &str| old.contains_key(path);
        let all = places(NEWEST).into_keys();
        let newer = all.filter(|path| {
            let above = path.rsplit_once('.').map_or("", |(above, _)| above);
            !is_old(path) && is_old(above)
        });
        let newer: Vec<String> = newer.collect();
        assert!(!newer.is_empty());
        for path in newer {
            let steps = format!(".{}", path.replace("[]", ".-"));
            for (_, value) in SAMPLES {
                assert!(
                    !accepts(&file(&steps, value)),
                    "{release:?} {path}: {value}"
                );
            }
        }
    }
}

/// Whether the Compose program in an environment variable accepts a file.
fn program(variable: &str) -> impl Fn(&str) -> bool {
    let program =
        std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names a compose program"));
    let folder = tempfile::tempdir().expect("a folder");
    move |file| {
        let path = folder.path().join("compose.yaml");
        std::fs::write(&path, file).expect("written");
        let mut command = std::process::Command::new(&program);
        command.arg("--file").arg(&path).args(["config", "--quiet"]);
        command.output().expect("compose runs").status.success()
    }
}

/// A value of each type.
const SAMPLES: [(Type, &str); 7] = [
    (Type::Null, "null"),
    (Type::Text, "x"),
    (Type::Bool, "true"),
    (Type::Number, "1"),
    (Type::Date, "2024-01-31"),
    (Type::List, "[]"),
    (Type::Mapping, "{}"),
];

/// Calls `probe` for every place at or below one, but once for each place and name.
fn visit(
    place: &'static Place,
    path: &str,
    seen: &mut HashSet<(String, &'static Place)>,
    probe: &mut dyn FnMut(&str, &'static Place),
) {
    let name = path.rsplit('.').next().unwrap_or_default();
    if place.is_unchecked() || !seen.insert((name.to_owned(), place)) {
        return;
    }
    if !path.is_empty() {
        probe(path, place);
    }
    let mut keys: Vec<_> = place.keys().collect();
    // Services before the jobs and hooks that share most of their keys.
    keys.sort_by_key(|key| key.since);
    for key in keys {
        visit(key.place, &format!("{path}.{}", key.name), seen, probe);
    }
    if let Some(value) = place.any_key() {
        visit(value, &format!("{path}.*"), seen, probe);
    }
    if let Some(item) = place.item() {
        visit(item, &format!("{path}.-"), seen, probe);
    }
}

/// A file that is valid but for the value at a path.
fn file(path: &str, value: &str) -> String {
    let mut text = value.to_owned();
    let mut steps: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    while let Some(step) = steps.pop() {
        text = match step {
            "-" => format!("[{text}]"),
            "*" => format!("{{s: {text}}}"),
            key => {
                let others = match steps[..] {
                    [.., "services" | "jobs", "*"] => "image: x",
                    [.., "volumes", "-"] => "type: volume, source: v, target: /t",
                    [.., "ports", "-"] => "target: 80",
                    [.., "watch", "-"] => "path: /p, action: rebuild, target: /t",
                    _ => "",
                };
                let mut entries = vec![format!("{key}: {text}")];
                let others = others.split(", ").filter(|other| !other.is_empty());
                let others = others.filter(|other| !other.starts_with(&format!("{key}:")));
                entries.extend(others.map(str::to_owned));
                format!("{{{}}}", entries.join(", "))
            }
        };
    }
    text
}
