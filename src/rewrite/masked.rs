//! A Compose file without the values of variables, for output (B34).

use std::{collections::BTreeMap, ops::Range};

use composefile::{
    document::{Document, Node, NodeKind, NodeSet, Style},
    interpolate::occurrences,
};

use super::replaced;
use crate::text::{HIDDEN, Mask, replace_credentials};

/// The text with every value below an `environment` or `args` key hidden, also where an alias or a merge leads to it, without
/// the credentials of URLs, and without what `mask` hides: a value of `.env` may stand in a label, a command or a comment.
/// References such as `${NAME}` stay, without their defaults. A plain value stays within a longer word, and where
/// only names and paths stand. Every line stays a line. Of a text that is not YAML, only the keys stay.
pub fn masked(text: &str, mask: &Mask) -> String {
    let shown = match Document::parse(text) {
        Ok(document) => without_variables(&document),
        Err(_) => text.split_inclusive('\n').map(only_key).collect(),
    };
    let names = Document::parse(&shown).map_or_else(|_| Vec::new(), |document| names(&document));
    let mut end = 0;
    let hide = |line: &str| {
        let start = end;
        end += line.len();
        let references = references(line, 0);
        let stays = |place: &Range<usize>, is_plain: bool| {
            let at = start + place.start..start + place.end;
            contains(&references, place)
                || (is_plain && (contains(&names, &at) || !is_whole(line, place)))
        };
        replace_credentials(&mask.hide_unless(line, stays), without_literals).into_owned()
    };
    shown.split_inclusive('\n').map(hide).collect()
}

fn contains(ranges: &[Range<usize>], part: &Range<usize>) -> bool {
    let contains = |range: &Range<usize>| range.start <= part.start && part.end <= range.end;
    ranges.iter().any(contains)
}

/// Where only names, paths and images stand: keys, and values of the keys that have no others.
fn names(document: &Document) -> Vec<Range<usize>> {
    let mut names = Vec::new();
    for entry in document.nodes().flat_map(Node::own_entries) {
        names.push(entry.key.span());
        if let Some("container_name" | "depends_on" | "image" | "networks" | "volumes") =
            entry.name()
        {
            let items = entry.value.own_items();
            let fields = items.clone().flat_map(Node::own_entries);
            let values = items.chain(fields.map(|field| field.value));
            let scalars = values.chain([entry.value]).filter(|node| node.is_scalar());
            names.extend(scalars.map(Node::span));
        }
    }
    names
}

/// Where the names of variables in `${NAME}` stand, also within defaults. `text` begins at the offset `at`.
fn references(text: &str, at: usize) -> Vec<Range<usize>> {
    let mut names = Vec::new();
    for one in occurrences(text) {
        let start = at + one.span.start + 2;
        if text[one.span.clone()].starts_with("${") {
            names.push(start..start + one.name.len());
            names.extend(references(&text[one.word.clone()], at + one.word.start));
        }
    }
    names
}

/// Whether a part of a text is no part of a longer word. A word can also begin after an escape (`\n`, `%3D`) and after an option
/// of one letter (`-p`).
fn is_whole(text: &str, part: &Range<usize>) -> bool {
    let (before, word, after) = (&text[..part.start], &text[part.clone()], &text[part.end..]);
    let is_of_word = char::is_alphanumeric;
    let start = before.trim_end_matches(is_of_word);
    let begins = match (before.len() - start.len(), start.chars().next_back()) {
        (0, _) | (1, Some('-')) | (1..=5, Some('\\' | '%')) => true,
        _ => !word.starts_with(is_of_word),
    };
    begins && !(word.ends_with(is_of_word) && after.starts_with(is_of_word))
}

