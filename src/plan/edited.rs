//! Whether what Portainer has was edited there (B22).

use std::collections::BTreeSet;

use super::{RecordFacts, Sent};
use crate::{
    model::{Container, PORTAINER_FOLDERS, Record, Variable, is_folder_of, values},
    rewrite::{env::stack_env, faithful::renamed, portainer::SET_BY_PORTAINER},
    snapshot::LastSent,
    text::{any_of, listed, plural, printable},
};
use chrono::DateTime;
use composefile::{dotenv, interpolate::occurrences};

/// The text and the variables that Portainer has: like what would be sent, and like what was last sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InPortainer {
    /// There are none, or it is unknown how they differ.
    #[default]
    Nothing,
    /// They are what would be sent.
    UpToDate,
    /// They are what was last sent, and the files have changed.
    LastSent,
    /// They are one or the other, and containers have another configuration than the last adoption left: they were deployed by
    /// hand since, or restored after it failed.
    Redeployed,
    /// They are what the files say, as they are or as a migration sends them. An adoption sends another form of it.
    OtherForm,
    /// They are something else: somebody edited them there.
    Edited,
    /// They are something else, and nothing is known of a last send to this Portainer stack: the files or Portainer may have
    /// changed.
    Differs,
    /// They come from a Git repository: no file of this host decides what they are.
    FromGit,
}

impl InPortainer {
    /// Compares them with `sent` for the project, which is empty if nothing can be sent.
    pub fn of(contents: Option<Sent>, last: &LastSent, sent: Sent, project: &str) -> Self {
        let Some(Sent { text, env }) = contents else {
            return Self::Nothing;
        };
        if are_same_values(env, sent.env) && is_same_text(text, sent.text, project) {
            return Self::UpToDate;
        }
        match (last.has(text, env), sent.text.is_empty()) {
            (true, false) => Self::LastSent,
            (true, true) => Self::Nothing,
            (false, true) if last.is_empty() => Self::Nothing,
            (false, false) if last.is_empty() => Self::Differs,
            (false, _) => Self::Edited,
        }
    }

    /// Whether sending would overwrite what somebody may have edited there.
    pub fn may_be_theirs(self) -> bool {
        matches!(self, Self::Edited | Self::Differs)
    }
}

impl RecordFacts<'_> {
    /// The same for an adoption, whose text depends on what runs. `texts` are what the Compose file gives without that.
    #[must_use]
    pub fn of_adoption(mut self, texts: &[String], env: &[Variable], is_host_known: bool) -> Self {
        use InPortainer::{Differs, Edited, LastSent, Nothing, OtherForm};
        let says_the_same = self.contents.is_some_and(|has| {
            let mut texts = texts.iter();
            are_same_values(has.env, env)
                && texts.any(|text| is_same_text(has.text, text, &self.record.name))
        });
        self.in_portainer = match self.in_portainer {
            LastSent | Differs if says_the_same => OtherForm,
            // What would be sent is unknown, and with it whether this differs.
            LastSent | Differs | Edited if !is_host_known => Nothing,
            found => found,
        };
        self
    }
}

/// Whether Portainer's Compose reads in `has` the values of `sent`. An export writes `a # b`, of which Compose reads `a`, in another
/// form; and what somebody entered in Portainer, such as `a$B`, may name a variable that has no value there.
fn are_same_values(has: &[Variable], sent: &[Variable]) -> bool {
    let named = |name: &str| Some(format!("\0{name}"));
    let of_portainer = |name: &str| named(name).filter(|_| SET_BY_PORTAINER.contains(&name));
    let read = |env, lookup| dotenv::parse(&stack_env(env), lookup).ok();
    let wanted = read(sent, &named);
    let is_read =
        wanted.is_some() && [read(has, &named), read(has, &of_portainer)].contains(&wanted);
    values(has) == values(sent) || is_read
}

/// Whether two texts mean the same to Portainer: it passes the project's name itself, so a `name` that an export wrote (M15)
/// changes nothing.
fn is_same_text(one: &str, other: &str, project: &str) -> bool {
    one == other || {
        let named = renamed(one, project, None);
        named.is_some() && named == renamed(other, project, None)
    }
}

/// What was edited of a Portainer stack: its Compose file, and the variables that differ from what would be sent, by name. What is as
/// it was last sent was not.
pub(super) fn parts(record: &RecordFacts, sent: Sent) -> Vec<String> {
    let Some(Sent { text, env }) = record.contents else {
        return Vec::new();
    };
    let last = record.last_sent;
    let mut names = changed_variables(env, sent.env);
    names.retain(|name| last.has_variable(name, env) != Some(true));
    let noun = plural(names.len(), "variable");
    let is_same = last.has_text(text) || is_same_text(text, sent.text, &record.record.name);
    let text = (!is_same).then(|| "its Compose file".to_owned());
    let is_edited = !names.is_empty() && !last.has_variables(env);
    let variables = is_edited.then(|| format!("the {noun} {}", listed(&names)));
    text.into_iter().chain(variables).collect()
}

