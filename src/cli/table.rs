//! Tables without lines.

use comfy_table::{Table, presets};

use super::columns::{pad, width, wrap};
use crate::text::printable;

/// The text of a table whose first row is its header. A table that is too wide for the terminal has a block of lines for
/// each row instead.
pub(super) fn table(rows: Vec<Vec<String>>, terminal: Option<usize>) -> String {
    let escaped = |row: Vec<String>| {
        row.iter()
            .map(|cell| printable(cell).into_owned())
            .collect()
    };
    let rows: Vec<Vec<String>> = rows.into_iter().map(escaped).collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for row in &rows {
        table.add_row(row);
    }
    let text = table.trim_fmt();
    match terminal {
        Some(most) if text.lines().any(|line| width(line.trim_end()) > most) => blocks(&rows, most),
        _ => text,
    }
}

/// The rows below the header, as one line for each cell after the name of its column.
fn blocks(rows: &[Vec<String>], most: usize) -> String {
    let Some((head, rows)) = rows.split_first() else {
        return String::new();
    };
    let names = head.iter().map(|name| width(name)).max().unwrap_or(0);
    let indent = names + 2;
    let room = most.saturating_sub(indent);
    let blocks = rows.iter().map(|row| {
        let cells = head.iter().zip(row).map(|(name, cell)| {
            let lines = wrap(cell, room, room).join(&format!("\n{:indent$}", ""));
            format!("{}  {lines}", pad(name, names))
        });
        cells.collect::<Vec<_>>().join("\n")
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_has_blocks() {
        let rows = || {
            let rows = [
                ["Names", "Status"],
                ["web\x1b", "Up 2 hours"],
                ["日本", "Exited"],
            ];
            rows.map(|row| row.map(str::to_owned).to_vec()).to_vec()
        };
        let wide = " Names     Status\n web\\u{1b}  Up 2 hours\n 日本      Exited";
        let trimmed = |text: &str| {
            let lines = text.lines().map(str::trim_end);
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            trimmed(&table(rows(), None)),
            wide.replace("Names     ", "Names      ")
                .replace("日本      ", "日本       ")
        );
        assert_eq!(
            table(rows(), Some(15)),
            "Names   web\\u{1b}\nStatus  Up 2\n        hours\n\nNames   日本\nStatus  Exited"
        );
    }
}
