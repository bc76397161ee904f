//! Writes a text in another style: the same nodes, other bytes.
#![allow(
    clippy::format_push_string,
    reason = "it reads better, and the texts are short"
)]

use std::collections::HashMap;

use composefile::document::{Document, Entry, Node, NodeKind, ScalarType, Style};

/// `text` written as the words of `style` say; `None` where it cannot be.
pub fn restyled(text: &str, style: &str) -> Option<String> {
    let mut words = style.split_whitespace();
    words.try_fold(text.to_owned(), |text, word| one(&text, word))
}

fn one(text: &str, word: &str) -> Option<String> {
    let lines = |f: &dyn Fn((usize, &str)) -> String| text.lines().enumerate().map(f).collect();
    // A comment or a blank inside of a block scalar would be part of it.
    let is_flat = || !text.contains(['|', '>', '\t']);
    Some(match word {
        "bom" => format!("\u{feff}{text}"),
        "crlf" => lines(&|(_, line)| format!("{line}\r\n")),
        "mixed" => lines(&|(at, line)| format!("{line}{}", ["\n", "\r\n"][at % 2])),
        "cr" if is_flat() => lines(&|(_, line)| format!("{line}\r")),
        "cut" => text.trim_end().to_owned(),
        "trailing" if is_flat() => lines(&|(_, line)| format!("{line}   \n")),
        "begun" | "ended" | "directive" if text.contains("---") => return None,
        "begun" => format!("# before\n---\n{text}"),
        "ended" => format!("---\n{}\n...\n# after\n", text.trim_end()),
        "directive" => format!("%YAML 1.1\n---\n{text}"),
        "between" if is_flat() => lines(&|(_, line)| format!("# ./c: *x &y $Z {{\n{line}\n\n")),
        "behind" if is_flat() && !text.contains(['"', '\'']) => {
            lines(&|(_, line)| format!("{line} # ./c: ${{\n"))
        }
        "tabs" if is_flat() => text.replace(": ", ":\t").replace(" #", "\t#"),
        "long" => format!("{text}\n# {}\n", "x".repeat(100_000)),
        "cr" | "trailing" | "between" | "behind" | "tabs" => return None,
        _ => {
            let document = Document::parse(text).ok()?;
            let mut writer = Writer::new(word)?;
            let root = document.root()?;
            let mut new = writer
                .value(root, 0)
                .trim_start_matches(['\n', ' '])
                .to_owned();
            new.push('\n');
            new
        }
    })
}

/// Writes nodes; one thing of it is not as usual.
struct Writer<'w> {
    word: &'w str,
    step: usize,
    /// Whether a flow collection is open.
    flow: bool,
    /// Anchors of what is written once and shared, by what it says.
    shared: HashMap<String, usize>,
}

impl<'w> Writer<'w> {
    fn new(word: &'w str) -> Option<Self> {
        let known = [
            "usual",
            "indentless",
            "flow",
            "flow-lines",
            "flow-items",
            "keys-double",
            "keys-single",
            "keys-explicit",
            "keys-tagged",
            "keys-anchored",
            "scalars-double",
            "scalars-escaped",
            "scalars-continued",
            "scalars-single",
            "scalars-literal",
            "scalars-folded",
            "scalars-tagged",
            "scalars-anchored",
            "scalars-wrapped",
            "scalars-below",
            "share-scalars",
            "share-all",
            "by-merge",
            "by-list",
            "by-alias",
            "by-extends",
        ];
        let step = word
            .strip_prefix("indent-")
            .and_then(|step| step.parse().ok());
        (step.is_some() || known.contains(&word)).then(|| Self {
            word,
            step: step.unwrap_or(2),
            flow: matches!(word, "flow" | "flow-lines"),
            shared: HashMap::new(),
        })
    }

    /// What stands behind `key:` or `-`.
    fn value(&mut self, node: Node<'_>, indent: usize) -> String {
        if let Some(alias) = self.alias(node) {
            return alias;
        }
        let properties = self.properties(node);
        let inside = match node.kind() {
            NodeKind::Scalar(_) => format!(" {}", self.scalar(node, indent)),
            NodeKind::Mapping(_) if node.own_entries().next().is_none() => " {}".to_owned(),
            NodeKind::Sequence(_) if node.own_items().next().is_none() => " []".to_owned(),
            NodeKind::Mapping(_) => self.mapping(node, indent),
            _ => self.sequence(node, indent),
        };
        properties + &inside
    }

