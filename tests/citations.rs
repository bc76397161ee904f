//! Every rule and fact that the sources cite, such as C32 or M06, is defined in `docs/`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Folders whose files cite rules and facts.
const CITING: [&str; 6] = ["src", "crates", "tests", "fuzz", "bench", "docs"];
/// Folders that hold build products or arbitrary input.
const SKIPPED: [&str; 5] = ["target", "corpus", "artifacts", "seeds", "fixtures"];
/// Where they are defined: one heading each, `### C32`.
const DEFINING: [&str; 2] = ["docs/contract.md", "docs/portainer.md"];

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
fn a_citation_is_a_word_of_its_own() {
    let text = "C32, (M06) N01–N12 b02_x AB12 B2 C123 xC11 `B05`";
    let found: Vec<&str> = citations(text).collect();
    assert_eq!(found, ["C32", "M06", "N01", "N12", "B05"]);
}
