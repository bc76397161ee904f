//! The faithful rewrite: its promises for every stack, and its result rewritten again as Portainer stores it.
//!
//! The first byte selects the directory, the second the variables of the shell. The rest is the Compose file, `.env`, and
//! two more env files, separated by NUL. An `@` in an env file becomes a secret.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use composefile::{document::{Document, Node, Position, ScalarType}, dotenv, interpolate::{Lookup, interpolate}, services::{MountType, MountSpec, Service, services}};
use stacklift::rewrite::faithful::{self, Context, EnvFiles, Faithful, Reason, Blocker};

const DIRS: [&str; 8] = [
    "/opt/stacks/web",
    "/srv/a b/#c",
    "/srv/ü - &x",
    "/srv/c: d",
    "/srv/$x${Y}$",
    "/x\"'y",
    "/srv/a\nb",
    "/",
];

const HOME: &str = "/home/some body$";

/// Replaces `@`. No text contains it by chance.
const SECRET: &str = "zq7secret7qz";

fuzz_target!(|data: &[u8]| {
    let &[dir, told, ref rest @ ..] = data else {
        return;
    };
    let Ok(rest) = std::str::from_utf8(rest) else {
        return;
    };
    let mut texts = rest.splitn(4, '\0');
    let text = texts.next().unwrap_or_default();
    let mut env = || texts.next().map(|text| text.replace('@', SECRET));
    let stack = Stack {
        dir: DIRS[usize::from(dir) % DIRS.len()],
        told,
        text,
        env: env(),
        more: [env(), env()],
    };
    stack.hold();
});

struct Stack<'t> {
    dir: &'static str,
    /// One bit for each input of the rewrite.
    told: u8,
    text: &'t str,
    env: Option<String>,
    more: [Option<String>; 2],
}

impl Stack<'_> {
    fn hold(&self) {
        let shell = |name: &str| self.shell(name);
        let overrides = vec!["docker-compose.override.yml".to_owned(); usize::from(self.told >> 7)];
        let context = |files| Context {
            stack_dir: self.dir,
            file: "docker-compose.yml",
            env_file: ".env",
            home: (self.told & 1 != 0).then_some(HOME),
            shell: &shell,
            project: None,
            overrides: &overrides,
            env_files: files,
        };
        let env = self.env.as_deref();
        let none = EnvFiles::new();
        let needed = faithful::env_files_needed(self.text, env, &context(&none));
        assert!(needed.iter().all(|file| file.starts_with('/')) && needed.is_sorted());
        let files = needed.into_iter().map(|file| {
            let text = self.more[usize::from(file.contains("two"))].clone();
            (file, text)
        });
        let files: EnvFiles = files.collect();
        let result = faithful::rewrite(self.text, env, &context(&files), &faithful::Runs::default());
        match &result {
            Ok(faithful) => {
                only_the_edits(self.text, faithful);
                self.means_the_same(faithful);
                a_second_changes_nothing(faithful);
            }
            Err(blockers) => are_places(blockers, self.text),
        }
        if !self.secret_is_a_name(&result) {
            no_secret_is_seen(&result);
        }
    }

    /// The shell that the stack was started from.
    fn shell(&self, name: &str) -> Option<String> {
        let (bit, value) = match name {
            "HOME" => (1, HOME),
            "PWD" => (2, self.dir),
            "USER" => (4, "it's"),
            "A" => (8, "./of/the/shell"),
            "UID" => (8, "0100"),
            "COMPOSE_PROJECT_NAME" => (16, "named"),
            "COMPOSE_PROFILES" => (32, "dev"),
            "PATH" => (64, "/bin"),
            _ => return None,
        };
        (self.told & bit != 0).then(|| value.to_owned())
    }

    /// `stack.env` gives the values of `.env`, and services have the same mounts and their whole `environment`.
    fn means_the_same(&self, faithful: &Faithful) {
        let shell = |name: &str| self.shell(name);
        let env = self.env.as_deref().unwrap_or_default();
        let mut env = dotenv::parse(env, &shell).expect("read before");
        // Nothing can ask for it.
        env.retain(|(name, _)| !name.is_empty());
        let sent = dotenv::parse(&faithful.stack_env(), &|_| Some("expanded".into()));
        assert_eq!(sent.as_ref(), Ok(&env));

        let env: HashMap<_, _> = env.into_iter().collect();
        let find = |name: &str, shell: Lookup| match name {
            "COMPOSE_PROJECT_NAME" if !faithful.project.is_empty() => {
                Some(faithful.project.clone())
            }
            _ => shell(name).or_else(|| env.get(name).cloned()),
        };
        let here = |name: &str| find(name, &shell);
        let there = |name: &str| find(name, &of_portainer);
        let before = Document::parse(self.text).expect("read before");
        let after = Document::parse(&faithful.text).expect("the result is YAML");
        let (before, after) = (services(&before), services(&after));
        assert_eq!(before.len(), after.len());
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before.name, after.name);
            let given = environment(after, &there);
            for (name, value) in environment(before, &here) {
                assert_eq!(given.get(&name), Some(&value), "{name}");
            }
            let absolute = |path: &str| self.absolute(path);
            let same = |path: &str| path.to_owned();
            assert_eq!(
                mounts(before, &here, &absolute),
                mounts(after, &there, &same)
            );
        }
    }

    /// A path of the host as Compose resolves it.
    fn absolute(&self, path: &str) -> String {
        let path = match path.strip_prefix('~') {
            Some(rest) if self.told & 1 != 0 => format!("{HOME}/{rest}"),
            _ if path.starts_with('/') || is_windows(path) => return path.to_owned(),
            _ => format!("{}/{path}", self.dir),
        };
        let mut kept = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(kept.pop()),
                part => kept.push(part),
            }
        }
        format!("/{}", kept.join("/"))
    }

    /// Whether the secret is in a name, not a value: of a variable, the project or a file.
    fn secret_is_a_name(&self, result: &Result<Faithful, Vec<Blocker>>) -> bool {
        let files = self.env.iter().chain(self.more.iter().flatten());
        let mut lines = files.flat_map(|text| text.lines());
        let in_text = self.text.contains(SECRET);
        let in_name = lines.any(|line| {
            let name = line.split(['=', ':']).next().unwrap_or_default();
            name.contains(SECRET) || name.contains("COMPOSE_FILE")
        });
        in_text || in_name || result.as_ref().is_ok_and(|it| it.project.contains(SECRET))
    }
}