    fn alias(&mut self, node: Node<'_>) -> Option<String> {
        let source = &node.document().text()[node.span()];
        if node.kind() == NodeKind::Alias {
            return Some(format!(" {source}"));
        }
        let shares = match self.word {
            "share-scalars" => node.is_scalar(),
            "share-all" => true,
            _ => false,
        };
        let is_text = !node.is_scalar() || node.scalar_type() == Some(ScalarType::Text);
        if !shares || !is_text || node.anchor().is_some() || source.contains(['&', '*']) {
            return None;
        }
        let at = self.shared.len();
        if let Some(known) = self.shared.get(source) {
            return Some(format!(" *mutant-{known}"));
        }
        self.shared.insert(source.to_owned(), at);
        None
    }

    fn properties(&mut self, node: Node<'_>) -> String {
        let mut out = String::new();
        if let Some(anchor) = node.anchor() {
            out += &format!(" &{anchor}");
        } else if let Some(at) = self.shared.get(&node.document().text()[node.span()]) {
            out += &format!(" &mutant-{at}");
        } else if self.word == "scalars-anchored" && node.is_scalar() {
            out += &format!(" &mutant-{}", node.span().start);
        }
        match node.tag() {
            Some(tag) => out += &format!(" {tag}"),
            None if self.word == "scalars-tagged"
                && node.scalar_type() == Some(ScalarType::Text) =>
            {
                out.push_str(" !!str");
            }
            None => {}
        }
        out
    }

    fn mapping(&mut self, node: Node<'_>, indent: usize) -> String {
        if self.flow || self.word == "flow-items" && indent >= 2 * self.step {
            let was = std::mem::replace(&mut self.flow, true);
            let entries = node.own_entries();
            let parts = entries
                .map(|entry| format!("{}:{}", self.key(entry.key), self.value(entry.value, 0)));
            let parts: Vec<_> = parts.collect();
            self.flow = was;
            return self.bracketed('{', &parts, '}');
        }
        let pad = format!("\n{}", " ".repeat(indent));
        let mut out = String::new();
        for entry in node.own_entries() {
            if self.word.starts_with("by-") && indent == 0 && entry.name() == Some("services") {
                out += &self.services(entry);
                continue;
            }
            let value = self.value(entry.value, indent + self.step);
            let key = self.key(entry.key);
            let between = if self.word == "keys-explicit" {
                &pad
            } else {
                ""
            };
            out += &format!("{pad}{key}{between}:{value}");
        }
        out
    }

    fn sequence(&mut self, node: Node<'_>, indent: usize) -> String {
        if self.flow || self.word == "flow-items" {
            let was = std::mem::replace(&mut self.flow, true);
            let parts = node.own_items().map(|item| self.value(item, 0));
            let parts: Vec<_> = parts.map(|part| part.trim_start().to_owned()).collect();
            self.flow = was;
            return self.bracketed('[', &parts, ']');
        }
        let indent = match self.word {
            "indentless" => indent - self.step,
            _ => indent,
        };
        let pad = format!("\n{}", " ".repeat(indent));
        let deeper = format!("\n{}", " ".repeat(indent + 2));
        let mut out = String::new();
        for item in node.own_items() {
            let value = self.value(item, indent + 2);
            let compact = value.strip_prefix(&deeper).filter(|_| item.is_mapping());
            out += &match compact {
                Some(rest) => format!("{pad}- {rest}"),
                None => format!("{pad}-{value}"),
            };
        }
        out
    }

    fn bracketed(&self, open: char, parts: &[String], close: char) -> String {
        let separator = match self.word {
            "flow-lines" => " # ./c }\n ,",
            _ => ", ",
        };
        format!(" {open}{}{close}", parts.join(separator))
    }

