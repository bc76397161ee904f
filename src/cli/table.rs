//! Tables without lines, and the rows of a plan.

use super::{
    columns::{cut, cut_words, pad, width, wrap_lines},
    style::Meaning,
};
use crate::{
    plan::{Fate, ServicePlan},
    text::{of_many, printable},
};

/// A text and what it means.
pub(super) type Part = (Meaning, String);

/// A row of a table.
pub(super) struct TableRow {
    pub cells: Vec<Part>,
    /// The name of the row, and a command that follows its last cell. It is never cut: where it does not fit, it is below the
    /// table, once for all rows with the same command for their names.
    pub tail: Option<[String; 2]>,
}

impl From<Vec<Part>> for TableRow {
    fn from(cells: Vec<Part>) -> Self {
        let tail = None;
        Self { cells, tail }
    }
}

/// A row without colors.
pub(super) fn plain(cells: impl IntoIterator<Item = String>) -> Vec<Part> {
    let cells = cells.into_iter();
    cells.map(|cell| (Meaning::Plain, cell)).collect()
}

/// The last column keeps at least this width where there is space: the widest of the others are cut, and then the names in the
/// first, which keep [`NAMES`].
const LAST: usize = "no file found".len();
/// What the cut leaves of each of the others.
const OTHERS: usize = 6;

/// The lines of a table with aligned columns. Each row is cut at the width of the terminal.
pub(super) fn lines(
    header: &[&str],
    rows: impl IntoIterator<Item: Into<TableRow>>,
    terminal: Option<usize>,
) -> Vec<String> {
    let head = |name: &&str| (Meaning::Name, (*name).to_owned());
    let header: Vec<Part> = header.iter().map(head).collect();
    let rows = rows.into_iter().map(Into::into);
    let mut rows: Vec<TableRow> = std::iter::once(header.into()).chain(rows).collect();
    for TableRow { cells, tail } in &mut rows {
        let texts = cells.iter_mut().map(|(_, text)| text);
        for text in texts.chain(tail.iter_mut().flatten()) {
            *text = printable(text).into_owned();
        }
        if let (Some([_, tail]), Some((_, last))) = (tail, cells.last_mut()) {
            last.push_str(tail);
        }
    }
    let others = fitting(&rows, terminal).into_iter().rev().skip(1);
    let room = others.map(|width| width + 2).sum();
    let room = terminal.map_or(usize::MAX, |terminal| terminal.saturating_sub(room));
    let mut below: Vec<(String, Vec<String>)> = Vec::new();
    for row in &rows {
        if let (Some(tail), Some((_, last))) = (&row.tail, row.cells.last())
            && width(last) > room
        {
            below.push((of_any_name(tail), Vec::new()));
        }
    }
    for row in &mut rows {
        if let (Some(tail), Some((_, last))) = (&row.tail, row.cells.last_mut())
            && let Some((_, names)) = below.iter_mut().find(|below| below.0 == of_any_name(tail))
        {
            let [name, command] = tail;
            names.push(name.clone());
            last.truncate(last.len() - command.len());
            match last.strip_suffix(": ") {
                Some(why) => last.truncate(why.len()),
                None => last.push_str("see below"),
            }
        }
        if let Some((_, last)) = row.cells.last_mut() {
            *last = cut_words(std::mem::take(last), room);
        }
    }
    // The others get what the last column no longer needs.
    let widths = fitting(&rows, terminal);
    let line = |row: TableRow| {
        let mut left = terminal.unwrap_or(usize::MAX);
        let last = row.cells.len().saturating_sub(1);
        let mut line = String::new();
        for (column, (meaning, mut cell)) in row.cells.into_iter().enumerate() {
            if left == 0 {
                break;
            }
            if let Some(most) = widths.get(column).filter(|_| column < last) {
                // Of a state, the second part tells more.
                let rest = cell.split_once(", ").filter(|_| width(&cell) > *most);
                let rest = rest.map(|(_, rest)| format!("…{rest}"));
                let fitting = cut(rest.unwrap_or(cell), Some(*most.min(&left)));
                cell = pad(&fitting, left.min(most + 2));
            }
            let cell = cut(cell, Some(left));
            left = left.saturating_sub(width(&cell));
            line += &meaning.paint(&cell);
        }
        line
    };
    let below = below.into_iter().filter(|(_, names)| !names.is_empty());
    let below = below.map(|(command, names)| {
        let command = match names.as_slice() {
            [name] => command.replace(ANY_NAME, name),
            _ => command,
        };
        wrap_lines(&format!("{}: {command}", names.join(", ")), 0, terminal)
    });
    rows.into_iter().map(line).chain(below).collect()
}

/// The widths of the columns, so that the last one keeps its space.
fn fitting(rows: &[TableRow], terminal: Option<usize>) -> Vec<usize> {
    let columns = rows.first().map_or(0, |row| row.cells.len());
    let width_of = |column: usize| rows.iter().map(|row| width(&row.cells[column].1)).max();
    let mut widths: Vec<usize> = (0..columns).filter_map(width_of).collect();
    if let (Some(terminal), Some((last, others))) = (terminal, widths.split_last_mut()) {
        let fits = |others: &[usize]| {
            others.iter().map(|width| width + 2).sum::<usize>() + LAST.min(*last) <= terminal
        };
        while !fits(others)
            && let Some(widest) = others
                .iter_mut()
                .skip(1)
                .max()
                .filter(|width| **width > OTHERS)
        {
            *widest -= 1;
        }
        while !fits(others)
            && let Some(names) = others.first_mut().filter(|width| **width > NAMES)
        {
            *names -= 1;
        }
    }
    widths
}

