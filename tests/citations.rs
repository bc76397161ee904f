//! Every rule and fact that the sources cite, such as C32 or M06, is defined in `docs/`, and every link leads somewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Folders whose files cite rules and facts.
const CITING: [&str; 6] = ["src", "crates", "tests", "fuzz", "bench", "docs"];
/// Folders that hold build products or arbitrary input.
const SKIPPED: [&str; 5] = ["target", "corpus", "artifacts", "seeds", "fixtures"];
/// The most words of a document for users, as `wc -w` counts them.
const MOST_WORDS: usize = 900;
/// Folders whose files name documents by their path, `docs/…`.
const NAMING: [&str; 5] = ["src", "crates", "scripts", "packaging", "deploy"];
/// Where they are defined: one heading each, `### C32`.
const DEFINING: [&str; 2] = ["docs/reference/contract.md", "docs/reference/portainer.md"];

#[test]
fn every_citation_has_a_definition() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cited: BTreeMap<String, PathBuf> = BTreeMap::new();
    for file in CITING.iter().flat_map(|folder| files(&root.join(folder))) {
        // A file that is not UTF-8 cites nothing.
        let text = fs::read_to_string(&file).unwrap_or_default();
        for citation in citations(&text) {
            let first = cited.entry(citation.to_owned());
            first.or_insert_with(|| file.clone());
        }
    }
    let sources = root.join("src");
    assert!(
        cited.values().any(|file| file.starts_with(&sources)),
        "no citations in src"
    );
    let defined = definitions(root);
    let undefined: Vec<_> = cited
        .iter()
        .filter(|(citation, _)| !defined.contains(*citation))
        .collect();
    assert!(
        undefined.is_empty(),
        "cited but not defined in {DEFINING:?}: {undefined:?}"
    );
}

fn definitions(root: &Path) -> BTreeSet<String> {
    let mut defined = BTreeSet::new();
    for file in DEFINING {
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        for heading in text.lines().filter_map(|line| line.strip_prefix("### ")) {
            if citations(heading).next() == Some(heading) {
                assert!(
                    defined.insert(heading.to_owned()),
                    "{heading} is defined twice"
                );
            }
        }
    }
    defined
}

/// Words of one of the letters B, C, M and N and two digits.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| {
            let mut chars = word.chars();
            word.len() == 3
                && chars.next().is_some_and(|c| "BCMN".contains(c))
                && chars.all(|c| c.is_ascii_digit())
        })
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a directory entry").path();
        let name = path.file_name().and_then(|name| name.to_str());
        if !path.is_dir() {
            found.push(path);
        } else if !name.is_some_and(|name| SKIPPED.contains(&name)) {
            found.extend(files(&path));
        }
    }
    found
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for document in documents(root) {
        let text = fs::read_to_string(&document).expect("a document");
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => document.clone(),
                _ => document.with_file_name(path),
            };
            let leads_somewhere = match heading {
                "" => target.exists(),
                _ => fs::read_to_string(&target).is_ok_and(|text| {
                    prose(&text).any(|line| line.starts_with('#') && anchor(line) == heading)
                }),
            };
            if !leads_somewhere {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links: {broken:#?}");
}

#[test]
fn every_test_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut tests = BTreeSet::new();
    for file in ["src", "tests"]
        .iter()
        .flat_map(|folder| files(&root.join(folder)))
    {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let functions = text.split("fn ").skip(1);
        let names = functions.filter_map(|rest| rest.split(|c| !is_of_name(c)).next());
        tests.extend(names.map(str::to_owned));
        let name = file.file_stem().and_then(|name| name.to_str());
        tests.extend(name.map(str::to_owned));
    }
    let mut missing = BTreeSet::new();
    for document in documents(root) {
        let text = fs::read_to_string(&document).expect("a document");
        let words = text.split(|c| !is_of_name(c));
        let named = words.filter(|word| !word.ends_with('_')).filter(|word| {
            let rule = word.split_once('_').map(|(rule, _)| rule.to_uppercase());
            rule.is_some_and(|rule| citations(&rule).next() == Some(&rule))
        });
        let absent = named.filter(|name| !tests.contains(*name));
        missing.extend(absent.map(|name| format!("{}: {name}", document.display())));
    }
    assert!(missing.is_empty(), "not there: {missing:#?}");
}