    /// Each service by way of a fragment.
    fn services(&mut self, entry: Entry<'_>) -> String {
        let (mut before, mut after) = (String::new(), "\nservices:".to_owned());
        for (at, service) in entry.value.own_entries().enumerate() {
            let key = self.key(service.key);
            let own: Vec<_> = service.value.own_entries().collect();
            if own.is_empty() {
                after += &format!("\n  {key}:{}", self.value(service.value, 4));
                continue;
            }
            let anchor = service.value.anchor().map(str::to_owned);
            let anchor = anchor.unwrap_or_else(|| format!("mutant-{at}"));
            let fragments = if self.word == "by-list" {
                vec![&own[..own.len() / 2], &own[own.len() / 2..]]
            } else {
                vec![&own[..]]
            };
            let mut names = Vec::new();
            for (part, entries) in fragments.iter().enumerate() {
                if entries.is_empty() {
                    continue;
                }
                let name = format!("{anchor}{}", ["", "-b"][part]);
                let (place, pad) = match self.word {
                    "by-extends" => (&mut after, "\n  "),
                    _ => (&mut before, "\n"),
                };
                *place += &format!("{pad}x-{name}: &{name}");
                for entry in *entries {
                    let value = self.value(entry.value, pad.len() + 3);
                    *place += &format!("{pad}  {}:{value}", self.key(entry.key));
                }
                names.push(name);
            }
            let all = names.iter().map(|name| format!("*{name}"));
            after += &match self.word {
                "by-alias" => format!("\n  {key}: *{anchor}"),
                "by-extends" => format!("\n  {key}: {{extends: {{service: x-{anchor}}}}}"),
                "by-list" => format!(
                    "\n  {key}: {{<<: [{}]}}",
                    all.collect::<Vec<_>>().join(", ")
                ),
                _ => format!("\n  {key}:\n    <<: *{anchor}"),
            };
        }
        before + &after
    }

    fn key(&self, node: Node<'_>) -> String {
        let (name, _) = node.scalar().unwrap_or(("", Style::Plain));
        let source = &node.document().text()[node.span()];
        if name == "<<" || node.kind() == NodeKind::Alias {
            return format!("{source} ");
        }
        match self.word {
            "keys-double" => double(name),
            "keys-single" => format!("'{}'", name.replace('\'', "''")),
            "keys-explicit" => format!("? {source}"),
            "keys-tagged" => format!("!!str {}", double(name)),
            "keys-anchored" => format!("&key-{} {source}", node.span().start),
            _ => source.to_owned(),
        }
    }

    fn scalar(&self, node: Node<'_>, indent: usize) -> String {
        let (value, style) = node.scalar().expect("a scalar");
        let source = &node.document().text()[node.span()];
        let is_block = matches!(style, Style::Literal | Style::Folded);
        if node.scalar_type() != Some(ScalarType::Text) {
            return if source.is_empty() {
                "null".into()
            } else {
                source.to_owned()
            };
        }
        let pad = " ".repeat(indent.max(1));
        let is_line = !value.contains(char::is_control) && !value.is_empty();
        let bare = is_line && value.trim() == value && !self.flow;
        match self.word {
            "scalars-single" if is_line => format!("'{}'", value.replace('\'', "''")),
            "scalars-literal" if bare => format!("|-\n{pad}{value}"),
            "scalars-folded" if bare => format!(">-\n{pad}{value}"),
            "scalars-escaped" => escaped(value),
            "scalars-continued" if is_line => {
                let middle = value.char_indices().nth(value.chars().count() / 2);
                let (a, b) = value.split_at(middle.map_or(0, |(at, _)| at));
                let (a, b) = (double(a), double(b));
                // A blank at the start of a line would go.
                let b = b[1..]
                    .strip_prefix(' ')
                    .map_or(b[1..].to_owned(), |b| format!("\\x20{b}"));
                format!("{}\\\n{pad}{b}", &a[..a.len() - 1])
            }
            "scalars-wrapped" if style == Style::Plain && bare && !source.contains("  ") => {
                source.replace(' ', &format!("\n{pad}"))
            }
            "scalars-below" if bare && !is_block && is_line && !source.contains('\n') => {
                format!("\n{pad}{source}")
            }
            "scalars-double" => double(value),
            _ if is_block || source.contains('\n') => double(value),
            _ if self.flow && style == Style::Plain => double(value),
            _ => source.to_owned(),
        }
    }
}

fn double(value: &str) -> String {
    let one = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", value.chars().map(one).collect::<String>())
}

/// Every character that can be one, as an escape.
fn escaped(value: &str) -> String {
    let one = |c: char| match u32::from(c) {
        code @ ..0x80 if !c.is_ascii_alphanumeric() => format!("\\x{code:02X}"),
        code @ ..0x1_0000 => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    };
    format!("\"{}\"", value.chars().map(one).collect::<String>())
}
