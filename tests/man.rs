//! The man pages in a reader. A transcript shows which there are.

use std::{fs, process::Command};

#[test]
#[ignore = "needs mandoc and man"]
fn shells_show_the_pages_without_a_warning() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut program = Command::new(env!("CARGO_BIN_EXE_stacklift"));
    let written = program.env_clear().arg("man").arg(dir.path()).output();
    assert!(written.expect("the binary runs").status.success());
    let pages = fs::read_dir(dir.path()).expect("a directory");
    for page in pages {
        let path = page.expect("a page").path();
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
        assert_eq!(warnings, "", "{}", path.display());
    }
}
