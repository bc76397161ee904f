//! A report as text for people, in 80 columns. Commands are never broken.

use anstyle::{AnsiColor, Style};

use super::{
    EngineReport, FateKind, Interruption, LossReport, Report, RequestKind, ServiceReport,
    StackReport, Way, WayReport,
};
use crate::{
    cli::{
        Console,
        style::{BAD, BOLD, CAREFUL, GOOD, PLAIN},
    },
    text::counted,
};

const COMMAND: Style = AnsiColor::Cyan.on_default();

/// The width of the output.
const WIDTH: usize = 80;
/// The widest column of names.
const NAMES: usize = 20;

/// Prints the report, and its warnings on standard error.
pub(in crate::cli) fn show(report: &Report, console: &Console) {
    let out = Out { console };
    out.head(report);
    for (way, of) in [(Way::Adopt, &report.adopt), (Way::Migrate, &report.migrate)] {
        if let Some(of) = of {
            console.parts(&[]);
            out.way(report, way, of);
        }
    }
    console.parts(&[]);
    match &report.recommended {
        Some(recommended) => console.parts(&[
            (BOLD, "Recommended: ".to_owned()),
            (COMMAND, recommended.command.clone()),
        ]),
        None if report.has_nothing_to_do() => out.wrapped(0, "There is nothing to do."),
        None => out.wrapped(
            0,
            "No command is recommended: follow the hints above, then run the command again.",
        ),
    }
    let mut warnings: Vec<&String> = Vec::new();
    let ways = [&report.adopt, &report.migrate];
    for warning in ways.into_iter().flatten().flat_map(|way| &way.warnings) {
        if !warnings.contains(&warning) {
            console.warning(warning);
            warnings.push(warning);
        }
    }
}

struct Out<'a> {
    console: &'a Console,
}