/// The names of the variables that one of the two lacks, or that have another value in it.
pub fn changed_variables(now: &[Variable], after: &[Variable]) -> Vec<String> {
    let (now, after) = (values(now), values(after));
    let names: BTreeSet<&str> = now.keys().chain(after.keys()).copied().collect();
    let names = names.into_iter();
    let changed = names.filter(|name| now.get(name) != after.get(name));
    changed.map(str::to_owned).collect()
}

/// Whether a container has another configuration than the last adoption left: it was deployed by hand since, or restored. `None` if
/// it is unknown. The containers that an adoption kept were started by hand, too, and a restore may have put back some that
/// Portainer created earlier: their config hashes tell.
pub fn differs_from_adoption(
    container: &Container,
    record: &RecordFacts,
    tool: &str,
) -> Option<bool> {
    let dir = container.compose_label(tool, "project.working_dir")?;
    if is_portainers(dir, record.record) && !record.last_sent.is_behind {
        return Some(false);
    }
    is_as_left(container, record.last_sent, tool).map(|is_as_left| !is_as_left)
}

/// Whether a container has one of the configurations that the last adoption left. `None` if they are unknown.
pub(super) fn is_as_left(container: &Container, last: &LastSent, tool: &str) -> Option<bool> {
    let hash = container.compose_label(tool, "config-hash")?;
    Some(last.hashes.as_ref()?.contains(hash))
}

/// Whether a container was created outside of Portainer after Portainer last deployed the stack.
pub(super) fn is_by_hand_since(container: &Container, record: &Record, tool: &str) -> bool {
    let dir = container.compose_label(tool, "project.working_dir");
    let created = DateTime::parse_from_rfc3339(container.text("/Created"));
    let is_later = created.is_ok_and(|at| at.timestamp() > record.deployed_at);
    is_later && record.deployed_at > 0 && dir.is_some_and(|dir| !is_portainers(dir, record))
}

fn is_portainers(dir: &str, record: &Record) -> bool {
    dir.starts_with(PORTAINER_FOLDERS) || is_folder_of(&record.id, dir)
}

/// What happened to a container if Portainer has what would be sent, and the container has neither.
pub(super) fn why_by_hand(
    container: &Container,
    record: &RecordFacts,
    tool: &str,
) -> Option<String> {
    let is_by_hand = record.in_portainer == InPortainer::UpToDate
        && differs_from_adoption(container, record, tool) == Some(true);
    is_by_hand.then(|| "started outside of Portainer since the last adoption".to_owned())
}

