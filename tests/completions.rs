//! Completions: real shells that are asked to complete command lines on a terminal. Transcripts show what `.complete` answers.
//!
//! A session types each line and a Tab, and then a key that writes the line, as it is now, to a file.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_stacklift");
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
        for dir in ["work", "stacks/empty", ".config"] {
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
        let own = Path::new(PROGRAM).parent().expect("a directory");
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

    /// Types each of `typed`, and writes down the line after it.
    fn session(&self, shell: Shell, typed: &[String]) -> Vec<String> {
        fs::remove_file(self.path("lines")).ok();
        let mut terminal = self.command("timeout");
        terminal.args(["60", "script", "-qfec", shell.set_up(self), "/dev/null"]);
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut terminal = terminal.spawn().expect("a terminal");
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
        let lines: Vec<_> = lines
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
        let print = format!("printf '%s\\n' {line}");
        values(self.command(shell.program()).args(["-c", &print]))
    }
}

/// The first column of what a command prints.
fn values(command: &mut Command) -> Vec<String> {
    let value = |line: &str| line.split('\t').next().map(str::to_owned);
    printed(command).lines().filter_map(value).collect()
}

/// What a command prints, which must succeed and print no error.
fn printed(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    String::from_utf8(output.stdout).expect("UTF-8")
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
source /usr/share/bash-completion/bash_completion || exit
";
const ZSH: &str = "\
fpath=($ZDOTDIR/functions $fpath)
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
        let write = |file: &str, text: &str| {
            let path = home.path(file);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        let (installed, settings, text, start) = match self {
            Self::Bash => (
                ".local/share/bash-completion/completions/stacklift",
                ".bashrc",
                BASH,
                "bash -i",
            ),
            Self::Zsh => (".zsh/functions/_stacklift", ".zsh/.zshrc", ZSH, "zsh -di"),
            Self::Fish => (
                ".config/fish/completions/stacklift.fish",
                ".config/fish/config.fish",
                FISH,
                "fish -i",
            ),
        };
        let script = printed(home.command(PROGRAM).args(["completions", self.program()]));
        write(installed, &script);
        write(settings, text);
        start
    }
}

#[test]
#[ignore = "needs bash, bash-completion, zsh and fish"]
fn shells_complete_commands_stacks_snapshots_values_and_flags() {
    let home = Home::new();
    fs::create_dir(home.path("work/folder")).expect("a directory");
    fs::write(home.path("work/file.pem"), "").expect("a file");
    // What is typed before `|`, and what the shell adds.
    let lines = [
        "ado|pt",
        "we|",
        "adopt wi|ki",
        "restore go|ne",
        "restore web --to 20261120|T100000.000Z",
        "restore web --to=20261121|T100000.000Z",
        "--tool podman render web --as ado|pt",
        "render web --rev|eal",
        "--stacks-root fo|lder/",
        "--stacks-root=fo|lder/",
        "--tls fil|e.pem",
        "--tls=fil|e.pem",
        "adopt empt|",
    ];
    let typed = lines.map(|line| format!("stacklift {}\t", line.split('|').next().unwrap_or(line)));
    let expected = lines.map(|line| format!("stacklift {}", line.replace('|', "")));
    for shell in SHELLS {
        assert_eq!(home.session(shell, &typed), expected, "{shell:?}");
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
        // fish takes an escaped question mark for a pattern.
        let is_typed = |name: &&str| shell != Shell::Fish || !name.starts_with('?');
        let quotes: &[&str] = match shell {
            // The script takes what was typed as it is.
            Shell::Bash => &[],
            // A single quote inside single quotes cannot be typed.
            Shell::Fish => &["\\"],
            Shell::Zsh => &["\\", "'", "\""],
        };
        let (mut names, mut typed) = (Vec::new(), Vec::new());
        for name in ODD.into_iter().filter(is_typed) {
            let first = name.chars().next().expect("a character");
            let is_plain = first.is_alphanumeric();
            let quotes = quotes.iter().filter(|quote| **quote != "\\" || !is_plain);
            for quote in quotes.chain(is_plain.then_some(&"")) {
                let is_escaped = *quote == "\"" && "$`\"".contains(first);
                let escape = if is_escaped { "\\" } else { "" };
                names.push(name);
                typed.push(format!("stacklift adopt {quote}{escape}{first}\t"));
            }
        }
        let lines = home.session(shell, &typed);
        for ((name, keys), line) in names.into_iter().zip(&typed).zip(lines) {
            let words = home.words(shell, &line);
            assert_eq!(words, [name], "{shell:?}: {keys}: {line}");
        }
        assert!(!home.path("work/ran").exists(), "{shell:?} ran a name");
    }
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
        printed(home.command(&program).args(["-n", "-c", text]))
    };
    let script = home.path("stacklift.nu");
    let text = printed(home.command(PROGRAM).args(["completions", "nushell"]));
    fs::write(&script, text).expect("a script");
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
    let expected = r#"[{"value":"\"./a file\"","description":""}]"#;
    assert_eq!(ask("stacklift --tls ./a"), expected);
    let expected = r#"[{"value":"--to=20261120T100000.000Z","description":""}]"#;
    assert_eq!(ask("stacklift restore gone --to=20261120"), expected);
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