/// `n:/x`, `\\server`: absolute for Compose on every host.
fn is_windows(path: &str) -> bool {
    matches!(
        path.as_bytes(),
        [_, b':', b'/' | b'\\', ..] | [b'\\', b'/' | b'\\', ..]
    )
}

/// The variables of Portainer's own container.
fn of_portainer(name: &str) -> Option<String> {
    let value = match name {
        "HOME" => "/root-of-portainer",
        "HOSTNAME" => "0123456789ab",
        "PATH" => "/bin-of-portainer",
        _ => return None,
    };
    Some(value.to_owned())
}

/// The value of a variable, and whether it is a number that Compose writes differently; `None` without a value.
type Given = Option<(String, bool)>;

/// Variables of a service.
fn environment(service: &Service, find: Lookup) -> HashMap<String, Given> {
    let read = |text: &str| interpolate(text, find).expect("read before").into_owned();
    let Some(environment) = service.node.get("environment") else {
        return HashMap::new();
    };
    let listed = environment.items().filter_map(Node::as_str).map(|item| {
        let item = read(item);
        match item.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some((value.to_owned(), false))),
            None => (item.clone(), find(&item).map(|value| (value, false))),
        }
    });
    let mapped = environment.entries().into_iter().filter_map(|entry| {
        let name = entry.name()?;
        let value = match entry.value.as_str() {
            Some(value) => Some((read(value), is_odd_number(entry.value))),
            None => find(name).map(|value| (value, false)),
        };
        Some((name.to_owned(), value))
    });
    listed.chain(mapped).collect()
}

fn is_odd_number(node: Node) -> bool {
    let written = node.as_str().unwrap_or_default();
    let read = written.parse().map(|number: i64| number.to_string());
    node.scalar_type() == Some(ScalarType::Number) && read.as_deref() != Ok(written)
}

