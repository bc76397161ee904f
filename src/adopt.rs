//! The adoption: a running stack moves into Portainer, and containers whose configuration is the same are not touched
//! (M05).

use std::time::Duration;

use anyhow::Result;

use crate::{
    compose,
    failure::Failure,
    observe::Situation,
    plan::{Keep, Request},
    portainer::BaseUrl,
    run::{self, Consent, Listener, Peers, Run, Setup, Stopped, Witness},
    stack::Stack,
};

mod prepare;
mod pull;
mod sending;
mod verify;

pub use prepare::Prepared;

/// The input of an adoption.
pub struct Adopt<'a> {
    pub stack: &'a Stack,
    pub peers: &'a Peers,
    pub setup: &'a Setup,
    /// Portainer's address.
    pub base_url: &'a BaseUrl,
    /// The environment of this host.
    pub endpoint: i64,
    /// The container tool: its name is part of the labels.
    pub tool: &'a str,
    /// The Compose program of this host.
    pub compose: &'a compose::Host,
    /// What to write into the text, or not, because it runs.
    pub keep: Keep,
    /// Whether to pull images that are not on this engine.
    pub pull: bool,
    /// Whether to ask before a container is replaced or something is lost (B08).
    pub consent: Consent<'a>,
    /// How long containers may take until they run, and are healthy if they were.
    pub wait: Duration,
}

/// Adopts the stack.
pub fn run(adopt: &Adopt, listener: &mut Listener) -> Result<(), Stopped> {
    let lock = adopt.stack.lock();
    run::under_lock(lock, adopt.peers, adopt.setup, listener, |run| {
        Procedure { a: adopt, run }.steps()
    })
}

struct Procedure<'a, 'r> {
    a: &'a Adopt<'a>,
    run: &'r mut Run<'a>,
}

impl<'a> Procedure<'a, '_> {
    fn situation(&self) -> Situation<'a> {
        Situation {
            portainer: self.run.portainer,
            engine: self.run.engine.reader(),
            stack: self.a.stack,
            base_url: self.a.base_url,
            endpoint: self.a.endpoint,
            tool: self.a.tool,
            compose: self.a.compose,
        }
    }

    fn steps(&mut self) -> Result<()> {
        self.show_banner();
        self.run.settle(Witness::PortainerAndEngine)?;
        self.run.wait("inspecting what exists");
        let prepared = self.prepare()?;
        let prepared = self.pull(prepared)?;
        self.run.hide(prepared.source.env.as_deref(), &[]);
        self.say(&prepared)?;
        if let Request::Nothing(id) = &prepared.plan.request {
            self.run.step(
                "nothing",
                format!("to do: Portainer stack {id} has this text"),
            );
            return Ok(());
        }
        self.ask(&prepared)?;
        self.take_snapshot(&prepared)?;
        self.send(&prepared)?;
        self.verify(&prepared)
    }

    fn prepare(&mut self) -> Result<Prepared> {
        Prepared::new(&self.situation(), self.a.keep)
    }

    fn show_banner(&mut self) {
        let (stack, endpoint) = (self.a.stack, self.a.endpoint);
        let (name, dir) = (stack.name(), stack.dir().display());
        self.run.step(
            "adopt",
            format!("{name} from {dir} into environment {endpoint}"),
        );
    }

    /// Reports the plan. Stops with every blocker at once.
    fn say(&mut self, prepared: &Prepared) -> Result<()> {
        for warning in prepared
            .before
            .warnings
            .iter()
            .chain(&prepared.plan.warnings)
        {
            self.run.warn(warning);
        }
        let blockers = &prepared.plan.blockers;
        if !blockers.is_empty() {
            let lines: Vec<String> = blockers.iter().map(|one| format!("  - {one}")).collect();
            return Err(
                Failure::new(format!("cannot adopt the stack {}", self.a.stack.name()))
                    .details(lines.join("\n"))
                    .hint("fix all of them, then run the command again")
                    .into(),
            );
        }
        for service in &prepared.plan.services {
            self.run
                .step("plan", format!("{}: {}", service.service, service.fate));
        }
        if !prepared.plan.losses.is_empty() {
            let losses = prepared.plan.losses.iter();
            let lines: Vec<String> = losses.map(|loss| format!("  - {loss}")).collect();
            self.run
                .warn(format!("the stack will lose:\n{}", lines.join("\n")));
        }
        Ok(())
    }

    /// Asks if a container is replaced, or something is lost (B08).
    fn ask(&mut self, prepared: &Prepared) -> Result<()> {
        let Consent::Ask(ask) = self.a.consent else {
            return Ok(());
        };
        if !prepared.plan.interrupts() && prepared.plan.losses.is_empty() {
            return Ok(());
        }
        let name = self.a.stack.name();
        if ask(&format!("adopt {name}?")) {
            return Ok(());
        }
        Err(Failure::new("canceled: the adoption was not confirmed")
            .hint("to adopt without this question, pass --yes")
            .into())
    }
}
