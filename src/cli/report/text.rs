//! A report as text for people, in the width of the terminal. Commands are never broken.
//!
//! Without a terminal, nothing is broken, and each line is complete: it names what it is about.

use super::{
    EngineReport, FateKind, Interruption, LossReport, Report, RequestKind, ServiceReport,
    StackReport, Way, WayReport,
};
use crate::{
    cli::{
        Console,
        columns::{pad, readable, width, wrap},
        style::Meaning,
    },
    text::counted,
};

/// The widest column of names.
const NAMES: usize = 20;
/// The minimum width of the text next to a name. If less is left, the text begins below the name.
const LEAST: usize = 30;

/// Prints the report, and its warnings on standard error.
pub(in crate::cli) fn show(report: &Report, console: &Console) {
    let terminal = Console::width();
    let out = Out {
        console,
        width: readable(terminal),
        complete: terminal.is_none(),
    };
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
            (Meaning::Name, "Recommended: ".to_owned()),
            (Meaning::Command, recommended.command.clone()),
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
    width: usize,
    /// Whether each line names what it is about.
    complete: bool,
}

impl Out<'_> {
    fn head(&self, report: &Report) {
        let StackReport { name, dir, .. } = &report.stack;
        let state = state(&report.stack);
        let rest = format!("  {dir}  {state}");
        let name = (Meaning::Name, name.clone());
        if width(&name.1) + width(&rest) <= self.width {
            self.console.parts(&[name, (Meaning::Plain, rest)]);
        } else {
            self.console
                .parts(&[name, (Meaning::Plain, format!("  {dir}"))]);
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
            EngineReport::OtherSocket => "is a socket that Portainer's Compose does not use",
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
        let room = self.width.saturating_sub(8);
        let mut verb = (Meaning::Name, format!("{verb:<8}"));
        for line in wrap(&about(way, of, &report.stack), room, room) {
            self.console.parts(&[verb, (Meaning::Plain, line)]);
            verb = (Meaning::Plain, " ".repeat(8));
        }
        for blocker in &of.blockers {
            self.row((Meaning::Failed, "!"), "", 0, &blocker.message);
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
            _ if !report.losses_known => "what the stack loses is unknown".to_owned(),
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
            let command = (Meaning::Command, of.diff_command.clone());
            self.console
                .parts(&[(Meaning::Plain, "  diff: ".to_owned()), command]);
        }
        if report.losses_known {
            let groups = interruptions(&of.services);
            let lines = if self.complete {
                groups
            } else {
                vec![groups.join("; ")]
            };
            for line in lines {
                self.wrapped(2, &format!("interruption: {line}"));
            }
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
            // Each complete line is about one service.
            if !self.complete {
                done.push(fate);
            }
            let same = |one: &&ServiceReport| {
                let is_same = (one.fate.kind, one.fate.reason.as_ref()) == fate;
                is_same && (!self.complete || one.service == service.service)
            };
            let names: Vec<&str> = services
                .iter()
                .filter(same)
                .map(|one| one.service.as_str())
                .collect();
            let (symbol, words) = match fate.0 {
                FateKind::Recreated => ((Meaning::Changed, "-"), "removed and recreated"),
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
                self.row((Meaning::Plain, " "), shown, names, &loss.message);
                if !self.complete {
                    shown = "";
                }
            }
        }
    }

    /// A symbol, a name in a column of `names` columns, and a text that is wrapped next to it, or below it if there is
    /// not enough room.
    fn row(&self, (meaning, symbol): (Meaning, &str), name: &str, names: usize, text: &str) {
        let (gap, first) = match names {
            0 => (0, 5),
            _ => (2, 5 + width(name).max(names) + 2),
        };
        let mut indent = 5 + names + gap;
        let mut symbol = vec![(meaning, format!("  {symbol}  "))];
        if !name.is_empty() && self.width < indent + LEAST {
            symbol.push((meaning, name.to_owned()));
            self.console.parts(&symbol);
            symbol = vec![(Meaning::Plain, " ".repeat(7))];
            indent = 7;
        } else if self.width < indent + LEAST {
            indent = 7;
            symbol.push((Meaning::Plain, " ".repeat(if names == 0 { 0 } else { 2 })));
        } else {
            symbol.push((meaning, pad(name, first - 5)));
        }
        let taken = symbol.iter().map(|(_, text)| width(text)).sum();
        let lines = wrap(
            text,
            self.width.saturating_sub(taken),
            self.width.saturating_sub(indent),
        );
        for line in lines {
            symbol.push((Meaning::Plain, line));
            self.console.parts(&symbol);
            symbol = vec![(Meaning::Plain, " ".repeat(indent))];
        }
    }

    fn wrapped(&self, indent: usize, text: &str) {
        let room = |indent: usize| self.width.saturating_sub(indent);
        for (index, line) in wrap(text, room(indent), room(indent + 2))
            .into_iter()
            .enumerate()
        {
            let hanging = if index == 0 { indent } else { indent + 2 };
            let line = format!("{}{line}", " ".repeat(hanging));
            self.console.parts(&[(Meaning::Plain, line)]);
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
            // With a Portainer stack, the labels do not tell: Portainer may store its stacks in another folder.
            let started = match containers.started_by_portainer {
                by if by == containers.all => ", started by Portainer".to_owned(),
                _ if stack.portainer_stack.is_some() => String::new(),
                0 => ", started by hand".to_owned(),
                by => format!(", {by} started by Portainer, the others by hand"),
            };
            let all = counted(containers.all, "container");
            format!("{all}{stopped}{started}")
        }
    };
    match &stack.portainer_stack {
        None if stack.may_be_unseen => {
            format!("{containers}; whether it is in Portainer is unknown")
        }
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

fn words(kind: FateKind) -> ((Meaning, &'static str), &'static str) {
    match kind {
        FateKind::Unchanged => ((Meaning::Kept, "="), "unchanged, keeps running"),
        FateKind::Recreated => ((Meaning::Changed, "~"), "recreated once"),
        FateKind::Restarted => ((Meaning::Changed, "~"), "restarted once"),
        FateKind::Started => ((Meaning::Added, "+"), "started"),
        FateKind::Removed => ((Meaning::Removed, "-"), "removed"),
        FateKind::LeftBehind => ((Meaning::Plain, ">"), "left as it is"),
        FateKind::Unknown => ((Meaning::Unknown, "?"), "unknown"),
    }
}

/// Which services are interrupted, and how long their containers may take to stop.
fn interruptions(services: &[ServiceReport]) -> Vec<String> {
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
    match groups.as_slice() {
        [] => vec!["none".to_owned()],
        [(how, _)] => vec![how.clone()],
        groups => {
            let shown = groups.iter();
            shown
                .map(|(how, names)| format!("{} {how}", names.join(", ")))
                .collect()
        }
    }
}

/// The width of a column of names.
fn column<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(width).max().unwrap_or(0).min(NAMES)
}
