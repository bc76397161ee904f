//! The literal rewrite and its check (B02), compared with slow implementations of their rules.
//!
//! The first byte selects the directory, the rest is the text.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use composefile::document::{Document, Entry, NodeKind, Node, NodeId, ScalarType};
use stacklift::rewrite::{damage::{self, Damage, MOST, Verdict}, literal::{self, TextEdit, edits}};

const DIRS: [&str; 6] = [
    "/opt/stacks/web",
    "/",
    "/a b/#c",
    "/ü: - &x",
    "/s/./t",
    "/x\n\"'",
];

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let dir = DIRS[usize::from(first) % DIRS.len()];
    let rewritten = literal::rewrite(text, dir);
    assert_eq!(rewritten, by_the_rules(text, dir));
    edits_leave_the_rest_alone(text, dir, &rewritten);
    let original = match Document::parse(text) {
        Ok(original) => original,
        Err(error) => return assert!(error.offset <= text.len()),
    };
    match damage::judge_document(&original, &rewritten, dir) {
        Verdict::Undamaged => {
            let result = Document::parse(&rewritten).expect("an undamaged result is YAML");
            assert_eq!(
                tree(
                    &original,
                    |text| text.replace("./", &format!("{dir}/")),
                    true
                ),
                tree(&result, str::to_owned, false),
            );
        }
        Verdict::Damaged(damages) => {
            are_places(&damages, text);
            assert!(rewritten != text || damages.iter().all(|damage| stays(damage)));
            if let Ok(result) = Document::parse(&rewritten) {
                // The converse holds without aliases.
                let before = tree(
                    &original,
                    |text| text.replace("./", &format!("{dir}/")),
                    true,
                );
                if !before.iter().any(|node| node.starts_with('*')) {
                    assert_ne!(before, tree(&result, str::to_owned, false), "{damages:?}");
                }
            }
        }
    }
});

/// The rules, applied line by line.
fn by_the_rules(text: &str, dir: &str) -> String {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\u{b}' | '\u{c}' | '\r');
    let kept = text.split_inclusive('\n').filter(|line| {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let content = content.trim_start_matches(is_blank);
        let is_item = content.strip_prefix('-').is_some_and(|rest| {
            rest.starts_with(is_blank) && rest.trim_matches(is_blank) == ".env"
        });
        !content.starts_with("env_file:") && !is_item
    });
    kept.collect::<String>().replace("./", &format!("{dir}/"))
}

/// The edits are whole lines and dots, in order, and the bytes between them make the result.
fn edits_leave_the_rest_alone(text: &str, dir: &str, rewritten: &str) {
    let mut done = 0;
    let mut rest = rewritten;
    let pass = |rest: &mut &str, kept: &str| {
        *rest = rest.strip_prefix(kept).expect("an untouched byte differs");
    };
    for edit in edits(text) {
        match edit {
            TextEdit::Delete(line) => {
                assert!(line.start >= done && line.end > line.start);
                assert!(line.start == 0 || text.as_bytes()[line.start - 1] == b'\n');
                assert!(line.end == text.len() || text.as_bytes()[line.end - 1] == b'\n');
                pass(&mut rest, &text[done..line.start]);
                done = line.end;
            }
            TextEdit::Replace { dot } => {
                assert!(dot >= done && text[dot..].starts_with("./"));
                pass(&mut rest, &text[done..dot]);
                pass(&mut rest, dir);
                done = dot + 1;
            }
        }
    }
    assert_eq!(rest, &text[done..]);
}

fn are_places(damages: &[Damage], text: &str) {
    let lines = text.matches('\n').count() + 1;
    assert!(!damages.is_empty() && damages.len() <= MOST);
    assert!(damages.is_sorted());
    for damage in damages {
        assert!((1..=lines).contains(&damage.line), "{damage}");
        assert!(!damage.to_string().is_empty());
    }
}

/// Whether an unchanged text can have this damage.
fn stays(damage: &Damage) -> bool {
    matches!(damage.kind, damage::DamageKind::EnvFileStays { .. })
}

/// The meaning of a document, node by node in order; without `env_file` if `strip` is set.
fn tree(document: &Document, string: impl Fn(&str) -> String, strip: bool) -> Vec<String> {
    let mut said = Vec::new();
    let mut places: HashMap<NodeId, usize> = HashMap::new();
    let mut ahead: Vec<Step> = document
        .root()
        .map(|root| Step::Node(root, Part::Root))
        .into_iter()
        .collect();
    while let Some(step) = ahead.pop() {
        let (node, part) = match step {
            Step::Node(node, part) => (node, part),
            Step::End => {
                said.push("end".to_owned());
                continue;
            }
        };
        places.insert(node.id(), said.len());
        let tag = node.tag().map(&string);
        match node.kind() {
            NodeKind::Scalar(_) => {
                let (value, _) = node.scalar().expect("a scalar");
                said.push(format!(
                    "{tag:?} {:?} {:?}",
                    node.scalar_type(),
                    string(value)
                ));
            }
            NodeKind::Alias => {
                let target = places.get(&node.resolved().id());
                said.push(format!("*{target:?}"));
            }
            NodeKind::Sequence(_) => {
                said.push(format!("{tag:?} ["));
                ahead.push(Step::End);
                let items: Vec<_> = node.own_items().collect();
                ahead.extend(
                    items
                        .into_iter()
                        .rev()
                        .map(|item| Step::Node(item, part.item())),
                );
            }
            NodeKind::Mapping(_) => {
                let entries: Vec<_> = node
                    .own_entries()
                    .filter(|entry| !(strip && part.is_env_file(entry)))
                    .collect();
                said.push(format!("{tag:?} {{"));
                ahead.push(Step::End);
                for entry in entries.into_iter().rev() {
                    ahead.push(Step::Node(entry.value, part.below(&entry)));
                    ahead.push(Step::Node(entry.key, Part::Other));
                }
            }
        }
    }
    said
}

enum Step<'d> {
    Node(Node<'d>, Part),
    End,
}

/// Where `env_file` is a key of Compose: implemented from the rules, not from the code.
#[derive(Clone, Copy)]
enum Part {
    Root,
    Services,
    Service,
    Include,
    Item,
    Extension,
    Other,
}

impl Part {
    fn is_env_file(self, entry: &Entry) -> bool {
        matches!(self, Part::Service | Part::Item | Part::Extension)
            && entry.name() == Some("env_file")
    }

    fn item(self) -> Self {
        match self {
            Part::Include => Part::Item,
            Part::Services | Part::Service | Part::Extension => self,
            _ => Part::Other,
        }
    }

    fn below(self, entry: &Entry) -> Self {
        let name = entry.name().unwrap_or_default();
        if name == "<<" && entry.key.scalar_type() == Some(ScalarType::Merge) {
            return self;
        }
        match self {
            Part::Extension => Part::Extension,
            Part::Root if name == "services" => Part::Services,
            Part::Root if name == "include" => Part::Include,
            Part::Services => Part::Service,
            Part::Root | Part::Service if name.starts_with("x-") => Part::Extension,
            _ => Part::Other,
        }
    }
}