/// What stands for the name of a row in a command.
const ANY_NAME: &str = "STACK";

/// A command for the row of a name, as one for any name.
fn of_any_name([name, command]: &[String; 2]) -> String {
    let words = command
        .split(' ')
        .map(|word| match word.strip_suffix(name) {
            Some(start) if start.is_empty() || start.ends_with('/') => start.to_owned() + ANY_NAME,
            _ => word.to_owned(),
        });
    words.collect::<Vec<_>>().join(" ")
}

/// The widest column of names.
const NAMES: usize = 20;

/// What happens to the services, one line for each fate: its sign with the names, and the rest. The sign `=` stays, `~` is replaced or
/// restarted, `+` is started, `-` is removed, `>` is left alone, and `?` is unknown.
pub(super) fn plan_rows(services: &[ServicePlan]) -> Vec<(Part, String)> {
    let mut rows: Vec<(&ServicePlan, Vec<&str>)> = Vec::new();
    for one in services {
        let has_its_fate = |(first, _): &&mut (&ServicePlan, _)| {
            (&first.fate, first.restarting) == (&one.fate, one.restarting)
        };
        match rows.iter_mut().find(has_its_fate) {
            Some((_, names)) if names.contains(&one.service.as_str()) => {}
            Some((_, names)) => names.push(&one.service),
            None => rows.push((one, vec![&one.service])),
        }
    }
    let names: Vec<String> = rows.iter().map(|(_, names)| names.join(", ")).collect();
    let column = column(names.iter().map(String::as_str));
    let lines = rows.iter().zip(&names).map(|((first, all), names)| {
        let (meaning, sign) = match first.fate {
            Fate::Unchanged => (Meaning::Kept, '='),
            Fate::Recreated(_) | Fate::Restarted(_) => (Meaning::Changed, '~'),
            Fate::Started(_) => (Meaning::Added, '+'),
            Fate::Removed(_) => (Meaning::Removed, '-'),
            Fate::LeftBehind(_) => (Meaning::Plain, '>'),
            Fate::Unknown(_) => (Meaning::Unknown, '?'),
        };
        let text = match &first.fate {
            Fate::Unchanged if first.restarting && all.len() > 1 => "keep restarting".to_owned(),
            Fate::Unchanged if first.restarting => "keeps restarting".to_owned(),
            Fate::Unchanged if all.len() > 1 => "keep running".to_owned(),
            Fate::Started(what) if all.len() > 1 => of_many(what),
            fate => fate.to_string(),
        };
        line((meaning, &format!("  {sign}  ")), (names, column), &text)
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
        return ((meaning, start.to_owned()), format!("{name}  {text}"));
    }
    let start = format!("{start}{}  ", pad(name, column));
    ((meaning, start), text.to_owned())
}

/// The width of a column of names.
pub(super) fn column<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let widths = names.map(width).filter(|&width| width <= NAMES);
    widths.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(terminal: Option<usize>) -> Vec<String> {
        let row = |cells: [&str; 3]| cells.map(|cell| (Meaning::Plain, cell.to_owned())).to_vec();
        let rows = vec![
            row(["日本語", "1/1", "ready; recreates 書店, b, c and 9 more"]),
            row(["🚀\x1b", "2/2", "nothing to do"]),
        ];
        let painted = lines(&["NAME", "RUNNING", "ADOPT"], rows, terminal);
        let plain = painted
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string());
        plain.collect()
    }

    #[test]
    fn the_columns_are_aligned_and_fit() {
        let fitted = [
            "NAME      RUNNING  ADOPT",
            "日本語    1/1      ready; recreates…",
            "🚀\\u{1b}  2/2      nothing to do",
        ];
        assert_eq!(shown(Some(39)), fitted);
        assert!(shown(None)[1].ends_with(" and 9 more"));
        // The gap between two columns stays, and the last column keeps its space.
        let cut = [
            "NAME      RUNNI…  ADOPT",
            "日本語    1/1     ready…",
            "🚀\\u{1b}  2/2     nothing to…",
        ];
        assert_eq!(shown(Some(29)), cut);
        // What the words of the last column leave goes to the others.
        assert_eq!(shown(Some(30))[0], "NAME      RUNNING  ADOPT");
        assert_eq!(shown(Some(12))[1], "日本語    1…");
        let state = |state: &str| plain(["a", state, "see below"].map(str::to_owned));
        let states = ["in Portainer, file differs", "by hand"].map(state);
        let cut = lines(&["STACK", "STATE", "ADOPT"], states, Some(32));
        assert!(cut[1].contains("…file differs  "), "{cut:?}");
    }

    #[test]
    fn a_command_that_does_not_fit_is_below_the_table() {
        let shown = |terminal, names: &[&str]| {
            let row = |name: &&str| TableRow {
                cells: plain([format!("{name} *"), "no file found: ".to_owned()]),
                tail: Some([
                    (*name).to_owned(),
                    format!("stacklift export {name} --to /x/{name}"),
                ]),
            };
            let rows = names.iter().map(row);
            let lines = lines(&["STACK", "ADOPT"], rows, Some(terminal));
            let plain = |line: &String| anstream::adapter::strip_str(line).to_string();
            lines
                .iter()
                .skip(1)
                .map(plain)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let full = "web *  no file found: stacklift export web --to /x/web";
        assert_eq!(shown(54, &["web"]), full);
        let below = "web *  no file found\nweb: stacklift export web --to /x/web";
        assert_eq!(shown(53, &["web"]), below);
        // One of them would fit.
        let once = "web *   no file found\nwiki *  no file found\nweb, wiki: stacklift export STACK --to /x/STACK";
        assert_eq!(shown(55, &["web", "wiki"]), once);
    }
}