/// The text with everything hidden except for references such as `${NAME}`. Of `$NAME`, only a whole text stays: a `$`
/// may be meant as a part of a secret.
fn without_literals(text: &str) -> String {
    let hide = |literal: &str| if literal.is_empty() { "" } else { HIDDEN };
    let (mut shown, mut done) = (String::new(), 0);
    for one in occurrences(text) {
        let (reference, word) = (&text[one.span.clone()], &text[one.word.clone()]);
        let is_constant = !one.name.contains(|c: char| c.is_ascii_lowercase());
        if reference.starts_with("${") || (reference == text && is_constant) {
            shown.push_str(hide(&text[done..one.span.start]));
            shown.push_str(&text[one.span.start..one.word.start]);
            shown.push_str(&without_literals(word));
            shown.push_str(&text[one.word.end..one.span.end]);
            done = one.span.end;
        }
    }
    shown + hide(&text[done..])
}

fn without_variables(document: &Document) -> String {
    // A value can be a whole value at one place and an item at another.
    let ranges = hidden_ranges(document).into_iter();
    let ranges = ranges.map(|(start, (end, instead))| (start..end, instead));
    replaced(document.text(), ranges)
}

/// How a list or a scalar holds values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// As `NAME=value`.
    Assignments,
    Values,
}

/// The end of each range to hide, and the text to show instead, by the start of the range.
fn hidden_ranges(document: &Document) -> BTreeMap<usize, (usize, String)> {
    let entries = document.nodes().flat_map(Node::own_entries);
    let mut ahead: Vec<_> = entries
        .filter(|entry| matches!(entry.name(), Some("environment" | "args")))
        .map(|entry| (entry.value.resolved(), Holds::Assignments))
        .collect();
    let mut seen = [NodeSet::default(), NodeSet::default()];
    let mut ranges = BTreeMap::new();
    while let Some((node, holds)) = ahead.pop() {
        if !seen[holds as usize].insert(node.id()) {
            continue;
        }
        ahead.extend(node.own_items().map(|item| (item.resolved(), holds)));
        // Merged mappings too, even where a key of this one takes precedence.
        let entries = node.mappings().flat_map(Node::own_entries);
        let values = entries.filter(|entry| !entry.is_merge());
        ahead.extend(values.map(|entry| (entry.value.resolved(), Holds::Values)));
        let Some(value) = node.as_str() else { continue };
        let span = node.span();
        let written = &document.text()[span.clone()];
        let NodeKind::Scalar(style) = node.kind() else {
            continue;
        };
        let name = match holds {
            Holds::Values => 0,
            Holds::Assignments if !value.contains('=') => continue,
            // An escaped `=` may be the one that ends the name.
            Holds::Assignments if written.matches('=').count() != value.matches('=').count() => 0,
            Holds::Assignments => written.find('=').map_or(0, |at| at + 1),
        };
        let instead = instead(written, name, style);
        ranges.insert(span.start + name, (span.end, instead));
    }
    ranges
}

/// What to show in place of the scalar `written`, from the byte `start` on.
fn instead(written: &str, start: usize, style: Style) -> String {
    let quote = match style {
        Style::Literal | Style::Folded => return lines(&written[start..]),
        Style::Plain if start > 0 => return lines(&written[start..]),
        Style::SingleQuoted if start > 0 => "'",
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => "\"",
    };
    if start == 0 {
        let inner = match style {
            Style::Plain => written,
            _ => written.get(1..written.len() - 1).unwrap_or(written),
        };
        let shown = lines(inner);
        return if !shown.contains('$') {
            format!("{quote}{}{quote}", lines(written))
        } else if shown == inner {
            written.to_owned()
        } else {
            format!("{quote}{shown}{quote}")
        };
    }
    let value = written[start..].strip_suffix(quote);
    lines(value.unwrap_or(&written[start..])) + quote
}

/// Each line hidden except for references, with its indentation and its end.
fn lines(value: &str) -> String {
    let line = |line: &str| match line.trim() {
        "" => line.to_owned(),
        hidden => line.replacen(hidden, &without_literals(hidden), 1),
    };
    value.split_inclusive('\n').map(line).collect()
}

