//! The schema is what the measured Compose programs accept.
//!
//! The fixtures are the JSON schemas that are embedded in the programs, printed by `fixtures/flatten.py`.

use std::collections::{BTreeMap, BTreeSet};

use composefile::schema::{Place, ROOT, Since, Type};

/// Types by path, in the words of the fixtures.
type Places = BTreeMap<String, BTreeSet<String>>;

const OLD: &str = include_str!("fixtures/schema-2.26.1.txt");
const NEW: &str = include_str!("fixtures/schema-5.6.1.txt");

/// How the programs differ from their own JSON schemas: the types that they accept besides, or reject although the
/// schema has them. A path that starts with `.` or `[` stands for every path that ends with it.
const MEASURED: [(&str, &[Type], &[Type]); 13] = [
    // Read before the JSON schema is applied.
    ("name", &[Type::Date], &[]),
    // Dropped before the JSON schema is applied.
    ("include", &[Type::Null], &[]),
    (".extends.file", &[Type::Null], &[]),
    // Dates become strings.
    (".environment.*", &[Type::Date], &[]),
    (".labels.*", &[Type::Date], &[]),
    (".annotations.*", &[Type::Date], &[]),
    (".sysctls.*", &[Type::Date], &[]),
    (".args.*", &[Type::Date], &[]),
    (".additional_contexts.*", &[Type::Date], &[]),
    (".ssh.*", &[Type::Date], &[]),
    ("[].options.*", &[Type::Date], &[]),
    // Interpolation makes it a boolean.
    (".depends_on.*.required", &[Type::Text], &[]),
    // Both programs crash.
    (".pid", &[], &[Type::Null]),
];

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
        for (end, more, less) in MEASURED {
            if path == end || (end.starts_with(['.', '[']) && path.ends_with(end)) {
                types.extend(more.iter().copied().map(word));
                types.retain(|name| !less.iter().any(|&one| word(one) == *name));
            }
        }
    }
    // A key of its own in the table, one of any in the JSON schemas.
    let device = expected["volumes.*.driver_opts.*"].clone();
    expected.insert("volumes.*.driver_opts.device".into(), device);
    assert_same(&places(Since::V5_6), &expected);
}

#[test]
fn keys_are_marked_with_the_oldest_version_that_accepts_them() {
    let keys = |places: Places| {
        places
            .into_keys()
            .filter(|path| !path.ends_with("driver_opts.device"))
    };
    let old: BTreeSet<_> = keys(places(Since::V2_26)).collect();
    assert_eq!(old, read(OLD).into_keys().collect());
    let new: BTreeSet<_> = keys(places(Since::V5_6)).collect();
    assert_eq!(new, read(NEW).into_keys().collect());
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
fn places(version: Since) -> Places {
    let mut found = Places::new();
    collect(&ROOT, String::new(), version, &mut found);
    found
}

fn collect(place: &'static Place, path: String, version: Since, found: &mut Places) {
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
