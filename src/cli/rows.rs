//! The rows of a plan: what happens to each service, in the words of [`crate::plan::rows`]. `adopt` shows the same.

use super::{
    columns::{pad, width},
    style::Meaning,
    table::Part,
};
use crate::plan::{Fate, Row, ServicePlan, rows};

/// The widest column of names.
const NAMES: usize = 20;

/// What happens to the services, one line for each fate: its sign with the names, and the rest.
pub(super) fn lines(services: &[ServicePlan]) -> Vec<(Part, String)> {
    let rows = rows(services);
    let names: Vec<String> = rows.iter().map(Row::names).collect();
    let column = column(names.iter().map(String::as_str));
    let lines = rows.iter().zip(&names).map(|(row, names)| {
        let meaning = match row.fate {
            Fate::Unchanged => Meaning::Kept,
            Fate::Recreated(_) | Fate::Restarted(_) => Meaning::Changed,
            Fate::Started(_) => Meaning::Added,
            Fate::Removed(_) => Meaning::Removed,
            Fate::LeftBehind(_) => Meaning::Plain,
            Fate::Unknown(_) => Meaning::Unknown,
        };
        line(
            (meaning, &format!("  {}  ", row.sign())),
            (names, column),
            &row.text(),
        )
    });
    lines.collect()
}

/// A name in its column, and a text beside it. Names that are too long for the column are a part of the text.
pub(super) fn line(
    (meaning, start): (Meaning, &str),
    (name, column): (&str, usize),
    text: &str,
) -> (Part, String) {
    if width(name) > column {
        ((meaning, start.to_owned()), format!("{name}  {text}"))
    } else {
        let start = format!("{start}{}  ", pad(name, column));
        ((meaning, start), text.to_owned())
    }
}

/// The width of a column of names.
pub(super) fn column<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let widths = names.map(width).filter(|&width| width <= NAMES);
    widths.max().unwrap_or(0)
}
