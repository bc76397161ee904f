//! The man pages.

use std::{collections::BTreeMap, fs, process::Command};

/// The names and texts of the pages that the program writes.
fn pages() -> (tempfile::TempDir, BTreeMap<String, String>) {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("share/man1");
    let output = Command::new(env!("CARGO_BIN_EXE_stacklift"))
        .env_clear()
        .arg("man")
        .arg(&dir)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{output:?}");
    let files = fs::read_dir(&dir).expect("a directory");
    let pages = files.map(|file| {
        let path = file.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let text = fs::read_to_string(&path).expect("UTF-8");
        (name.into_owned(), text)
    });
    let pages = pages.collect();
    (parent, pages)
}

/// The commands that the help of a command lists, none if it has no commands.
fn commands(of: &[&str]) -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_stacklift"))
        .env_clear()
        .args(of)
        .arg("-h")
        .output();
    let help = String::from_utf8(help.expect("the binary runs").stdout).expect("UTF-8");
    let listed = help.split_once("Commands:\n").map(|(_, rest)| rest);
    let listed = listed.and_then(|rest| rest.split_once("\n\n"));
    let lines = listed.map_or("", |(commands, _)| commands).lines();
    lines
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn there_is_a_page_for_the_program_and_for_each_command_of_its_help() {
    let (_parent, pages) = pages();
    let mut names = Vec::new();
    let scripted = ["render", "schema"].map(str::to_owned);
    for command in commands(&[]).into_iter().chain(scripted) {
        names.push(format!("stacklift-{command}.1"));
        let subcommands = commands(&[&command]);
        let pages = subcommands.iter();
        names.extend(pages.map(|sub| format!("stacklift-{command}-{sub}.1")));
    }
    assert!(names.len() > 8, "{names:?}");
    names.push("stacklift.1".to_owned());
    names.sort();
    assert_eq!(
        pages.keys().collect::<Vec<_>>(),
        names.iter().collect::<Vec<_>>()
    );
    for (name, page) in &pages {
        for section in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "\"EXIT STATUS\"",
            "\"SEE ALSO\"",
        ] {
            assert!(
                page.contains(&format!("\n.SH {section}\n")),
                "{name}: {section}\n{page}"
            );
        }
    }
    // A page has its own examples, or none.
    let with_examples = pages
        .iter()
        .filter(|(_, page)| page.contains(".SH EXAMPLES\n"));
    let with_examples: Vec<&str> = with_examples.map(|(name, _)| name.as_str()).collect();
    assert_eq!(with_examples, ["stacklift-completions.1", "stacklift.1"]);
    // `-h` leaves it out.
    let described = r"\fB\-\-on\-failure\fR \fI<WHAT>\fR [default: restore]
What to do with containers";
    let page = &pages["stacklift-adopt.1"];
    assert!(page.contains(described), "{page}");
    for name in [
        "stacklift.1",
        "stacklift-adopt.1",
        "stacklift-migrate.1",
        "stacklift-restore.1",
    ] {
        for text in [".SH ENVIRONMENT\n", "STACKMGR_API_KEY_FILE", ".SH FILES\n"] {
            assert!(
                pages[name].contains(text),
                "{name}: {text}\n{}",
                pages[name]
            );
        }
    }
}

#[test]
fn pages_name_the_version_and_no_date() {
    let (_parent, first) = pages();
    let (_parent, second) = pages();
    assert_eq!(first, second);
    for (name, page) in first {
        let title = name.trim_end_matches(".1");
        let version = env!("CARGO_PKG_VERSION");
        let title = format!(".TH {title} 1 \"\" \"stacklift {version}\" \"Stacklift Manual\"\n");
        assert!(page.contains(&title), "{page}");
    }
}

#[test]
#[ignore = "needs mandoc and man"]
fn shells_show_the_pages_without_a_warning() {
    let (parent, pages) = pages();
    for name in pages.keys() {
        let path = parent.path().join("share/man1").join(name);
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.env("LC_ALL", "C.UTF-8").args(arguments).arg(&path);
            let output = command.output().expect("it runs");
            let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
            (text(output.stdout), text(output.stderr))
        };
        let (lint, _) = run("mandoc", &["-T", "lint", "-W", "warning"]);
        let warnings: Vec<&str> = lint
            .lines()
            .filter(|line| !line.contains("missing date"))
            .collect();
        assert!(warnings.is_empty(), "{lint}");
        let (shown, warnings) = run("man", &["--warnings", "--local-file"]);
        assert!(shown.contains("SEE ALSO"), "{shown}");
        assert_eq!(warnings, "", "{name}");
    }
}
