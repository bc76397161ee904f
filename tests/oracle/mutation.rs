//! Stacks made harder: each gets one of these changes, in turn.

use std::{fs, path::Path};

/// An env file with what env files can hold.
const EXTRA: &str = "EXTRA_A=plain # comment\nEXTRA_B='$literal \"q\"'\nEXTRA_C=\"l1\nl2 \\$x\"\n\
    EXTRA_D=${EXTRA_A}-${HOME}-${TZ:-none}\nexport EXTRA_E=it's\nTZ=Extra/Zone\nEXTRA_F=\n";

/// The text of the stack in `dir`, changed by the rule that `at` chooses.
pub fn mutated(text: &str, dir: &Path, at: usize) -> String {
    let paths = |new: &str| {
        let quoted = text.replace("- \"./", &format!("- \"{new}/"));
        quoted.replace("- ./", &format!("- {new}/"))
    };
    match at % 10 {
        0 => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        1 => paths("${MUTANT:-.}"),
        2 => paths("${PWD}"),
        3 => paths("~"),
        4 => paths("../beside/."),
        5 => paths("${MUTANT:-${OTHER:-../x}}/./y/.."),
        6 => {
            add(dir, ".env", "MUTANT=./from/env/\n");
            paths("${MUTANT}")
        }
        7 => {
            add(dir, ".env", "IN_ENV='$x # y'\n");
            add(dir, "extra.env", EXTRA);
            with_env_files(text, "env_file: [.env, extra.env]")
        }
        8 => {
            add(dir, "extra.env", EXTRA);
            with_env_files(text, "env_file: extra.env")
        }
        _ => {
            add(dir, ".env", EXTRA);
            format!("\u{feff}{}", with_env_files(text, "env_file: ./.env"))
        }
    }
}

/// Gives every service with an image env files, unless the text has some.
fn with_env_files(text: &str, line: &str) -> String {
    if text.contains("env_file") {
        return text.to_owned();
    }
    let lines = text.split_inclusive('\n').map(|old| {
        let content = old.trim_start();
        let indent = &old[..old.len() - content.len()];
        if content.starts_with("image:") && old.ends_with('\n') {
            format!("{indent}{line}\n{old}")
        } else {
            old.to_owned()
        }
    });
    lines.collect()
}

fn add(dir: &Path, file: &str, lines: &str) {
    let path = dir.join(file);
    let mut text = fs::read_to_string(&path).unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    fs::write(path, text + lines).expect("write");
}