#[test]
fn every_document_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let naming = NAMING.iter().flat_map(|folder| files(&root.join(folder)));
    let mut missing = BTreeSet::new();
    for file in naming.chain(documents(root)) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-./".contains(c));
        let named = words.filter(|word| word.starts_with("docs/"));
        let absent = named.filter(|path| !root.join(path.trim_end_matches('.')).exists());
        missing.extend(absent.map(|path| format!("{}: {path}", file.display())));
    }
    assert!(missing.is_empty(), "not there: {missing:#?}");
}

#[test]
fn documents_for_users_are_short_and_cite_no_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (docs, readme) = (root.join("docs"), root.join("README.md"));
    for document in documents(root) {
        if document.parent() != Some(docs.as_path()) && document != readme {
            continue;
        }
        let name = document.display();
        let text = fs::read_to_string(&document).expect("a document");
        let words = text.split_whitespace().count();
        assert!(words <= MOST_WORDS, "{name} has {words} words");
        let cited = citations(&text).next();
        assert_eq!(cited, None, "{name} cites a rule or a fact");
    }
}

#[test]
fn a_release_with_the_placeholder_of_the_repository_is_refused() {
    // In two parts: this is no document.
    let placeholder = ["OWNER", "stacklift"].join("/");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let copy = tempfile::tempdir().expect("a directory");
    let copied = |file: &Path| {
        copy.path()
            .join(file.strip_prefix(root).expect("a file of it"))
    };
    let named = ["Cargo.toml", "deploy/ansible/galaxy.yml"].map(|name| root.join(name));
    for file in documents(root).into_iter().chain(named) {
        let text = fs::read_to_string(&file).expect("a text");
        let text = text.replace(&placeholder, "example/stacklift");
        let text = text.replace("maintainers@stacklift.example", "maintainers@example.org");
        let to = copied(&file);
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::write(to, text).expect("a copy");
    }
    let script = root.join("scripts/check-release");
    fs::create_dir(copy.path().join("scripts")).expect("a folder");
    fs::copy(&script, copied(&script)).expect("a copy");
    let check = || Command::new(copied(&script)).output().expect("the check");
    let passed = check();
    let errors = String::from_utf8_lossy(&passed.stderr);
    assert!(passed.status.success(), "{errors}");
    assert!(!passed.stdout.is_empty(), "it prints the notes");
    for name in ["README.md", "docs/installing.md", "Cargo.toml"] {
        let path = copy.path().join(name);
        let text = fs::read_to_string(&path).expect("a copy");
        fs::write(&path, format!("{text}\n# {placeholder}\n")).expect("a copy");
        let refused = check();
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{errors}");
        assert!(errors.contains(&format!("{name}:")), "{errors}");
        fs::write(&path, text).expect("a copy");
    }
}

/// The documents of the repository.
fn documents(root: &Path) -> Vec<PathBuf> {
    let of_root = fs::read_dir(root).expect("the repository");
    let of_root = of_root.map(|entry| entry.expect("a directory entry").path());
    let of_folders = ["docs", "deploy"]
        .iter()
        .flat_map(|folder| files(&root.join(folder)));
    let all = of_root.filter(|path| path.is_file()).chain(of_folders);
    all.filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

/// The targets of the links in Markdown.
fn links(text: &str) -> impl Iterator<Item = &str> {
    prose(text).flat_map(|line| {
        let rest = line.split("](").skip(1);
        rest.filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
    })
}

/// The lines of Markdown that are outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("```").step_by(2);
    blocks.flat_map(str::lines)
}

/// The name by which a link refers to a heading.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn a_citation_is_a_word_of_its_own() {
    let text = "C32, (M06) N01–N12 b02_x AB12 B2 C123 xC11 `B05`";
    let found: Vec<&str> = citations(text).collect();
    assert_eq!(found, ["C32", "M06", "N01", "N12", "B05"]);
}
