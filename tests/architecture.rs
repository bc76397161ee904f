//! The arrows of ARCHITECTURE.md, read from the `use` declarations and paths of the sources, also inside macros.
//!
//! Cargo enforces the arrows between the crates. Inside a crate, these tests do: the arrows of the document are the imports, they
//! point down, and no files form a circle. Test modules are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The other crates of the workspace.
const CRATES: [&str; 2] = ["composefile", "rehearsal"];

/// One source file: its module path below the crate's root, and the absolute paths that it uses.
struct Source {
    file: PathBuf,
    module: Vec<String>,
    uses: BTreeSet<Vec<String>>,
}

/// The arrows of the document are those of the sources, and each points to a module that is listed below.
#[test]
fn the_arrows_of_the_document_are_the_imports_and_point_down() {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let sources = sources("src");
    let names: BTreeSet<&str> = sources.iter().map(Source::name).collect();
    for source in &sources {
        let own = imports.entry(source.name().to_owned()).or_default();
        let targets = source
            .uses
            .iter()
            .filter_map(|path| match path[0].as_str() {
                "crate" => path.get(1).filter(|to| names.contains(to.as_str())),
                _ => Some(&path[0]).filter(|of| CRATES.contains(&of.as_str())),
            });
        own.extend(targets.filter(|to| *to != source.name()).cloned());
    }
    let line = |name: &str| {
        let targets: Vec<&str> = imports[name].iter().map(String::as_str).collect();
        format!("{name} → {}", targets.join(", "))
    };
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let document = fs::read_to_string(document).expect("ARCHITECTURE.md");
    let lines: Vec<&str> = document.lines().filter(|one| one.contains(" → ")).collect();
    let order: Vec<&str> = lines
        .iter()
        .map(|line| line.split(' ').next().unwrap_or_default())
        .collect();
    let at = |name: &str| order.iter().position(|one| *one == name);
    for (name, targets) in &imports {
        if targets.is_empty() {
            assert_eq!(at(name), None, "{name} imports nothing");
            continue;
        }
        let place = at(name).unwrap_or_else(|| panic!("missing: {}", line(name)));
        assert_eq!(lines[place], line(name));
        for target in targets {
            let below = at(target).is_none_or(|below| below > place);
            assert!(below, "{name} uses {target}, which is above it");
        }
    }
}

#[test]
fn no_files_form_a_circle() {
    for root in ["src", "crates/composefile/src", "crates/rehearsal/src"] {
        let sources = sources(root);
        let modules: BTreeMap<&[String], usize> = sources
            .iter()
            .enumerate()
            .map(|(index, source)| (source.module.as_slice(), index))
            .collect();
        let arrows: Vec<BTreeSet<usize>> = sources
            .iter()
            .map(|source| {
                let targets = source.uses.iter().filter(|path| path[0] == "crate");
                targets
                    .filter_map(|path| nearest(&modules, &path[1..]))
                    .filter(|&target| !is_family(&sources[target].module, &source.module))
                    .collect()
            })
            .collect();
        let circles: Vec<String> = (0..sources.len())
            .filter(|&start| reaches(&arrows, start, start))
            .map(|index| sources[index].file.display().to_string())
            .collect();
        assert!(circles.is_empty(), "in a circle: {}", circles.join(", "));
    }
}

/// What plans has no handle that can write: these files name none of the types that can.
#[test]
fn plans_cannot_write() {
    const PLANNING: [&str; 7] = [
        "observe",
        "adopt/prepare",
        "migrate/prepare",
        "cli/plan",
        "cli/doctor",
        "inventory",
        "compose",
    ];
    const WRITERS: [&str; 8] = [
        "Portainer",
        "Engine",
        "Run",
        "Peers",
        "Setup",
        "Lock",
        "Store",
        "Procedure",
    ];
    let sources = sources("src");
    let planning = |source: &&Source| {
        let path = source.module.join("/");
        let is_in = |part: &&str| path == **part || path.starts_with(&format!("{part}/"));
        PLANNING.iter().any(is_in)
    };
    let checked: Vec<&Source> = sources.iter().filter(planning).collect();
    assert!(checked.len() >= 9, "only {} sources", checked.len());
    for source in checked {
        for path in &source.uses {
            let [.., of, name] = path.as_slice() else {
                continue;
            };
            // The variant of an enum is no type.
            let is_variant = of.starts_with(char::is_uppercase);
            let is_writer = WRITERS.contains(&name.as_str()) && !is_variant;
            assert!(!is_writer, "{} uses {path:?}", source.file.display());
        }
    }
}

/// Only `disk` opens files of stacks. These modules open others: those of this program and of the engine, and those that the
/// caller names.
#[test]
fn b29_only_one_module_opens_files_of_stacks() {
    const OTHERS: [&str; 9] = [
        "cli/rehearse/stage",
        "compose/folder",
        "compose/plugin",
        "engine/choice",
        "portainer/owner",
        "portainer/tls",
        "process",
        "snapshot/folder",
        "snapshot/lock",
    ];
    const OPEN: [&str; 8] = [
        "fs::read",
        "fs::read_to_string",
        "fs::copy",
        "fs::open",
        "fs::openat",
        "File::open",
        "File::options",
        "OpenOptions::new",
    ];
    only_these_use(&OPEN, &[&OTHERS[..], &DISK].concat());
}

