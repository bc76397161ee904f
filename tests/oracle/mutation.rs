//! Stacks made harder: `mutations.txt` names each change, and says what it puts where.

use std::{fmt::Write, fs, path::Path};

use composefile::{
    document::{Document, Layout, Node, NodeKind, Style},
    reader::DEFAULT_FILES,
    services::{Service, services},
};

use crate::parts::{self, Edit, column};

/// One change, which is made wherever it applies.
pub struct Mutation {
    pub name: String,
    /// What goes where, as the head of `mutations.txt` says.
    parts: Vec<(String, String)>,
}

/// Every change of `mutations.txt`.
pub fn all() -> Vec<Mutation> {
    let (_, table) = include_str!("mutations.txt")
        .split_once("\n== ")
        .expect("a change");
    let mutation = |text: &str| {
        let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut words = head.splitn(3, ' ');
        let name = words.next().expect("a name").to_owned();
        let whole = words.next().zip(words.next());
        let whole = whole.map(|(place, line)| (place.to_owned(), controls(line)));
        let rest = format!("\n{rest}");
        let parts = rest.split("\n-- ").skip(1).map(|part| {
            let (place, lines) = part.split_once('\n').unwrap_or((part, ""));
            (place.to_owned(), controls(lines))
        });
        Mutation {
            parts: whole.into_iter().chain(parts).collect(),
            name,
        }
    };
    let (families, mut all): (Vec<_>, Vec<_>) = table
        .split("\n== ")
        .map(mutation)
        .partition(|mutation| mutation.name.ends_with('*'));
    for family in families {
        let prefix = family.name.trim_end_matches('*');
        for mutation in &mut all {
            if mutation.name.starts_with(prefix) {
                let own = std::mem::replace(&mut mutation.parts, family.parts.clone());
                mutation.parts.extend(own);
            }
        }
    }
    all
}

/// Lines with characters that an editor would lose; `␃` is an end without a line's end.
fn controls(lines: &str) -> String {
    let until = match lines.split_once('␃') {
        Some((until, _)) => until.to_owned(),
        None => format!("{}\n", lines.trim_end_matches('\n')),
    };
    let pairs = [
        ("␂", "\u{feff}"),
        ("␍", "\r"),
        ("␉", "\t"),
        ("␠", " "),
        ("␤", "\u{85}"),
        ("␡", "\u{2028}"),
    ];
    pairs
        .iter()
        .fold(until, |text, (picture, c)| text.replace(picture, c))
}

impl Mutation {
    /// The variables that the shell has besides its usual ones, one `NAME=value` a line.
    pub fn shell(&self) -> String {
        let parts = self.parts.iter().filter(|(place, _)| place == "shell");
        parts.map(|(_, lines)| &lines[..]).collect()
    }

    /// Whether the stack has several files afterwards.
    pub fn is_several(&self) -> bool {
        let is_part =
            |place: &str| parts::WORDS.contains(&place.split(' ').next().unwrap_or_default());
        self.parts.iter().any(|(place, _)| is_part(place))
    }

    /// The text of the stack in `dir`, changed, its files written; `None` where it does not apply.
    pub fn applied(&self, text: &str, dir: &Path) -> Option<String> {
        let mut new = text.to_owned();
        let mut files: Vec<(String, String)> = Vec::new();
        for (place, lines) in &self.parts {
            let document = Document::parse(&new).ok()?;
            let (word, argument) = place.split_once(' ').unwrap_or((place, ""));
            let edits = match word {
                "mount" => mounts(&document, lines.trim_end(), &mut files),
                "service" => in_services(&document, lines),
                "first" => in_services(&document, lines).into_iter().take(1).collect(),
                "services" => Vec::from_iter(at_front(document.get("services")?, lines)),
                "root" => Vec::from_iter(at_front(document.root()?, lines)),
                "environment" => moved_environment(&document, argument, lines, &mut files),
                "shell" => continue,
                _ if parts::WORDS.contains(&word) => {
                    let (edits, file) = parts::moved(&document, word, argument, lines)?;
                    files.push(file);
                    new = edited(&new, edits);
                    continue;
                }
                _ => {
                    let found = DEFAULT_FILES.iter().find(|file| dir.join(file).exists());
                    let found = found.copied().unwrap_or_default();
                    files.push((place.clone(), lines.replace("{file}", found)));
                    continue;
                }
            };
            if edits.is_empty() {
                return None;
            }
            new = edited(&new, edits);
        }
        for (file, lines) in files {
            let path = dir.join(file);
            let mut text = fs::read_to_string(&path).unwrap_or_default();
            if lines.starts_with('\u{feff}') {
                text.clear();
            }
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            fs::create_dir_all(path.parent()?).expect("create");
            fs::write(path, text + &lines).expect("write");
        }
        Some(new)
    }
}

fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut new = text.to_owned();
    for (span, with) in edits {
        new.replace_range(span, &with);
    }
    new
}

/// Lines behind the column of a node.
fn indented(lines: &str, at: Node<'_>) -> String {
    let pad = " ".repeat(column(at));
    lines
        .trim_end_matches('\n')
        .replace('\n', &format!("\n{pad}"))
}

/// Each relative mount of the short syntax by `template`, in which `{path}` is its path behind `./`,
/// `{rest}` what follows the source, and `{n}` its number.
fn mounts(document: &Document<'_>, template: &str, files: &mut Vec<(String, String)>) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (template, env) = template.split_once("\n.env ").unwrap_or((template, ""));
    let all = services(document);
    let volumes = all.iter().filter_map(|one| one.node.get("volumes"));
    for item in volumes.flat_map(Node::own_items) {
        let parts = || item.as_str()?.strip_prefix("./")?.split_once(':');
        let is_plain = |path: &str| !path.is_empty() && !path.contains(['$', ' ']);
        let (NodeKind::Scalar(Style::Plain | Style::SingleQuoted | Style::DoubleQuoted), None) =
            (item.kind(), item.anchor().or(item.tag()))
        else {
            continue;
        };
        let Some((path, rest)) = parts().filter(|(path, _)| is_plain(path)) else {
            continue;
        };
        let n = edits.len().to_string();
        let filled = |text: &str| {
            text.replace("{path}", path)
                .replace("{rest}", rest)
                .replace("{n}", &n)
        };
        edits.push((item.span(), indented(&filled(template), item)));
        if !env.is_empty() {
            files.push((".env".into(), filled(env) + "\n"));
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    edits.dedup_by_key(|(span, _)| span.start);
    edits
}

/// Lines at the front of every service that has none of their keys.
fn in_services(document: &Document<'_>, lines: &str) -> Vec<Edit> {
    let lines_of =
        |service: &Service<'_>| at_front(service.node, &lines.replace("{service}", service.name));
    services(document).iter().filter_map(lines_of).collect()
}

/// Lines at the front of a block mapping that has none of their keys.
fn at_front(mapping: Node<'_>, lines: &str) -> Option<Edit> {
    let first = mapping.own_entries().next()?.key;
    let is_block = mapping.kind() == NodeKind::Mapping(Layout::Block);
    let (document, start) = (mapping.document(), first.span().start);
    let before = &document.text()[document.line_start(start)..start];
    let starts_line = before.trim_matches([' ', '\u{feff}']).is_empty();
    let is_there = |line: &str| {
        let key = line.split(':').next().unwrap_or_default();
        let key = key.trim_matches(['"', '\'', '?', ' ']);
        line.starts_with(|c: char| c.is_ascii_alphabetic()) && mapping.get(key).is_some()
    };
    if !is_block || !starts_line || lines.lines().any(is_there) {
        return None;
    }
    let (new, pad) = (indented(lines, first), " ".repeat(column(first)));
    Some((start..start, format!("{new}\n{pad}")))
}

/// Each service's own `environment` as an env file of its own, and `lines` in its place, in which `{file}`
/// is that file; `argument` says how its values are quoted.
fn moved_environment(
    document: &Document<'_>,
    argument: &str,
    lines: &str,
    files: &mut Vec<(String, String)>,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    for service in services(document) {
        let mut entries = service.node.own_entries();
        let Some(entry) = entries.find(|entry| entry.name() == Some("environment")) else {
            continue;
        };
        let is_own = matches!(
            entry.value.kind(),
            NodeKind::Mapping(Layout::Block) | NodeKind::Sequence(Layout::Block)
        );
        let variables = service.environment();
        let is_plain = |value: &str| !value.contains(['\n', '\'', '"', '\\', '#', '$']);
        if !is_own
            || service.node.get("env_file").is_some()
            || service.node.kind() == NodeKind::Alias
        {
            continue;
        }
        let mut text = String::new();
        let variables = variables.iter();
        for (name, value) in variables.filter(|(_, value)| value.is_none_or(is_plain)) {
            match (*value, argument) {
                (None, _) => writeln!(text, "{name}"),
                (Some(value), "single") => writeln!(text, "{name}='{value}'"),
                (Some(value), "double") => {
                    writeln!(text, "export {name}=\"{value}\" # c")
                }
                (Some(value), "colon") => writeln!(text, "{name}: {value}"),
                (Some(value), _) => writeln!(text, "{name}={value}"),
            }
            .expect("written");
        }
        let file = format!("mutant-{}.env", service.name);
        let new = indented(&lines.replace("{file}", &file), entry.key);
        let end = entry.value.span().start + document.text()[entry.value.span()].trim_end().len();
        edits.push((entry.key.span().start..end, new));
        files.push((file, text));
    }
    edits
}
