//! Every rule of `tests/rules.txt` has a test that is named after it.

use std::{fs, path::Path};

/// The text of every test in Rust below a folder, and the name of every transcript as if it was one.
fn code(folder: &Path) -> String {
    let entries = fs::read_dir(folder).expect("a folder of tests");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .map(|path| {
            if path.is_dir() {
                code(&path)
            } else if path.extension().is_some_and(|end| end == "session") {
                let name = path.file_stem().expect("a name").display();
                format!("#[test]\nfn {name}()")
            } else {
                fs::read_to_string(path).expect("a file of tests")
            }
        })
        .collect()
}

#[test]
fn every_rule_has_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folders = ["integration", "transcripts"].map(|name| tests.join(name));
    let code: String = folders.iter().map(|folder| code(folder)).collect();
    let list = fs::read_to_string(tests.join("rules.txt")).expect("the list of rules");
    let rules: Vec<&str> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(rules.len() >= 64, "C01–C59, B01–B21, B24, B25 and B27–B34");
    let missing: Vec<&&str> = rules
        .iter()
        .filter(|rule| !code.contains(&format!("#[test]\nfn {}_", rule.to_lowercase())))
        .collect();
    assert!(missing.is_empty(), "rules without a test: {missing:?}");
}
