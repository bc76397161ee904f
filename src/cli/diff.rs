//! Differences between two texts, line by line.

use std::fmt;

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