/// A line of a text that is not YAML: what follows its key is hidden.
fn only_key(line: &str) -> String {
    let item = line.trim_start_matches([' ', '\t', '-', '\u{feff}']);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name = item.trim_start_matches(is_of_name);
    let ends_name =
        |c: char| c == '=' || (c == ':' && name[1..].starts_with([' ', '\n', '\r', '\t']));
    let is_key = name.len() < item.len() && name.starts_with(ends_name);
    let kept = line.len() - if is_key { name.len() - 1 } else { item.len() };
    let hidden = line[kept..].trim();
    let shown = if hidden.is_empty() { "" } else { HIDDEN };
    line[..kept].to_owned() + &line[kept..].replacen(hidden, shown, 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hidden(text: &str) -> String {
        masked(text, &Mask::default())
    }

    #[test]
    fn b34_the_values_of_variables_are_hidden() {
        for (text, shown) in [
            (
                "environment: {A: x, B: 1, C: , D: 'x', \"E\": \"x\", F: !!str x} # c",
                "environment: {A: \"***\", B: \"***\", C: , D: \"***\", \"E\": \"***\", F: !!str \"***\"} # c",
            ),
            (
                "environment:\n- A=x=y\n- B\n- 'C=x'\n- \"D=x\"\n- \"E\\x3Dx\"\n- F=\n",
                "environment:\n- A=***\n- B\n- 'C=***'\n- \"D=***\"\n- \"***\"\n- F=\n",
            ),
            (
                "environment:\r\n  A: |\r\n    x\r\n\r\n    y\r\n  B: x\r\n    y\r\n  C: 'x\r\n    '\r\n",
                "environment:\r\n  A: |\r\n    ***\r\n\r\n    ***\r\n  B: \"***\r\n    ***\"\r\n  C: \"***\r\n    ***\"\r\n",
            ),
            (
                "build: {args: {A: x}, labels: {B: x}}\nsecrets: {s: {environment: A}}",
                "build: {args: {A: \"***\"}, labels: {B: x}}\nsecrets: {s: {environment: A}}",
            ),
            (
                "x-a: &a {A: x}\nx-b: &b x\nx-c: &c [C=x]\na: {environment: {<<: *a, A: y, B: *b}}\nb: {environment: *c}",
                "x-a: &a {A: \"***\"}\nx-b: &b \"***\"\nx-c: &c [C=***]\na: {environment: {<<: *a, A: \"***\", B: *b}}\nb: {environment: *c}",
            ),
            // Compose rejects these.
            (
                "environment: [{A: x, B: [x]}]\nx: {args: A=x}",
                "environment: [{A: \"***\", B: [\"***\"]}]\nx: {args: A=***}",
            ),
            (
                "command: psql postgres://u:x@db/a # https://u:x@h",
                "command: psql postgres://***@db/a # https://***@h",
            ),
        ] {
            assert_eq!(hidden(text), shown, "{text}");
        }
    }

    #[test]
    fn b34_references_stay_without_their_defaults() {
        for (text, shown) in [
            (
                "environment: {A: '${A}', B: $B, C: \"${C:?set it}\", D: '$ecret', E: 'x$B', F: $$B}",
                "environment: {A: '${A}', B: $B, C: \"${C:?***}\", D: \"***\", E: \"***\", F: \"***\"}",
            ),
            (
                "environment:\n  - A=${A}\n  - B=x${B:-${C-x}}\n  - 'C=${C'\n",
                "environment:\n  - A=${A}\n  - B=***${B:-${C-***}}\n  - 'C=***'\n",
            ),
            (
                "environment:\n  A: db://u:${P}@h/a\n  B: |\n    x\n    y ${B}\n  C: '$${x}'\n",
                "environment:\n  A: \"***${P}***\"\n  B: |\n    ***\n    ***${B}\n  C: \"***\"\n",
            ),
            (
                "command: psql db://u:${P}@h/a db://u:x@h # ${A:-x}",
                "command: psql db://***${P}@h/a db://***@h # ${A:-x}",
            ),
        ] {
            assert_eq!(hidden(text), shown, "{text}");
        }
    }

    /// The values of an `.env`: a user, a password, a zone, a directory, a key, and text of two lines.
    const VALUES: [&str; 6] = [
        "postgres",
        "tr0ub4dor&3-x",
        "Europe/Berlin",
        "./library",
        "DB_PASSWORD",
        "-----KEY-----\nMIIEvQIBADANBg",
    ];

    #[test]
    fn b34_names_and_paths_stay_readable() {
        let text = "\
services:
  postgres:
    image: ghcr.io/immich-app/postgres:14
    container_name: postgres
    depends_on: [postgres]
    command: stat /var/lib/postgresql/data ${DB_PASSWORD}
    volumes:
      - ./library:/data
      - postgres:/var/lib/postgresql/data
      - {type: bind, source: ./library, target: /b}
volumes: {postgres: {}}
";
        assert_eq!(masked(text, &Mask::new(VALUES)), text);
    }

    #[test]
    fn b34_values_are_hidden_wherever_they_are_written() {
        let mask = Mask::new(VALUES);
        for (text, shown) in [
            ("a: psql -U postgres -ppostgres", "a: psql -U *** -p***"),
            ("a: \"x\\npostgres %3Dpostgres\"", "a: \"x\\n*** %3D***\""),
            ("a: '{\"user\":\"postgres\"}'", "a: '{\"user\":\"***\"}'"),
            ("a: db://postgres:x@h/postgres", "a: db://***@h/***"),
            ("a: ${A:-postgres} ${A-postgres}", "a: ${A:-***} ${A-***}"),
            ("a: xtr0ub4dor&3-xy", "a: x***y"),
            ("volumes: [/tr0ub4dor&3-x:/a]", "volumes: [/***:/a]"),
            (
                "tr0ub4dor&3-x: {image: 'tr0ub4dor&3-x'}",
                "***: {image: '***'}",
            ),
            (
                "volumes: {a: {driver_opts: {o: u=postgres}}}",
                "volumes: {a: {driver_opts: {o: u=***}}}",
            ),
            (
                "a: |\n  -----KEY-----\n  MIIEvQIBADANBg\n",
                "a: |\n  ***\n  ***\n",
            ),
            (
                "# postgres: tr0ub4dor&3-x, Europe/Berlin",
                "# ***: ***, ***",
            ),
        ] {
            assert_eq!(masked(text, &mask), shown, "{text}");
        }
    }

    #[test]
    fn b34_of_a_text_that_is_not_yaml_only_the_keys_stay() {
        let text = "\u{feff}a: [\n  b: x # y\n  - C=x: y\n  - \"D=x\"\n  # x\n\n  e:\n  x\n  https://x\n f:x\r\n  G=";
        let shown = "\u{feff}a: ***\n  b: ***\n  - C=***\n  - ***\n  ***\n\n  e:\n  ***\n  ***\n ***\r\n  G=";
        assert_eq!(hidden(text), shown);
    }

    #[test]
    fn b34_a_chain_of_aliases_is_followed_without_recursion() {
        use std::fmt::Write as _;
        let mut text = "x0: &a0 [x]\n".to_owned();
        for n in 1..20_000 {
            writeln!(text, "x{n}: &a{n} [*a{}]", n - 1).expect("a string");
        }
        text.push_str("environment: {A: *a19999, B: &b [*b]}\n");
        assert!(hidden(&text).starts_with("x0: &a0 [\"***\"]\n"));
    }

    proptest! {
        #[test]
        fn b34_no_text_shows_a_secret(
            text in "(SECRET|environment|volumes|image|[a-z]|-|  |: |\\n|\\n  |\\n    |A=|://|@|\\$\\{?|\\}|[|>&*'\"{}\\[\\],#!=]|\\\\|é){0,30}",
            secret in "[a-z]{4}[0-9A-Z!-]{5}!",
        ) {
            let shown = masked(&text.replace("SECRET", &secret), &Mask::new([secret.as_str()]));
            prop_assert!(!shown.contains(&secret), "{shown}");
        }

        #[test]
        fn b34_every_line_stays_a_line(
            text in "(environment|args|[ab]|-|  |: |\\n|\\n  |\\n    |A=|[|>&*'\"{}\\[\\],#!=]|[a-c]|é){0,30}",
        ) {
            let shown = hidden(&text);
            prop_assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
        }
    }
}
