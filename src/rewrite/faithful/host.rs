//! What compose takes from this host besides paths and env files, and no text carries.
#![deny(clippy::disallowed_methods)]

use super::{Reason, Refusal, rewriter::Rewriter};
use composefile::{document::Node, services::Service};

/// What is in the way, and what to do.
type Finding<'d> = (Node<'d>, String, &'static str);

impl<'d> Rewriter<'d, '_> {
    /// Refuses what compose reads or runs by itself when it makes a container; `docker compose config` shows
    /// none of it.
    pub(super) fn of_this_host(&mut self) {
        for service in self.services.clone() {
            for (node, message, hint) in self.taken_from_here(service) {
                let refusal = Refusal::at(node, Reason::UnreadableFile, message, hint);
                self.refusals.push(refusal);
            }
        }
    }

    fn taken_from_here(&self, service: Service<'d>) -> Vec<Finding<'d>> {
        let name = service.name;
        let mut found = Vec::new();
        for option in service
            .node
            .get("security_opt")
            .into_iter()
            .flat_map(Node::items)
        {
            if self
                .read(option)
                .is_some_and(|option| names_seccomp_profile(&option))
            {
                found.push((
                    option,
                    format!("the seccomp profile of the service {name} is a file that the manager cannot read"),
                    "make it the profile of the whole engine (`seccomp-profile` in its daemon.json) and take it out here",
                ));
            }
        }
        for (key, what) in [
            (
                "provider",
                "runs a program of this host, which the manager does not have",
            ),
            (
                "models",
                "need a plugin of this host, which the manager does not have",
            ),
        ] {
            let written = service.node.get(key).filter(|node| !node.is_null());
            found.extend(written.map(|node| {
                let message = format!("`{key}` of the service {name} {what}");
                (
                    node,
                    message,
                    "run the service on its own, outside of the stack",
                )
            }));
        }
        let socket = service.node.get("use_api_socket");
        found.extend(socket.filter(|node| self.read(*node).as_deref() == Some("true")).map(|node| {
            let message = format!("`use_api_socket` of the service {name} gives it the registry logins of whoever starts the stack, and the manager has others");
            (node, message, "mount /var/run/docker.sock, and a config.json with the logins that it needs")
        }));
        found
    }
}

/// Whether compose reads a file for an item of `security_opt`.
fn names_seccomp_profile(option: &str) -> bool {
    let parts = option.split_once('=').or_else(|| option.split_once(':'));
    parts.is_some_and(|(key, value)| key == "seccomp" && !matches!(value, "unconfined" | "builtin"))
}