impl Out<'_> {
    fn head(&self, report: &Report) {
        let StackReport { name, dir, .. } = &report.stack;
        let state = state(&report.stack);
        let rest = format!("  {dir}  {state}");
        let name = (BOLD, name.clone());
        if width(&name.1) + width(&rest) <= WIDTH {
            self.console.parts(&[name, (PLAIN, rest)]);
        } else {
            self.console.parts(&[name, (PLAIN, format!("  {dir}"))]);
            self.wrapped(2, &state);
        }
        let portainer = &report.portainer;
        let version = portainer.version.as_deref();
        let version = version.map_or_else(|| "of unknown version".to_owned(), str::to_owned);
        let engine = match portainer.engine {
            EngineReport::ThisHost => "is this engine",
            EngineReport::Another => "is another engine",
            EngineReport::NoEnvironment => "does not exist",
            EngineReport::Forbidden => "is not allowed for this API key",
            EngineReport::Unknown => "may be another engine",
        };
        self.wrapped(
            0,
            &format!(
                "Portainer {version} at {}, environment {} {engine}",
                portainer.url, portainer.environment
            ),
        );
        for request in &report.stack.unanswered {
            self.wrapped(
                0,
                &format!(
                    "the outcome of {request}, is unknown: each command first waits until Portainer has finished, and this plan may then be out of date"
                ),
            );
        }
    }

    fn way(&self, report: &Report, way: Way, of: &WayReport) {
        let verb = match way {
            Way::Adopt => "adopt",
            Way::Migrate => "migrate",
        };
        let parts = [
            (BOLD, format!("{verb:<8}")),
            (PLAIN, about(way, of, &report.stack)),
        ];
        self.console.parts(&parts);
        for blocker in &of.blockers {
            self.row((BAD, "!"), "", 0, &blocker.message);
            for detail in &blocker.details {
                self.wrapped(7, detail);
            }
            self.wrapped(5, &format!("hint: {}", blocker.hint));
        }
        match way {
            Way::Adopt => self.fates(&of.services),
            Way::Migrate => self.groups(&of.services),
        }
        if of.services.is_empty() && !of.blockers.is_empty() {
            return;
        }
        let losses: Vec<&LossReport> = report.losses_of(way).collect();
        let lost = match losses.len() {
            _ if !report.losses_known => "what the containers lose is unknown".to_owned(),
            0 => "no losses found".to_owned(),
            1 => "1 loss".to_owned(),
            count => format!("{count} losses"),
        };
        let changed = match of.changed_lines {
            None if of.combined_files.len() == 1 => "Compose resolves the file; ".to_owned(),
            None if !of.combined_files.is_empty() => {
                format!(
                    "{} files are combined into one text; ",
                    of.combined_files.len()
                )
            }
            None => String::new(),
            Some(0) => "the file does not change; ".to_owned(),
            Some(1) => "1 line of the file changes; ".to_owned(),
            Some(count) => format!("{count} lines of the file change; "),
        };
        self.wrapped(2, &format!("{changed}{lost}"));
        self.losses(&losses);
        if of.changed_lines.is_some_and(|lines| lines > 0) || !of.combined_files.is_empty() {
            let command = (COMMAND, of.diff_command.clone());
            self.console
                .parts(&[(PLAIN, "  diff: ".to_owned()), command]);
        }
        if report.losses_known {
            self.wrapped(2, &format!("interruption: {}", interruptions(&of.services)));
        }
        for notice in &of.notices {
            self.wrapped(2, &format!("note: {notice}"));
        }
    }

    /// One service per row, with its fate.
    fn fates(&self, services: &[ServiceReport]) {
        let names = column(services.iter().map(|one| one.service.as_str()));
        for service in services {
            let (symbol, words) = words(service.fate.kind);
            let fate = match &service.fate.reason {
                Some(reason) => format!("{words}: {reason}"),
                None => words.to_owned(),
            };
            self.row(symbol, &service.service, names, &fate);
        }
    }

    /// One row for all services with the same fate.
    fn groups(&self, services: &[ServiceReport]) {
        let mut done: Vec<(FateKind, Option<&String>)> = Vec::new();
        for service in services {
            let fate = (service.fate.kind, service.fate.reason.as_ref());
            if done.contains(&fate) {
                continue;
            }
            done.push(fate);
            let same = |one: &&ServiceReport| (one.fate.kind, one.fate.reason.as_ref()) == fate;
            let names: Vec<&str> = services
                .iter()
                .filter(same)
                .map(|one| one.service.as_str())
                .collect();
            let (symbol, words) = match fate.0 {
                FateKind::Recreated => ((CAREFUL, "-"), "removed and recreated"),
                kind => words(kind),
            };
            let reason = fate
                .1
                .map_or_else(String::new, |reason| format!(": {reason}"));
            self.row(
                symbol,
                "",
                0,
                &format!("{}  {words}{reason}", names.join(", ")),
            );
        }
    }

    /// Grouped by what loses them.
    fn losses(&self, losses: &[&LossReport]) {
        let of = |loss: &LossReport| {
            let owner = loss.service.as_ref().or(loss.subject.as_ref());
            owner.map_or("stack", String::as_str).to_owned()
        };
        let owners: Vec<String> = losses.iter().map(|loss| of(loss)).collect();
        let names = column(owners.iter().map(String::as_str));
        let mut done: Vec<&String> = Vec::new();
        for owner in &owners {
            if done.contains(&owner) {
                continue;
            }
            done.push(owner);
            let mut shown = owner.as_str();
            for loss in losses.iter().filter(|loss| of(loss) == *owner) {
                self.row((PLAIN, " "), shown, names, &loss.message);
                shown = "";
            }
        }
    }

    /// A symbol, a name in a column of `names` characters, and a text that is wrapped next to it.
    fn row(&self, (style, symbol): (Style, &str), name: &str, names: usize, text: &str) {
        let gap = if names == 0 { 0 } else { 2 };
        let indent = 5 + names + gap;
        let pad = (names + gap).saturating_sub(width(name)).max(gap);
        let name = format!("  {name}{}", " ".repeat(pad));
        let first = 3 + width(&name);
        for (index, line) in wrap(text, WIDTH - indent, WIDTH.saturating_sub(first))
            .into_iter()
            .enumerate()
        {
            if index == 0 {
                let symbol = (style, format!("  {symbol}"));
                self.console
                    .parts(&[symbol, (PLAIN, name.clone()), (PLAIN, line)]);
            } else {
                let line = format!("{}{line}", " ".repeat(indent));
                self.console.parts(&[(PLAIN, line)]);
            }
        }
    }

    fn wrapped(&self, indent: usize, text: &str) {
        for (index, line) in wrap(text, WIDTH - indent - 2, WIDTH - indent)
            .into_iter()
            .enumerate()
        {
            let hanging = if index == 0 { indent } else { indent + 2 };
            let line = format!("{}{line}", " ".repeat(hanging));
            self.console.parts(&[(PLAIN, line)]);
        }
    }
}

