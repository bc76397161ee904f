//! Differences between two texts, line by line.

use std::fmt;

use imara_diff::{
    Algorithm, BasicLineDiffPrinter, Diff, InternedInput, Interner, UnifiedDiffConfig,
};

use crate::rewrite::HIDDEN;

/// A text, and what is shown of it, line by line.
#[derive(Clone, Copy)]
pub(super) struct Shown<'t> {
    pub(super) text: &'t str,
    pub(super) shown: &'t str,
}

/// A line, and what is shown of it. Lines that are shown alike can differ.
#[derive(PartialEq, Eq, Hash)]
struct Line<'t>(&'t str, &'t str);

impl AsRef<[u8]> for Line<'_> {
    fn as_ref(&self) -> &[u8] {
        self.1.as_bytes()
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }
}

/// The hunks of a unified diff; empty if the texts are equal.
pub(super) fn hunks(before: Shown, after: Shown) -> String {
    let lines = |Shown { text, shown }| -> Vec<Line> {
        let shown = shown.split_inclusive('\n');
        let lines = text.split_inclusive('\n').zip(shown);
        lines.map(|(text, shown)| Line(text, shown)).collect()
    };
    let (before, after) = (lines(before), lines(after));
    let mut input = InternedInput {
        before: Vec::new(),
        after: Vec::new(),
        interner: Interner::new(before.len() + after.len()),
    };
    input.update_before(before.iter());
    input.update_after(after.iter());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    let hunks = diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input);
    told(&hunks.to_string())
}

/// Says of which hidden values only the value changed: both lines are shown alike.
fn told(hunks: &str) -> String {
    let mut told = String::with_capacity(hunks.len());
    let mut removed = Vec::new();
    for line in hunks.split_inclusive('\n') {
        let (sign, words) = line.split_at_checked(1).unwrap_or_default();
        match sign {
            "-" => removed.push(words),
            "+" if words.contains(HIDDEN) && removed.contains(&words) => {
                let end = words.trim_end_matches(['\r', '\n']);
                told.extend(["+", end, " (value changed)\n"]);
                continue;
            }
            "+" => {}
            _ => removed.clear(),
        }
        told.push_str(line);
    }
    told
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
        assert_eq!(
            hunks,
            "@@ -1,3 +1,3 @@\n-A=***\n+A=*** (value changed)\n B=***\n C\n"
        );
    }
}
