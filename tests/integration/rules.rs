//! Every rule of `tests/rules.txt` has a test that is named after it.

use std::{fs, path::Path};

#[test]
fn every_rule_has_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut code = String::new();
    for entry in fs::read_dir(tests.join("integration")).expect("the folder of tests") {
        code += &fs::read_to_string(entry.expect("an entry").path()).expect("a file of tests");
    }
    let list = fs::read_to_string(tests.join("rules.txt")).expect("the list of rules");
    let rules: Vec<&str> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(rules.len(), 52, "C01–C59 and B01–B19");
    let missing: Vec<&&str> = rules
        .iter()
        .filter(|rule| !code.contains(&format!("#[test]\nfn {}_", rule.to_lowercase())))
        .collect();
    assert!(missing.is_empty(), "rules without a test: {missing:?}");
}
