//! Completions: what `.complete` answers, and real shells that are asked to complete command lines on a terminal.
//!
//! A session types each line and a Tab, and then a key that writes the line, as it is now, to a file.

use std::{
    fs,
    io::{ErrorKind, Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

/// Names of stacks that a shell would expand, split or execute.
const ODD: [&str; 13] = [
    "$(touch ran)",
    "`touch ran`;z",
    "my stack",
    "it's",
    "*",
    "?b",
    "{q,r}",
    "~root",
    "#c",
    "|touch ran",
    "&touch ran",
    "\"a\"$HOME",
    "ä-ö",
];
const COMPOSE: &str = "services:\n  a:\n    image: busybox:1.36\n";
/// The hash of some engine.
const ENGINE: &str = "0123456789abcdef";

/// A user's directories, with stacks and snapshots.
struct Home(tempfile::TempDir);

impl Home {
    /// With the stacks `web` and `wiki`, and snapshots of `web` and of `gone`, which has no directory.
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a directory"));
        for dir in ["work", "stacks/empty", ".zsh", ".config/fish"] {
            fs::create_dir_all(home.path(dir)).expect("a directory");
        }
        home.stack("web");
        home.stack("wiki");
        for project in ["web", "gone"] {
            let dir = home.path(&format!("state/snapshots/{project}-{ENGINE}"));
            fs::create_dir_all(&dir).expect("a directory");
            for id in ["20261120T100000.000Z", "20261121T100000.000Z"] {
                fs::write(dir.join(format!("{id}.json")), "").expect("a snapshot");
            }
        }
        home
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn stack(&self, name: &str) {
        let dir = self.path("stacks").join(name);
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("compose.yaml"), COMPOSE).expect("a Compose file");
    }

    /// A program with only the variables of this user. It runs in an empty directory.
    fn command(&self, program: &str) -> Command {
        let own = Path::new(env!("CARGO_BIN_EXE_stacklift"))
            .parent()
            .expect("a directory");
        let path = format!("{}:/usr/bin:/bin", own.display());
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.0.path())
            .env("ZDOTDIR", self.path(".zsh"))
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "vt100")
            .env("STACKLIFT_SYSTEM_SETTINGS", self.path("none"))
            .env("LINES_FILE", self.path("lines"))
            .env("STACKLIFT_STACKS_ROOT", self.path("stacks"))
            .env("STACKLIFT_STATE_DIR", self.path("state"))
            .current_dir(self.path("work"));
        command
    }

    /// The values that `.complete` prints for the words.
    fn values(&self, words: &[&str]) -> Vec<String> {
        let mut command = self.command(env!("CARGO_BIN_EXE_stacklift"));
        let output = command
            .args([".complete", "--"])
            .args(words)
            .output()
            .expect("the binary runs");
        assert!(output.status.success() && output.stderr.is_empty());
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let value = |line: &str| line.split('\t').next().map(str::to_owned);
        text.lines().filter_map(value).collect()
    }

    /// Types each of `typed`, and writes down the line after it.
    fn session(&self, shell: Shell, typed: &[&str]) -> Vec<String> {
        let mut terminal = self.command("timeout");
        terminal.args(["60", "script", "-qfec", shell.set_up(self), "/dev/null"]);
        let mut terminal = terminal
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a terminal");
        let mut output = terminal.stdout.take().expect("a screen");
        let mut screen = Vec::new();
        let mut show = |bytes: &[u8]| {
            screen.extend_from_slice(bytes);
            String::from_utf8_lossy(&screen).into_owned()
        };
        // What is typed before the shell is ready would reach the terminal in another mode.
        while !show(b"").contains("ready> ") {
            let mut bytes = [0; 4096];
            let read = output.read(&mut bytes).expect("the screen");
            assert!(read > 0, "{shell:?} ended: {}", show(b""));
            show(&bytes[..read]);
        }
        let mut keyboard = terminal.stdin.take().expect("a keyboard");
        for typed in typed {
            write!(keyboard, "{typed}\x18d").expect("typed");
        }
        write!(keyboard, "exit\r").expect("typed");
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).expect("the screen");
        terminal.wait().expect("the shell ends");
        let screen = show(&rest);
        let lines = fs::read_to_string(self.path("lines")).unwrap_or_default();
        let lines: Vec<String> = lines
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        assert_eq!(lines.len(), typed.len(), "{lines:#?}\n{screen}");
        lines
    }

    /// The words of a line after the first two, as the shell passes them to a program.
    fn words(&self, shell: Shell, line: &str) -> Vec<String> {
        let line = line
            .strip_prefix("stacklift adopt ")
            .expect("the same command");
        let mut command = self.command(shell.program());
        let output = command
            .args(["-c", &format!("printf '%s\\n' {line}")])
            .output()
            .expect("the shell runs");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.lines().map(str::to_owned).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shell {
    /// With the package bash-completion, which loads the script itself.
    Bash,
    /// With the script in `fpath`, as packages install it.
    Zsh,
    Fish,
}

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

const BASH: &str = "\
PS1='ready> '
write_line() { printf '%s\\n' \"$READLINE_LINE\" >>\"$LINES_FILE\"; READLINE_LINE=; }
bind -x '\"\\C-xd\": write_line'
";
const ZSH: &str = "\
PROMPT='ready> '
autoload -Uz compinit
compinit -u -D
write_line() { print -r -- $BUFFER >>$LINES_FILE; BUFFER= }
zle -N write_line
bindkey '^Xd' write_line
";
const FISH: &str = "\
function fish_prompt; printf 'ready> '; end
set fish_greeting
function write_line; commandline >>$LINES_FILE; commandline ''; end
bind \\cxd write_line
";

impl Shell {
    fn program(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// Writes the settings of the shell, and returns the command that starts it.
    fn set_up(self, home: &Home) -> &'static str {
        let write = |file: &str, text: String| fs::write(home.path(file), text).expect("a file");
        let install = |file: &str| {
            let path = home.path(file);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            let mut command = home.command(env!("CARGO_BIN_EXE_stacklift"));
            let script = command.args(["completions", self.program()]).output();
            fs::write(path, script.expect("the binary runs").stdout).expect("a script");
        };
        match self {
            Self::Bash => {
                install(".local/share/bash-completion/completions/stacklift");
                let all = "/usr/share/bash-completion/bash_completion";
                write(".bashrc", format!("{BASH}source {all} || exit\n"));
            }
            Self::Zsh => {
                install(".zsh/functions/_stacklift");
                let path = "fpath=($ZDOTDIR/functions $fpath)";
                write(".zsh/.zshrc", format!("{path}\n{ZSH}"));
            }
            Self::Fish => {
                install(".config/fish/completions/stacklift.fish");
                write(".config/fish/config.fish", FISH.to_owned());
            }
        }
        match self {
            Self::Bash => "bash -i",
            Self::Zsh => "zsh -di",
            Self::Fish => "fish -i",
        }
    }
}

#[test]
#[ignore = "needs bash, bash-completion, zsh and fish"]
fn shells_complete_commands_stacks_snapshots_values_and_flags() {
    let home = Home::new();
    fs::create_dir(home.path("work/folder")).expect("a directory");
    fs::write(home.path("work/file.pem"), "").expect("a file");
    for shell in SHELLS {
        let _ = fs::remove_file(home.path("lines"));
        let lines = home.session(
            shell,
            &[
                "stacklift ado\t",
                "stacklift we\t",
                "stacklift adopt wi\t",
                "stacklift restore go\t",
                "stacklift restore web --to 20261120\t",
                "stacklift restore web --to=20261121\t",
                "stacklift --tool podman render web --as ado\t",
                "stacklift render web --rev\t",
                "stacklift --stacks-root fo\t",
                "stacklift --stacks-root=fo\t",
                "stacklift --tls fil\t",
                "stacklift --tls=fil\t",
                "stacklift adopt empt\t",
            ],
        );
        assert_eq!(
            lines,
            [
                "stacklift adopt",
                "stacklift we",
                "stacklift adopt wiki",
                "stacklift restore gone",
                "stacklift restore web --to 20261120T100000.000Z",
                "stacklift restore web --to=20261121T100000.000Z",
                "stacklift --tool podman render web --as adopt",
                "stacklift render web --reveal",
                "stacklift --stacks-root folder/",
                "stacklift --stacks-root=folder/",
                "stacklift --tls file.pem",
                "stacklift --tls=file.pem",
                "stacklift adopt empt",
            ],
            "{shell:?}"
        );
    }
}

#[test]
#[ignore = "needs bash, bash-completion, zsh and fish"]
fn shells_insert_every_name_as_one_word_and_execute_none() {
    let home = Home::new();
    for name in ODD {
        home.stack(name);
    }
    // In the current directory, a pattern would match.
    fs::write(home.path("work/ab"), "").expect("a file");
    for shell in SHELLS {
        let _ = fs::remove_file(home.path("lines"));
        // fish takes an escaped question mark for a pattern.
        let names = ODD
            .into_iter()
            .filter(|name| shell != Shell::Fish || !name.starts_with('?'));
        let first = |name: &str| name.chars().next().expect("a character");
        let quotes: &[&str] = match shell {
            // The script takes what was typed as it is.
            Shell::Bash => &[],
            // A single quote inside single quotes cannot be typed.
            Shell::Fish => &["\\"],
            Shell::Zsh => &["\\", "'", "\""],
        };
        let mut typed = Vec::new();
        for name in names {
            for quote in quotes {
                let first = first(name);
                let escape = if *quote == "\"" && "$`\"".contains(first) {
                    "\\"
                } else {
                    ""
                };
                if !(*quote == "\\" && first.is_alphanumeric()) {
                    typed.push((name, format!("stacklift adopt {quote}{escape}{first}\t")));
                }
            }
            if first(name).is_alphanumeric() {
                typed.push((name, format!("stacklift adopt {}\t", first(name))));
            }
        }
        let keys: Vec<&str> = typed.iter().map(|(_, keys)| keys.as_str()).collect();
        let lines = home.session(shell, &keys);
        for ((name, keys), line) in typed.iter().zip(lines) {
            assert_eq!(
                home.words(shell, &line),
                [*name],
                "{shell:?}: {keys}: {line}"
            );
        }
        assert!(!home.path("work/ran").exists(), "{shell:?} ran a name");
    }
}

#[test]
fn a_line_is_answered_by_its_place() {
    let home = Home::new();
    let stacks = ["web", "wiki"];
    let first = home.values(&[""]);
    assert_eq!(first[..3], ["plan", "adopt", "restore"]);
    assert!(!first.iter().any(|one| stacks.contains(&one.as_str())));
    assert!(
        !first
            .iter()
            .any(|one| one == "man" || one.starts_with(['-', '.']))
    );
    for command in ["migrate", "adopt", "plan", "render"] {
        assert_eq!(home.values(&[command, ""]), stacks, "{command}");
        assert_eq!(home.values(&[command, "--", ""]), stacks, "{command}");
    }
    assert_eq!(home.values(&["restore", ""]), ["web", "wiki", "gone"]);
    let ids = ["20261121T100000.000Z", "20261120T100000.000Z"];
    assert_eq!(home.values(&["restore", "gone", "--to", ""]), ids);
    assert_eq!(home.values(&["restore", "--to", ""]), [""; 0]);
    assert_eq!(home.values(&["restore", "wiki", "--to", ""]), [""; 0]);
    assert_eq!(home.values(&["web", "--file", ""]), ["compose.yaml"]);
    assert_eq!(
        home.values(&["render", "--as="]),
        ["--as=adopt", "--as=migrate"]
    );
    assert!(home.values(&["help", ""]).contains(&"restore".to_owned()));
    assert_eq!(
        home.values(&["completions", ""]),
        ["bash", "zsh", "fish", "nushell"]
    );
    let flags = home.values(&["restore", "web", "--to", ids[0], "-y", ""]);
    assert!(flags.contains(&"--force".to_owned()), "{flags:?}");
}

#[test]
fn stacks_are_looked_for_where_the_line_and_the_settings_say() {
    let home = Home::new();
    for (root, name) in [("others", "a"), ("configured", "b")] {
        fs::create_dir_all(home.path(root).join(name)).expect("a directory");
        fs::write(
            home.path(root).join(name).join("docker-compose.yml"),
            COMPOSE,
        )
        .expect("a file");
    }
    let others = home.path("others").display().to_string();
    assert_eq!(home.values(&["--stacks-root", &others, "adopt", ""]), ["a"]);
    assert_eq!(
        home.values(&["--stacks-root", "~/others", "adopt", ""]),
        ["a"]
    );
    assert_eq!(
        home.values(&["adopt", &format!("--stacks-root={others}"), ""]),
        ["a"]
    );
    let settings = format!("stacks-root = {:?}\n", home.path("configured"));
    fs::write(home.path(".config/stacklift.toml"), settings).expect("a settings file");
    let output = home
        .command(env!("CARGO_BIN_EXE_stacklift"))
        .args([".complete", "--", "adopt", ""])
        .env_remove("STACKLIFT_STACKS_ROOT")
        .output();
    assert_eq!(output.expect("the binary runs").stdout, b"b\t\n");
}

#[test]
fn an_answer_leaves_out_names_that_are_not_stacks_or_could_control_a_terminal() {
    let home = Home::new();
    for name in ["-v", ".hidden", "a\nb", "a\u{1b}[2J", "a\u{202e}b"] {
        home.stack(name);
    }
    assert_eq!(home.values(&["adopt", ""]), ["web", "wiki"]);
}

#[test]
fn an_answer_contacts_nothing_writes_nothing_and_shows_no_value() {
    let home = Home::new();
    fs::write(home.path("stacks/web/.env"), "PASSWORD=hunter2\n").expect("an env file");
    let peer = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = peer.local_addr().expect("an address");
    let before = tree(home.0.path());
    for words in [
        &[""][..],
        &["adopt", ""],
        &["restore", "web", "--to", ""],
        &["web", "--"],
    ] {
        let mut command = home.command(env!("CARGO_BIN_EXE_stacklift"));
        command
            .env("STACKMGR_API_KEY", "ptr_hunter2")
            .env("STACKLIFT_BASE_URL", format!("https://{address}"))
            .env("DOCKER_HOST", format!("tcp://{address}"))
            .args([".complete", "--"])
            .args(words);
        let output = command.output().expect("the binary runs");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(
            ["adopt", "web", "2026", "--"]
                .iter()
                .any(|part| text.contains(part)),
            "{text}"
        );
        assert!(!text.contains("hunter2"), "{text}");
    }
    peer.set_nonblocking(true).expect("no waiting");
    let contact = peer.accept().expect_err("no connection");
    assert_eq!(contact.kind(), ErrorKind::WouldBlock);
    assert_eq!(tree(home.0.path()), before);
}

#[test]
fn an_answer_is_silent_about_errors() {
    let home = Home::new();
    fs::write(home.path(".config/stacklift.toml"), "no = \"setting\"\n").expect("a settings file");
    assert_eq!(home.values(&["adopt", ""])[0], "--all");
    fs::remove_file(home.path(".config/stacklift.toml")).expect("removed");
    fs::remove_dir_all(home.path("stacks")).expect("removed");
    fs::remove_dir_all(home.path("state")).expect("removed");
    assert_eq!(home.values(&["restore", "web", "--to", ""]), [""; 0]);
    let mut command = home.command(env!("CARGO_BIN_EXE_stacklift"));
    let output = command.arg(".complete").output().expect("the binary runs");
    assert!(output.status.success());
    assert_eq!((output.stdout, output.stderr), (vec![], vec![]));
}

#[test]
#[ignore = "needs Nushell"]
fn nushell_gets_words_that_it_reads_as_the_names() {
    let home = Home::new();
    for name in ODD {
        home.stack(name);
    }
    let nushell = |text: &str| {
        let program = std::env::var("STACKLIFT_TEST_NUSHELL").unwrap_or_else(|_| "nu".to_owned());
        let output = home.command(&program).args(["-n", "-c", text]).output();
        let output = output.expect("Nushell runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}: {error}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let script = home.path("stacklift.nu");
    let mut completions = home.command(env!("CARGO_BIN_EXE_stacklift"));
    let text = completions
        .args(["completions", "nushell"])
        .output()
        .expect("the binary runs");
    fs::write(&script, text.stdout).expect("a script");
    let ask = |words: &str| {
        let script = script.display();
        let asked = nushell(&format!(
            "$env.config.completions.external.completer = {{|spans| [others] }}\nsource {script}\n\
             do $env.config.completions.external.completer [{words}] | to json --raw"
        ));
        asked.trim().to_owned()
    };
    assert_eq!(ask("git ''"), r#"["others"]"#);
    fs::write(home.path("work/a file"), "").expect("a file");
    assert_eq!(
        ask("stacklift --tls ./a"),
        r#"[{"value":"\"./a file\"","description":""}]"#
    );
    assert_eq!(
        ask("stacklift restore gone --to=20261120"),
        r#"[{"value":"--to=20261120T100000.000Z","description":""}]"#
    );
    let stacks: Vec<Value> = serde_json::from_str(&ask("stacklift adopt ''")).expect("JSON");
    let words: Vec<&str> = stacks
        .iter()
        .filter_map(|one| one["value"].as_str())
        .collect();
    let text = nushell(&format!("^printf '%s\\n' {}", words.join(" ")));
    let mut names: Vec<&str> = text.lines().collect();
    let mut expected = [&ODD[..], &["web", "wiki"]].concat();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert!(!home.path("work/ran").exists());
}

/// The paths of everything below a directory.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            paths.extend(tree(&path));
        }
        paths.push(path);
    }
    paths.sort();
    paths
}