type Mount = (MountType, Option<String>, String, Option<String>);

/// Mounts of a service, with `path` applied to sources of the host.
fn mounts(service: &Service, find: Lookup, path: &dyn Fn(&str) -> String) -> Vec<Mount> {
    let read = |text: &str| interpolate(text, find).expect("read before").into_owned();
    let source = |kind, source: String| match kind {
        MountType::Bind => path(&source),
        _ => source,
    };
    let items = service
        .node
        .get("volumes")
        .into_iter()
        .flat_map(Node::items);
    let mounts = items.filter_map(|item| {
        let text = |key: &str| Some(read(item.get(key)?.as_str()?));
        if let Some(spec) = item.as_str() {
            let spec = read(spec);
            let spec = MountSpec::parse(&spec)?;
            let from = spec.source.map(|from| source(spec.kind, from.to_owned()));
            return Some((
                spec.kind,
                from,
                spec.target.into(),
                spec.options.map(str::to_owned),
            ));
        }
        let kind = MountType::named(&text("type")?);
        let from = text("source").map(|from| source(kind, from));
        Some((kind, from, text("target").unwrap_or_default(), None))
    });
    mounts.collect()
}

/// The edits are ranges of the text, in order, and the result contains the bytes between them.
fn only_the_edits(text: &str, faithful: &Faithful) {
    let mut rest = faithful.text.as_str();
    let mut done = 0;
    for edit in &faithful.edits {
        assert!(done <= edit.span.start && edit.span.start <= edit.span.end);
        assert_eq!(edit.line, Position::of(text, edit.span.start).line);
        assert!(!edit.what.is_empty() && !edit.why.is_empty());
        let kept = text.get(done..edit.span.start).expect("between characters");
        let at = if done == 0 {
            rest.starts_with(kept).then_some(0)
        } else {
            rest.find(kept)
        };
        rest = &rest[at.expect("an untouched byte differs") + kept.len()..];
        done = edit.span.end;
    }
    let end = text.get(done..).expect("between characters");
    assert!(if done == 0 {
        rest == end
    } else {
        rest.ends_with(end)
    });
    let shown = faithful.shown();
    assert!(shown == faithful.text || shown.contains("***"));
}

/// In Portainer, nothing is left to change, and no file to read.
fn a_second_changes_nothing(first: &Faithful) {
    let env = first.stack_env();
    let env = (!env.is_empty()).then_some(env.as_str());
    let shell = |name: &str| match name {
        "COMPOSE_PROJECT_NAME" => Some(first.project.clone()).filter(|name| !name.is_empty()),
        _ => of_portainer(name),
    };
    let context = Context {
        stack_dir: "/data/compose/7",
        file: "docker-compose.yml",
        env_file: "stack.env",
        home: Some("/root-of-portainer"),
        shell: &shell,
        project: None,
        overrides: &[],
        env_files: &EnvFiles::new(),
    };
    assert!(faithful::env_files_needed(&first.text, env, &context).is_empty());
    let second = faithful::rewrite(&first.text, env, &context, &faithful::Runs::default());
    let second = second.unwrap_or_else(|blockers| panic!("{blockers:?}\n{}", first.text));
    assert_eq!(second.text, first.text);
    assert_eq!(second.env, first.env);
    assert!(second.edits.is_empty(), "{:?}", second.edits);
}

fn are_places(blockers: &[Blocker], text: &str) {
    assert!(!blockers.is_empty());
    for blocker in blockers {
        assert_ne!(blocker.reason, Reason::Internal, "{}", blocker.message);
        assert!(!blocker.message.is_empty() && !blocker.hint.is_empty());
        if let Some(place) = blocker.position {
            let line = text
                .split('\n')
                .nth(place.line - 1)
                .expect("a line of the text");
            assert!((1..=line.chars().count() + 1).contains(&place.column));
        }
    }
}

fn no_secret_is_seen(result: &Result<Faithful, Vec<Blocker>>) {
    let seen = match result {
        Ok(it) => format!("{}{:?}{:?}{it:?}", it.shown(), it.edits, it.notices),
        Err(blockers) => format!("{blockers:?}"),
    };
    assert!(!seen.contains(SECRET), "{seen}");
}