/// The containers, who started them, and the Portainer stack.
fn state(stack: &StackReport) -> String {
    let containers = match &stack.containers {
        None => "containers unknown".to_owned(),
        Some(containers) if containers.all == 0 => "no containers".to_owned(),
        Some(containers) => {
            let stopped = match containers.all - containers.running {
                0 => String::new(),
                stopped => format!(" ({stopped} not running)"),
            };
            let started = match containers.started_by_portainer {
                0 => "started by hand".to_owned(),
                by if by == containers.all => "started by Portainer".to_owned(),
                by => format!("{by} started by Portainer, the others by hand"),
            };
            format!(
                "{}{stopped}, {started}",
                counted(containers.all, "container")
            )
        }
    };
    match &stack.portainer_stack {
        None => format!("{containers}, not in Portainer"),
        Some(one) => format!("{containers}, Portainer stack {} is {}", one.id, one.state),
    }
}

fn about(way: Way, of: &WayReport, stack: &StackReport) -> String {
    if !of.blockers.is_empty() {
        return format!("blocked by {}", counted(of.blockers.len(), "problem"));
    }
    let id = of.request.portainer_stack.as_deref().unwrap_or_default();
    let containers = stack.containers.as_ref();
    let has_containers = containers.is_none_or(|containers| containers.all > 0);
    match (way, of.request.kind, has_containers) {
        (_, RequestKind::Nothing, _) => {
            format!("Portainer stack {id} already has this text and these variables")
        }
        (_, RequestKind::Update, _) => format!("Portainer updates Portainer stack {id}"),
        (_, RequestKind::Replace, _) => {
            format!("deletes Portainer stack {id}, then Portainer creates the literal rewrite")
        }
        (Way::Adopt, _, true) => "Portainer adopts the running stack".to_owned(),
        (Way::Adopt, _, false) => "Portainer starts the stack".to_owned(),
        (Way::Migrate, _, true) => {
            "removes the stack, then Portainer creates it from the literal rewrite".to_owned()
        }
        (Way::Migrate, _, false) => "Portainer starts the literal rewrite".to_owned(),
    }
}

fn words(kind: FateKind) -> ((Style, &'static str), &'static str) {
    match kind {
        FateKind::Unchanged => ((GOOD, "="), "unchanged, keeps running"),
        FateKind::Recreated => ((CAREFUL, "~"), "recreated once"),
        FateKind::Restarted => ((CAREFUL, "~"), "restarted once"),
        FateKind::Started => ((GOOD, "+"), "started"),
        FateKind::Removed => ((BAD, "-"), "removed"),
        FateKind::LeftBehind => ((PLAIN, ">"), "left as it is"),
        FateKind::Unknown => ((CAREFUL, "?"), "unknown"),
    }
}

/// Which services are interrupted, and how long their containers may take to stop.
fn interruptions(services: &[ServiceReport]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for service in services {
        let stop = service.stop_seconds.map_or_else(String::new, |seconds| {
            format!("up to {seconds} s to stop, then ")
        });
        let how = match service.interruption {
            Interruption::None => "none".to_owned(),
            Interruption::Once => format!("{stop}until started again"),
            Interruption::Maybe => format!("none, or {stop}until started again"),
            Interruption::ForGood => "does not run again".to_owned(),
        };
        match groups.iter_mut().find(|(known, _)| *known == how) {
            Some((_, names)) => names.push(&service.service),
            None => groups.push((how, vec![&service.service])),
        }
    }
    let groups: Vec<String> = match groups.as_slice() {
        [] => vec!["none".to_owned()],
        [(how, _)] => vec![how.clone()],
        groups => {
            let shown = groups.iter();
            shown
                .map(|(how, names)| format!("{} {how}", names.join(", ")))
                .collect()
        }
    };
    groups.join("; ")
}

/// The width of a column of names.
fn column<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(width).max().unwrap_or(0).min(NAMES)
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text between words, into lines of at most `most` characters; the first has `first`. Longer words stay whole.
fn wrap(text: &str, most: usize, first: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let most = if lines.len() == 1 { first } else { most };
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(wrap("ab cd ef", 5, 2), ["ab", "cd ef"]);
        assert_eq!(wrap("abcdefgh ij", 5, 5), ["abcdefgh", "ij"]);
        assert_eq!(wrap("", 5, 5), [""]);
    }
}
