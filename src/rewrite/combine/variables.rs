//! The variables of the new text: those of the project, and new ones with values from other env files.

use std::collections::{BTreeSet, HashMap};

use composefile::{
    interpolate::{self, interpolate},
    reader::NAME_FILES,
};

use super::{Resolved, names_in};
use crate::{
    model::Variable,
    rewrite::{
        env::stack_env,
        faithful::encoded,
        portainer::{SET_BY_PORTAINER, UNKNOWN},
    },
};

pub(super) struct Variables<'a> {
    resolved: &'a Resolved<'a>,
    /// The variables of the project without [`NAME_FILES`]: the new text is the only file.
    own: HashMap<&'a str, &'a str>,
    /// In the order in which they were added.
    added: Vec<(String, String)>,
    /// Every name in the files.
    named: BTreeSet<String>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(resolved: &'a Resolved<'a>) -> Self {
        let all = resolved.env.iter();
        let own = all
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, _)| !NAME_FILES.contains(name));
        Self {
            resolved,
            own: own.collect(),
            added: Vec::new(),
            named: resolved.model.map(names_in).unwrap_or_default(),
        }
    }

    /// Whether there are variables besides those of the project.
    pub(super) fn has_changed(&self) -> bool {
        !self.added.is_empty() || self.own.len() != self.resolved.env.len()
    }

    /// The text of `stack.env`.
    pub(super) fn stack_env(&self) -> String {
        let all = self.resolved.env.iter();
        let own = all.filter(|(name, _)| self.own.contains_key(name.as_str()));
        let sent = own.chain(&self.added);
        let sent = sent.map(|(name, value)| Variable::new(name, encoded(name, value)));
        stack_env(&sent.collect::<Vec<_>>())
    }

    fn value(&self, name: &str) -> Option<String> {
        if SET_BY_PORTAINER.contains(&name) {
            return Some(UNKNOWN.to_owned());
        }
        if name == "COMPOSE_PROJECT_NAME" {
            return Some(self.resolved.project.to_owned());
        }
        let added = || self.added.iter().find(|(other, _)| other == name);
        let own = self.own.get(name).map(|&value| value.to_owned());
        own.or_else(|| Some(added()?.1.clone()))
    }

    /// The text with variables that gives `value`, if there is one: `said`, or `said` without the directory that Compose
    /// put in front of it.
    pub(super) fn expression<'s>(&self, said: &'s str, value: &str) -> Option<&'s str> {
        let without_dir = || {
            let at = said.find('$')?;
            let dir = said[..at].strip_suffix('/')?;
            dir.starts_with('/').then(|| &said[at..])
        };
        let mut candidates = [said].into_iter().chain(without_dir());
        candidates.find(|candidate| self.gives(candidate, value))
    }

    /// Whether an expression gives a value.
    fn gives(&self, expression: &str, value: &str) -> bool {
        interpolate(expression, &|name| self.value(name)).is_ok_and(|given| given == value)
    }

    /// A variable with the value of a service's variable. It has the same name; otherwise, the name of the service is put
    /// in front. `None` if neither name can be used.
    pub(super) fn moved(&mut self, service: &str, name: &str, value: &str) -> Option<String> {
        let of_service = format!("{service}_{name}").replace(['-', '.'], "_");
        for candidate in [name.to_owned(), of_service.to_uppercase()] {
            if self.value(&candidate).as_deref() == Some(value) && self.is_seen(&candidate) {
                return Some(format!("${{{candidate}}}"));
            }
            if is_name(&candidate) && self.is_free(&candidate) && !self.named.contains(&candidate) {
                self.added.push((candidate.clone(), value.to_owned()));
                return Some(format!("${{{candidate}}}"));
            }
        }
        None
    }

    /// Whether every variable of a text is one of the project, or has a default, and the shell sets none of them to
    /// another value.
    pub(super) fn are_known(&self, said: &str) -> bool {
        let mut occurrences = interpolate::occurrences(said).into_iter();
        occurrences.all(|occurrence| {
            let has_value =
                self.own.contains_key(occurrence.name) || !occurrence.operator.is_empty();
            has_value && self.is_seen(occurrence.name) && {
                let word = &said[occurrence.word];
                word.is_empty() || self.are_known(word)
            }
        })
    }

    /// Whether the shell leaves the value that `stack.env` gives a variable in effect.
    fn is_seen(&self, name: &str) -> bool {
        let shell = (self.resolved.shell)(name);
        !SET_BY_PORTAINER.contains(&name) && (shell.is_none() || shell == self.value(name))
    }

    /// Whether a name can be given to a new variable.
    fn is_free(&self, name: &str) -> bool {
        self.value(name).is_none()
            && (self.resolved.shell)(name).is_none()
            && !name.starts_with("COMPOSE_")
            && !name.starts_with("DOCKER_")
    }
}

/// Whether Compose reads `${NAME}` as a variable.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
