//! Variables: what cannot be read is refused, and what only the caller's shell defines is written out.
#![deny(clippy::disallowed_methods)]

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    Notice, Reason, Refusal,
    rewriter::{Note, Rewriter},
    shell::{self, OF_THE_MANAGER},
};
use composefile::{
    document::{Node, NodeKind as Kind, NodeSet},
    interpolate::{InterpolateError, escaped, interpolate},
};

impl<'d> Rewriter<'d, '_> {
    /// What becomes of a variable at the manager.
    pub(super) fn fate(&self, name: &str) -> shell::Fate {
        let shell = (self.context.shell)(name);
        let env = self.variables.get(name).copied();
        let differs = shell.is_some() && shell.as_deref() != env;
        if name == "COMPOSE_PROJECT_NAME" || !(differs || OF_THE_MANAGER.contains(&name)) {
            return shell::Fate::Stays;
        }
        shell::Fate::Written(self.here(name))
    }

    /// Whether the value of a variable is `.env`'s, which is not to be shown.
    fn is_of_env(&self, name: &str) -> bool {
        (self.context.shell)(name).is_none() && self.variables.contains_key(name)
    }

    /// Every text that compose replaces variables in: what cannot be read is refused, what only the shell
    /// defines is written in.
    pub(super) fn variables_in_scalars(&mut self) {
        if !self.document.text().contains('$') {
            return;
        }
        let mut is_key = vec![false; self.document.nodes().len()];
        for entry in self.document.nodes().flat_map(Node::own_entries) {
            is_key[entry.key.id().index()] = true;
        }
        let mut unset: BTreeMap<String, usize> = BTreeMap::new();
        for node in self.document.nodes() {
            let Kind::Scalar(_) = node.kind() else {
                continue;
            };
            let Some((text, _)) = node
                .scalar()
                .filter(|(text, _)| text.as_bytes().contains(&b'$'))
            else {
                continue;
            };
            if is_key[node.id().index()] {
                continue;
            }
            if let Err(error) = interpolate(text, &|name| self.here(name)) {
                self.refuse_variable(node, &error);
                continue;
            }
            shell::names(text, &mut |name, is_bare| {
                if is_bare && self.here(name).is_none() {
                    unset.entry(name.to_owned()).or_insert_with(|| node.line());
                }
            });
            let mut names = Vec::new();
            let new = shell::written(text, &|name| self.fate(name), &mut names);
            if let Cow::Owned(new) = new {
                let what = format!("{} is written out", names.join(", "));
                let why = "the manager has its own shell, or none";
                self.written.insert(node.id(), new.clone());
                let is_secret = names.iter().any(|name| self.is_of_env(name));
                self.desired
                    .insert(node.id(), (new, (what, why, is_secret)));
            }
        }
        for (name, line) in unset {
            self.notices.push(Notice {
                line: Some(line),
                message: format!("{name} is set nowhere: it stays empty, as here"),
            });
        }
    }

    fn refuse_variable(&mut self, node: Node<'d>, error: &InterpolateError) {
        let (message, hint) = match error {
            InterpolateError::Required { name, .. } => (
                format!("the variable {name} must be set and is not"),
                format!("set {name} in .env; compose refuses the stack as it is"),
            ),
            InterpolateError::Invalid { .. } => (
                "a `${` begins no variable".to_owned(),
                "write `$$` where a dollar sign is meant; compose refuses the stack as it is"
                    .to_owned(),
            ),
        };
        self.refusals
            .push(Refusal::at(node, Reason::BadVariable, message, hint));
    }

    /// Entries of `environment`, and of the `args` of a build that stays, without a value: they take it from
    /// where compose runs.
    pub(super) fn bare_variables(&mut self) {
        let mut seen = NodeSet::default();
        for service in self.services.clone() {
            let args = service
                .build()
                .filter(|build| self.reader.is_remote(*build));
            let places = [
                service.node.get("environment"),
                args.and_then(|build| build.get("args")),
            ];
            for place in places.into_iter().flatten() {
                if seen.insert(place.resolved().id()) {
                    self.bare_in(place, &mut seen);
                }
            }
        }
        for (section, key) in [("secrets", "environment"), ("configs", "environment")] {
            for entry in self
                .document
                .get(section)
                .map(Node::entries)
                .unwrap_or_default()
            {
                let Some(node) = entry.value.get(key) else {
                    continue;
                };
                let text = node.as_str().unwrap_or_default();
                let name = interpolate(text, &|name| self.here(name)).unwrap_or_default();
                if let shell::Fate::Written(_) = self.fate(&name) {
                    self.refuse_shell(node, &name);
                }
            }
        }
        self.options();
    }

    /// The same in one list or mapping.
    fn bare_in(&mut self, place: Node<'d>, seen: &mut NodeSet) {
        for item in place.items() {
            let text = self.text_of(item);
            let read = text.and_then(|text| interpolate(text, &|name| self.here(name)).ok());
            let name = read.filter(|text| !text.contains('='));
            let Some(name) = name.map(Cow::into_owned) else {
                continue;
            };
            if let Some((value, note)) = self.bare(item, &name) {
                let text = format!("{name}={}", escaped(&value));
                self.desire(item, text, note);
            }
        }
        for entry in place.entries() {
            let Some(name) = entry.name().filter(|_| entry.value.is_null()) else {
                continue;
            };
            if let Some((value, note)) = self.bare(entry.value, name) {
                let value = escaped(&value);
                if !seen.insert(entry.value.id()) || self.is_elsewhere(entry.value) {
                    continue;
                }
                if self.splices.fill(entry, &value, note).is_err() {
                    self.refuse_unwritable(entry.key);
                }
            }
        }
    }

    fn bare(&mut self, node: Node<'d>, name: &str) -> Option<(String, Note)> {
        match self.fate(name) {
            shell::Fate::Stays => None,
            shell::Fate::Written(Some(value)) => {
                let what = format!("{name} gets the value it has here");
                let why = "the manager has its own shell, or none";
                Some((value, (what, why, self.is_of_env(name))))
            }
            shell::Fate::Written(None) => {
                self.refuse_shell(node, name);
                None
            }
        }
    }

    fn refuse_shell(&mut self, node: Node<'d>, name: &str) {
        self.refusals.push(Refusal::at(
            node,
            Reason::OfTheShell,
            format!("{name} is taken from the shell here, and the manager has another one"),
            format!("give it a name of its own in .env instead of {name}"),
        ));
    }

    /// What the shell says to compose itself does not reach the manager, but for what `.env` says too (M14).
    fn options(&mut self) {
        const OFF: &str = "COMPOSE_DISABLE_ENV_FILE";
        let shell = |name: &str| (self.context.shell)(name).filter(|value| !value.is_empty());
        let mut found = Vec::new();
        for name in [
            "COMPOSE_PROFILES",
            "COMPOSE_COMPATIBILITY",
            "DOCKER_DEFAULT_PLATFORM",
        ] {
            let value = shell(name);
            if value.is_some() && value.as_deref() != self.variables.get(name).copied() {
                found.push(Refusal::of(
                    Reason::OfTheShell,
                    format!("{name} is set in the shell, and not so in .env"),
                    "write it into .env, or unset it: the manager does not have your shell",
                ));
            }
        }
        let others =
            shell("COMPOSE_ENV_FILES").filter(|files| self.base().local(files) != self.own_env);
        if others.is_some() {
            found.push(Refusal::of(
                Reason::OfTheShell,
                "COMPOSE_ENV_FILES names other env files than .env",
                "write what they say into .env, and unset it: the manager has one such file",
            ));
        }
        if shell(OFF).as_deref().is_some_and(is_true) && self.env_text.is_some() {
            found.push(Refusal::of(
                Reason::OfTheShell,
                format!("{OFF} is set in the shell, so that compose does not read .env"),
                "unset it, or move .env away",
            ));
        } else if self.variables.get(OFF).is_some_and(|value| is_true(value)) {
            found.push(Refusal::of(
                Reason::Disputed,
                format!("whether compose reads a .env that sets {OFF} depends on its version"),
                format!("take {OFF} out of .env"),
            ));
        }
        self.refusals.extend(found);
    }
}

/// Whether compose takes the value of one of its own variables for true.
pub(super) fn is_true(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}
