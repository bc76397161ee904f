//! Maps bytes of the literal rewrite's result to bytes of the original.

use std::ops::Range;

use crate::rewrite::literal::{TextEdit, edits};

/// The origin of each byte of a result.
pub(super) struct Origin {
    /// The bytes of the result from `.0` on come from the original from `.1` on.
    pieces: Vec<(usize, usize)>,
    length: usize,
}

impl Origin {
    pub(super) fn new(original: &str, stack_dir: &str) -> Self {
        let mut pieces = vec![(0, 0)];
        let mut result = 0;
        let mut done = 0;
        for edit in edits(original) {
            match edit {
                TextEdit::Delete(line) => {
                    result += line.start - done;
                    done = line.end;
                }
                TextEdit::Replace { dot } => {
                    result += dot - done;
                    pieces.push((result, dot));
                    result += stack_dir.len();
                    done = dot + 1;
                }
            }
            pieces.push((result, done));
        }
        Self {
            pieces,
            length: original.len(),
        }
    }

    /// The byte of the original that a byte of the result comes from; for the inserted directory, the dot.
    pub(super) fn of(&self, offset: usize) -> usize {
        let after = self.pieces.partition_point(|piece| piece.0 <= offset);
        let (result, original) = self.pieces[after.saturating_sub(1)];
        // A piece ends where the next one starts: the inserted directory is longer than the dot.
        let end = self.pieces.get(after).map_or(self.length, |next| next.1);
        (original + offset - result).min(end)
    }

    /// The bytes of the original that a range of the result comes from, including deleted bytes in between.
    pub(super) fn of_range(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.of(range.start);
        if range.is_empty() {
            return start..start;
        }
        start..(self.of(range.end - 1) + 1).max(start)
    }
}
