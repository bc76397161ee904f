//! Differences between two texts, line by line.

use std::fmt;

use imara_diff::{
    Algorithm, Diff, InternedInput, Interner, Token, UnifiedDiffConfig, UnifiedDiffPrinter,
};

use crate::text::HIDDEN;

/// How many lines around a change are shown.
const CONTEXT: u32 = 3;

/// A text, and what is shown of it, line by line. If the lines do not correspond, only what is shown is compared.
#[derive(Clone, Copy)]
pub struct Shown<'t> {
    /// What is compared.
    pub text: &'t str,
    /// What is shown of it.
    pub shown: &'t str,
}

impl<'t> Shown<'t> {
    /// Nothing is hidden.
    pub fn all(text: &'t str) -> Self {
        Self { text, shown: text }
    }

    fn lines(self) -> Vec<Line<'t>> {
        let count = |text: &str| text.split_inclusive('\n').count();
        let text = if count(self.text) == count(self.shown) {
            self.text
        } else {
            self.shown
        };
        let shown = self.shown.split_inclusive('\n');
        let lines = text.split_inclusive('\n').zip(shown);
        lines.map(|(text, shown)| Line(text, shown)).collect()
    }
}

/// A line, and what is shown of it. Lines that are shown alike can differ.
#[derive(PartialEq, Eq, Hash)]
struct Line<'t>(&'t str, &'t str);

impl AsRef<[u8]> for Line<'_> {
    fn as_ref(&self) -> &[u8] {
        self.1.as_bytes()
    }
}

/// How many lines change: of each hunk, the longer side.
pub fn changed_lines(before: &str, after: &str) -> usize {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let lines = diff
        .hunks()
        .map(|hunk| hunk.before.len().max(hunk.after.len()));
    lines.sum()
}

/// The hunks of a unified diff; empty if the texts are equal.
pub fn hunks(before: Shown, after: Shown) -> String {
    let (before, after) = (before.lines(), after.lines());
    let mut input = InternedInput {
        before: Vec::new(),
        after: Vec::new(),
        interner: Interner::new(before.len() + after.len()),
    };
    input.update_before(before.iter());
    input.update_after(after.iter());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = Printer(&input.interner);
    let mut config = UnifiedDiffConfig::default();
    config.context_len(CONTEXT);
    diff.unified_diff(&printer, config, &input).to_string()
}

/// Prints what is shown of the lines, and what changed of those that are shown alike: the hidden value, or perhaps only its quotes.
struct Printer<'i, 't>(&'i Interner<&'i Line<'t>>);

impl UnifiedDiffPrinter for Printer<'_, '_> {
    fn display_header(
        &self,
        mut f: impl fmt::Write,
        start_before: u32,
        start_after: u32,
        len_before: u32,
        len_after: u32,
    ) -> fmt::Result {
        // imara-diff prints the first hunk from the first line on if it begins within the context twice, and counts
        // without these lines.
        let (before, after) = match start_before {
            1..=CONTEXT => (1, 1),
            _ => (start_before + 1, start_after + 1),
        };
        writeln!(f, "@@ -{before},{len_before} +{after},{len_after} @@")
    }

    fn display_context_token(&self, mut f: impl fmt::Write, token: Token) -> fmt::Result {
        write_line(&mut f, ' ', self.0[token].1)
    }

    fn display_hunk(
        &self,
        mut f: impl fmt::Write,
        before: &[Token],
        after: &[Token],
    ) -> fmt::Result {
        for &token in before {
            write_line(&mut f, '-', self.0[token].1)?;
        }
        for token in after {
            let shown = self.0[*token].1;
            let alike = before.iter().filter(|old| self.0[**old].1 == shown);
            let mut alike = alike.map(|old| self.0[*old].0).peekable();
            // A line that is in both was only moved.
            if !shown.contains(HIDDEN) || alike.peek().is_none() || before.contains(token) {
                write_line(&mut f, '+', shown)?;
                continue;
            }
            let may_be_quotes = alike.any(|old| unquoted(old).eq(unquoted(self.0[*token].0)));
            let what = if may_be_quotes {
                "value or quotes changed"
            } else {
                "value changed"
            };
            writeln!(f, "+{} ({what})", shown.trim_end())?;
        }
        Ok(())
    }
}

/// The text without quotes: Compose prints others than people write.
fn unquoted(line: &str) -> impl Iterator<Item = char> {
    line.chars().filter(|c| !matches!(c, '"' | '\''))
}

/// Like `diff`, names a last line that has no end: it differs from the same line that has one.
fn write_line(f: &mut impl fmt::Write, sign: char, line: &str) -> fmt::Result {
    match line.strip_suffix('\n') {
        Some(line) => writeln!(f, "{sign}{line}"),
        None => writeln!(f, "{sign}{line}\n\\ No newline at end of file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hidden_value_it_is_said_that_it_changed() {
        let shown = |text| Shown {
            text,
            shown: "A=***\nB=***\nC\n",
        };
        let (before, after) = (shown("A=1\nB=1\nC\n"), shown("A=2\nB=1\nC\n"));
        let hunks = hunks(before, after);
        let expected = "@@ -1,3 +1,3 @@\n-A=***\n+A=*** (value changed)\n B=***\n C\n";
        assert_eq!(hunks, expected);
    }

    #[test]
    fn of_a_hidden_value_with_other_quotes_it_is_not_said_that_it_changed() {
        let shown = |text| Shown {
            text,
            shown: "A: \"***\"\n",
        };
        let hunks = hunks(shown("A: 80\n"), shown("A: \"80\"\n"));
        let expected = "+A: \"***\" (value or quotes changed)\n";
        assert!(hunks.ends_with(expected), "{hunks}");
    }

    #[test]
    fn the_lines_of_a_hunk_are_those_that_it_shows() {
        let text = |at: usize| {
            let line = |n| {
                if n == at {
                    "x\n".to_owned()
                } else {
                    format!("{n}\n")
                }
            };
            (0..20).map(line).collect::<String>()
        };
        for (at, head) in [
            (2, "-1,6"),
            (3, "-1,7"),
            (4, "-1,8"),
            (6, "-1,10"),
            (7, "-5,7"),
        ] {
            let (before, after) = (text(20), text(at));
            let hunks = hunks(Shown::all(&before), Shown::all(&after));
            assert!(hunks.starts_with(&format!("@@ {head} +")), "{at}: {hunks}");
            let first: usize = head[1..].split(',').next().unwrap().parse().unwrap();
            let shown = hunks.lines().nth(1).unwrap();
            assert_eq!(shown, format!(" {}", first - 1), "{hunks}");
        }
    }

    #[test]
    fn a_last_line_without_an_end_is_named() {
        let expected = "@@ -1,2 +1,2 @@\n A\n-B\n\\ No newline at end of file\n+B\n";
        assert_eq!(hunks(Shown::all("A\nB"), Shown::all("A\nB\n")), expected);
    }

    #[test]
    fn a_hidden_value_that_is_only_moved_has_not_changed() {
        let (before, after) = (["A=1\nB\n", "A=***\nB\n"], ["B\nA=1\n", "B\nA=***\n"]);
        let of = |[text, shown]: [&'static str; 2]| Shown { text, shown };
        let hunks = hunks(of(before), of(after));
        assert!(!hunks.contains("value changed"), "{hunks}");
    }
}
