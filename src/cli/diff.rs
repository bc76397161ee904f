//! Differences between two texts, line by line.

use std::fmt::{self, Write as _};

use imara_diff::{
    Algorithm, BasicLineDiffPrinter, Diff, InternedInput, Interner, UnifiedDiffConfig,
};

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
    diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input)
        .to_string()
}

/// The changed lines after `-` or `+`, indented ones below the heading that they belong to: the last line before them
/// that is not indented. Empty if the texts are equal.
pub(super) fn lines(before: &str, after: &str) -> String {
    // The last line must not differ by its missing end.
    let (before, after) = (format!("{before}\n"), format!("{after}\n"));
    let input = InternedInput::new(before.as_str(), after.as_str());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let is_heading = |line: &&str| !line.starts_with(' ');
    let mut shown = String::new();
    let mut last_heading = None;
    for hunk in diff.hunks() {
        let removed = &before[hunk.before.start as usize..hunk.before.end as usize];
        let added = &after[hunk.after.start as usize..hunk.after.end as usize];
        let above = &after[..hunk.after.start as usize];
        let heading = above.iter().rposition(is_heading);
        let has_own = removed.first().or(added.first()).is_some_and(is_heading);
        if let Some(at) = heading.filter(|_| !has_own && heading != last_heading) {
            // Writing to a String does not fail.
            let _ = writeln!(shown, "  {}", after[at]);
        }
        last_heading = heading;
        let removed = removed.iter().map(|line| ('-', line));
        for (sign, line) in removed.chain(added.iter().map(|line| ('+', line))) {
            let _ = writeln!(shown, "{sign} {line}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_below_their_heading() {
        let before = "a\n  1\n  2\nb\n  3\nc\n  4";
        let after = "a\n  1\n  2\nb\n  5\n  6\nc\n  4";
        assert_eq!(lines(before, after), "  b\n-   3\n+   5\n+   6\n");
        assert_eq!(lines(before, before), "");
        assert_eq!(lines("x", "x\na\n  1"), "+ a\n+   1\n");
        assert_eq!(lines("x\na\n  1\nb", "x\nb"), "- a\n-   1\n");
    }
}