/// Why a container has neither the configuration of the files nor what would be sent. Its service has these env files.
pub(super) fn why_changed(
    record: Option<&RecordFacts>,
    sent: Sent,
    on_disk: &str,
    env_files: &[String],
) -> String {
    if let Some(edited) = record.filter(|record| record.in_portainer == InPortainer::Edited) {
        let why = if edited.last_sent.has(sent.text, sent.env) {
            "the stack was edited in Portainer"
        } else {
            "edited in Portainer or in the files since the container started"
        };
        return why.to_owned();
    }
    if record.is_some_and(|record| record.in_portainer == InPortainer::OtherForm) {
        return "Portainer's copy gets another form".to_owned();
    }
    let last = record.filter(|record| record.in_portainer == InPortainer::LastSent);
    let last = last.and_then(|sent| sent.contents);
    let has_text = last.is_some_and(|last| last.text == sent.text);
    let has_values = !has_text && last.is_some_and(|last| values(last.env) == values(sent.env));
    // The text or the variables have the values of other env files.
    let env_file = match env_files {
        [] => None,
        [file] => Some(printable(file).into_owned()),
        _ => Some("an env file".to_owned()),
    };
    // A shell that started a container may have had other values.
    let used = occurrences(on_disk);
    let variable = match sent
        .of_shell(used.iter().map(|found| found.name))
        .as_slice()
    {
        [] => None,
        [name] => Some(format!("the {name} of the shell")),
        _ => Some("a variable of the shell".to_owned()),
    };
    let may_have_changed = [
        (!has_text).then(|| "the Compose file".to_owned()),
        (!has_values).then(|| ".env".to_owned()),
        env_file,
        variable.filter(|_| !has_text && !has_values),
    ];
    let changed: Vec<String> = may_have_changed.into_iter().flatten().collect();
    format!(
        "{} has changed since the container started",
        any_of(&changed)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Record;

    #[test]
    fn b22_variables_are_the_same_if_compose_reads_the_same_values() {
        let env = |value: &str| [Variable::new("A", value)];
        for (one, other, expected) in [
            ("a b # c", "a b", true),
            ("a b # c", "'a b'", true),
            ("a b", "a b c", false),
            ("$B", "'$B'", false),
            ("$B", "$C", false),
            ("a$B", "a", true),
            ("a", "a$B", false),
            ("a$HOME", "a", false),
            ("'", "\"", false),
        ] {
            let found = are_same_values(&env(one), &env(other));
            assert_eq!(found, expected, "{one} {other}");
        }
    }

    #[test]
    fn b22_what_portainer_has_was_edited_if_it_is_neither_sent_nor_last_sent() {
        use InPortainer::{Differs, Edited, LastSent as Last, Nothing, UpToDate};
        let of = |text: &'static str| (!text.is_empty()).then_some(text);
        let env = [Variable::new("A", "1")];
        // What Portainer has, what was last sent, what would be sent.
        for (has, last, sent, expected) in [
            ("", "", "b", Nothing),
            ("", "a", "b", Nothing),
            ("b", "a", "b", UpToDate),
            ("b", "", "b", UpToDate),
            ("a", "a", "b", Last),
            ("a", "a", "", Nothing),
            ("x", "a", "b", Edited),
            ("x", "a", "a", Edited),
            ("x", "a", "", Edited),
            ("x", "", "b", Differs),
            ("x", "", "", Nothing),
            // An export names the project.
            ("a: 1\n", "a: 0\n", "name: \"web\"\na: 1\n", UpToDate),
            ("a: 1\n", "a: 0\n", "name: \"web\"\na: 2\n", Edited),
        ] {
            let last_sent =
                of(last).map_or_else(LastSent::default, |text| LastSent::of(text, &env));
            let contents = of(has).map(|text| Sent::new(text, &env));
            let to_send = Sent::new(sent, &env);
            let found = InPortainer::of(contents, &last_sent, to_send, "web");
            assert_eq!(found, expected, "{has:?} {last:?} {sent:?}");
        }
    }

    #[test]
    fn of_what_portainer_has_the_part_that_changed_is_named() {
        let variables = |value: &str| vec![Variable::new("A", value)];
        let (now, same, other) = (variables("1"), variables("1"), variables("2"));
        let record = Record::with_id("7");
        for (text, env, expected) in [
            ("a", &other, ".env"),
            ("b", &same, "the Compose file"),
            ("b", &other, "the Compose file or .env"),
        ] {
            let facts = RecordFacts {
                record: &record,
                contents: Some(Sent::new("a", &now)),
                last_sent: &LastSent::default(),
                in_portainer: InPortainer::LastSent,
            };
            let why = why_changed(Some(&facts), Sent { text, env }, "", &[]);
            let expected = format!("{expected} has changed since the container started");
            assert_eq!(why, expected);
        }
    }

    #[test]
    fn why_a_container_has_another_configuration() {
        use InPortainer::{Edited, LastSent as Last, UpToDate};
        let deployed = |hash: &str| {
            LastSent::of("a", &[]).deployed_as(Some(BTreeSet::from([hash.to_owned()])))
        };
        let container = Container(json!({"Config": {"Labels": {
            "com.docker.compose.project.working_dir": "/opt/stacks/web",
            "com.docker.compose.config-hash": "1",
        }}}));
        let files = "the Compose file or .env has changed since the container started";
        let both = "edited in Portainer or in the files since the container started";
        let by_hand = "started outside of Portainer since the last adoption";
        let record = Record::with_id("7");
        let sent = Sent {
            text: "a",
            env: &[],
        };
        let of_shell = "the Compose file, .env or the HOME of the shell has changed since the container started";
        assert_eq!(why_changed(None, sent, "${HOME}/x", &[]), of_shell);
        let home = [Variable::new("HOME", "/root")];
        let with_home = Sent {
            text: "a",
            env: &home,
        };
        assert_eq!(why_changed(None, with_home, "${HOME}/x", &[]), files);
        let of_shell = "the Compose file, .env or a variable of the shell has changed since the container started";
        let all = "${A:-1} ${B} $$C";
        assert_eq!(why_changed(None, sent, all, &[]), of_shell);
        // What Portainer has, the hash of the last adoption, what would be sent.
        for (in_portainer, hash, text, expected) in [
            (None, "1", "a", files),
            (Some(UpToDate), "2", "a", by_hand),
            (Some(UpToDate), "1", "a", files),
            (Some(Last), "2", "b", files),
            (Some(Edited), "2", "a", "the stack was edited in Portainer"),
            (Some(Edited), "2", "b", both),
        ] {
            let last_sent = &deployed(hash);
            let facts = in_portainer.map(|in_portainer| RecordFacts {
                record: &record,
                contents: None,
                last_sent,
                in_portainer,
            });
            let by_hand = |facts| why_by_hand(&container, facts, "docker");
            let changed = || why_changed(facts.as_ref(), Sent { text, env: &[] }, "", &[]);
            let why = facts.as_ref().and_then(by_hand).unwrap_or_else(changed);
            assert_eq!(why, expected, "{in_portainer:?} {hash} {text}");
        }
        // The containers of an adoption that failed differ, too, but Portainer created this one.
        let mut own = container.clone();
        own["Config"]["Labels"]["com.docker.compose.project.working_dir"] =
            json!("/data/compose/7");
        let last_sent = &deployed("2");
        let facts = RecordFacts {
            record: &record,
            contents: None,
            last_sent,
            in_portainer: UpToDate,
        };
        assert_eq!(why_by_hand(&own, &facts, "docker"), None);
    }
}
