//! Variables without a value, which Compose takes from its own environment.

use composefile::{
    document::Node,
    interpolate::{escaped, interpolate},
    reader::Reader,
};

use crate::rewrite::faithful::{
    Kind,
    findings::{Findings, NewValue},
    shell::{self, Substitution, effective_text},
};

/// Gives a value to bare names in `environment`, and in `args` of builds that Portainer can run, if the shell sets
/// them. Blocks on secrets and configs that come from the shell.
pub(super) fn bare_variables<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    let mut pass = BareVariables { reader, found };
    for service in &reader.services {
        let args = service.build().filter(|build| reader.is_remote(*build));
        let places = [
            service.node.get("environment"),
            args.and_then(|build| build.get("args")),
        ];
        for place in places.into_iter().flatten() {
            pass.items(place);
            pass.entries(place);
        }
    }
    pass.sources("secrets");
    pass.sources("configs");
}

struct BareVariables<'r, 'd, 'a> {
    reader: &'r Reader<'d, 'a>,
    found: &'r mut Findings<'d>,
}

impl<'d> BareVariables<'_, 'd, '_> {
    fn items(&mut self, list: Node<'d>) {
        for item in list.items() {
            let Some(text) = effective_text(self.reader, item) else {
                continue;
            };
            let Ok(name) = interpolate(&text, &|name| self.reader.here(name)) else {
                continue;
            };
            if name.contains('=') {
                continue;
            }
            if let Some(value) = self.value(item, &name) {
                let text = format!("{name}={}", escaped(&value));
                let secrecy = shell::secrecy(self.reader, &name);
                self.found.set(item, &text, secrecy);
            }
        }
    }

    fn entries(&mut self, mapping: Node<'d>) {
        for entry in mapping.entries() {
            let Some(name) = entry.name().filter(|_| entry.value.is_null()) else {
                continue;
            };
            if let Some(value) = self.value(entry.value, name) {
                let new = (name.to_owned(), NewValue::Text(escaped(&value)));
                self.found.replace(mapping, entry, &[new]);
            }
        }
    }

    /// `environment` of the members of `secrets` or `configs`: no text can hold the value.
    fn sources(&mut self, section: &str) {
        let section = self.reader.document.get(section);
        for entry in section.map(Node::entries).unwrap_or_default() {
            let Some(node) = entry.value.get("environment") else {
                continue;
            };
            let text = node.as_str().unwrap_or_default();
            let name = self.reader.read(text).unwrap_or_default();
            if let Substitution::Inline(_) = shell::substitution(self.reader, &name) {
                self.block(node, &name);
            }
        }
    }

    /// The value to be written for a variable, if Portainer would not find it.
    fn value(&mut self, node: Node<'d>, name: &str) -> Option<String> {
        match shell::substitution(self.reader, name) {
            Substitution::Portainer => None,
            Substitution::Inline(Some(value)) => Some(value),
            Substitution::Inline(None) => {
                self.block(node, name);
                None
            }
        }
    }

    fn block(&mut self, node: Node<'d>, name: &str) {
        let message = format!("{name} does not have the same value in Portainer as in your shell");
        let hint =
            format!("set a variable with another name in .env, and use it instead of {name}");
        self.found.block(node, Kind::ShellVariable, message, hint);
    }
}