/// Only `disk` writes into directories of users. These modules write into directories of the caller and temporary ones.
#[test]
fn b30_only_one_module_creates_files_of_users() {
    const OTHERS: [&str; 4] = [
        "cli/rehearse/stage",
        "compose/folder",
        "snapshot/folder",
        "snapshot/lock",
    ];
    const CREATE: [&str; 17] = [
        "DirBuilder::new",
        "File::create",
        "File::create_new",
        "File::options",
        "OpenOptions::new",
        "fs::copy",
        "fs::create_dir",
        "fs::create_dir_all",
        "fs::hard_link",
        "fs::linkat",
        "fs::mkdirat",
        "fs::rename",
        "fs::renameat",
        "fs::symlink",
        "fs::symlinkat",
        "fs::write",
        "tempfile::Builder",
    ];
    only_these_use(&CREATE, &[&OTHERS[..], &DISK].concat());
}

/// Only `process` runs programs, and a shell ends a rehearsal. `engine` has a `Command` of its own.
#[test]
fn b33_only_one_module_runs_programs() {
    only_these_use(&["Command::new"], &["process", "cli/rehearse", "engine"]);
}

const DISK: [&str; 4] = ["disk", "disk/memory", "disk/walk", "disk/write"];

/// Fails unless these modules, and no others, use one of these functions.
#[track_caller]
fn only_these_use(functions: &[&str], modules: &[&str]) {
    let mut users = BTreeSet::new();
    for source in sources("src") {
        let used = source.uses.iter().find(|path| match path.as_slice() {
            [.., of, name] => functions.contains(&format!("{of}::{name}").as_str()),
            _ => false,
        });
        let module = source.module.join("/");
        if let Some(used) = used {
            assert!(modules.contains(&module.as_str()), "{module} uses {used:?}");
            users.insert(module);
        }
    }
    assert!(users.len() * 2 > modules.len(), "only {users:?}");
}

/// The file of the longest module path that `path` starts with.
fn nearest(modules: &BTreeMap<&[String], usize>, path: &[String]) -> Option<usize> {
    (1..=path.len())
        .rev()
        .find_map(|length| modules.get(&path[..length]).copied())
}

/// Whether one module contains the other: a parent may use its children, and a child its parent's types.
fn is_family(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn reaches(arrows: &[BTreeSet<usize>], start: usize, goal: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut ahead: Vec<usize> = arrows[start].iter().copied().collect();
    while let Some(at) = ahead.pop() {
        if at == goal {
            return true;
        }
        if seen.insert(at) {
            ahead.extend(&arrows[at]);
        }
    }
    false
}

fn sources(root: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
        .into_iter()
        .filter_map(|file| source(&root, file))
        .collect()
}

/// Reads one file; `None` for a file of a test module.
fn source(root: &Path, file: PathBuf) -> Option<Source> {
    let relative = file.strip_prefix(root).expect("below the root");
    let mut module: Vec<String> = relative
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if module.iter().any(|name| name == "tests" || name == "real") {
        return None;
    }
    if module == ["lib"] || module == ["main"] {
        module.clear();
    }
    let text = fs::read_to_string(&file).expect("a source");
    let mut named = Vec::new();
    paths(text.parse().expect("Rust"), &[], &mut named);
    named.retain(|path| path.len() > 1);
    Some(Source {
        uses: named.iter().map(|path| absolute(path, &module)).collect(),
        file,
        module,
    })
}

impl Source {
    /// The module of `src/` that it belongs to.
    fn name(&self) -> &str {
        self.module.first().map_or("lib", String::as_str)
    }
}

/// The paths in the tokens, each behind `prefix`: those of `use` declarations and of all other code, also of macros. Inline
/// modules are left out: they are tests.
fn paths(tokens: TokenStream, prefix: &[String], found: &mut Vec<Vec<String>>) {
    let mut path = Vec::new();
    let mut colons = 0;
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(one) if one.as_char() == ':' => colons += 1,
            TokenTree::Ident(one) if one == "mod" => drop(tokens.nth(1)),
            TokenTree::Ident(one) => {
                if colons != 2 || path.is_empty() {
                    found.push(std::mem::replace(&mut path, prefix.to_vec()));
                }
                path.push(one.to_string());
                colons = 0;
            }
            TokenTree::Group(group) => {
                let is_use = colons == 2 && group.delimiter() == Delimiter::Brace;
                let before = std::mem::take(&mut path);
                paths(group.stream(), if is_use { &before } else { &[] }, found);
                found.push(before);
                colons = 0;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {
                found.push(std::mem::take(&mut path));
                colons = 0;
            }
        }
    }
    found.push(path);
}

/// A path in a module, with `self` and `super` resolved.
fn absolute(path: &[String], module: &[String]) -> Vec<String> {
    let mut absolute = match path[0].as_str() {
        "crate" => Vec::new(),
        "self" | "super" => module.to_vec(),
        _ => return path.to_vec(),
    };
    for segment in path {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => drop(absolute.pop()),
            _ => absolute.push(segment.clone()),
        }
    }
    absolute.insert(0, "crate".to_owned());
    absolute
}

/// With `panic = "abort"`, a bug in one stack would end a list of all.
#[test]
fn b43_a_panic_unwinds_in_a_release() {
    let manifest = include_str!("../Cargo.toml");
    assert!(!manifest.lines().any(|line| line.starts_with("panic")));
}
