//! Which environment of Portainer is the engine of this host (M17).

use anyhow::Result;

use crate::{
    engine::EngineReader,
    failure::Failure,
    parallel::in_parallel,
    plan::Environment,
    portainer::{BaseUrl, EngineOf, NamedEnvironment, PortainerReader},
};

/// Compares the engine of the environment with the engine of this host, if that engine responds (B03, M17). If they
/// differ, looks for the environment of this host: a refusal names it.
pub fn environment(
    portainer: &PortainerReader,
    engine: Option<&EngineReader>,
    endpoint: i64,
) -> Environment {
    let here = || {
        let search = Search::new(portainer, engine?).ok()?;
        search.only().map(|one| one.id)
    };
    match portainer.engine_of(endpoint) {
        Ok(EngineOf::Engine(theirs)) => match engine.map(EngineReader::id) {
            Some(Ok(ours)) if ours == theirs => match portainer.other_socket(endpoint) {
                Some(socket) => Environment::OtherSocket(socket),
                None => Environment::SameEngine,
            },
            Some(Ok(_)) => Environment::OtherEngine { here: here() },
            Some(Err(error)) => Environment::Unknown(format!("{error:#}")),
            None => Environment::Unknown("Docker on this host does not respond".to_owned()),
        },
        Ok(EngineOf::Unnamed) => Environment::Unknown(UNNAMED.to_owned()),
        Ok(EngineOf::NoEnvironment) => Environment::NotFound { here: here() },
        Ok(EngineOf::Forbidden(status)) => Environment::Forbidden(status),
        Err(error) => Environment::Unknown(format!("{error:#}")),
    }
}

const UNNAMED: &str = "Portainer does not report which Docker it uses";

/// The environments that the API key may see, compared with the engine of this host.
#[derive(Default)]
pub struct Search {
    /// Those with this engine.
    matching: Vec<NamedEnvironment>,
    /// Those with another engine.
    others: Vec<NamedEnvironment>,
    /// Those whose engine is unknown, with the reason.
    unread: Vec<(NamedEnvironment, String)>,
    /// Whether the API key may not see every environment.
    is_limited: bool,
}

impl Search {
    /// Asks for the engine of every environment. Fails if the environments or the ID of this engine cannot be read.
    pub fn new(portainer: &PortainerReader, engine: &EngineReader) -> Result<Self> {
        let ours = engine.id()?;
        let all = portainer.environments()?;
        let engines = in_parallel(&all, |one| portainer.engine_of(one.id));
        let mut search = Self::default();
        for (one, theirs) in all.into_iter().zip(engines) {
            match theirs {
                Ok(EngineOf::Engine(theirs)) if theirs == ours => search.matching.push(one),
                Ok(EngineOf::Engine(_)) => search.others.push(one),
                // The environment was deleted in the meantime.
                Ok(EngineOf::NoEnvironment) => {}
                Ok(EngineOf::Unnamed) => search.unread.push((one, UNNAMED.to_owned())),
                Ok(EngineOf::Forbidden(status)) => {
                    let reason = format!("the API key is not allowed to use it ({status})");
                    search.unread.push((one, reason));
                }
                // Its hint is about Portainer, which responded with the list.
                Err(error) => search.unread.push((one, format!("{error:#}"))),
            }
        }
        if search.matching.is_empty() {
            let user = portainer.user();
            search.is_limited = user.is_ok_and(|user| user.is_administrator == Some(false));
        }
        Ok(search)
    }

    /// The one environment with this engine; `None` if there is none or more than one.
    pub fn only(&self) -> Option<&NamedEnvironment> {
        match self.matching.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The same. The error names what was found instead.
    pub fn found(&self, base_url: &BaseUrl) -> Result<&NamedEnvironment> {
        self.only().ok_or_else(|| self.not_found(base_url).into())
    }

    /// The environments whose engine is unknown, and why: one line each.
    pub fn unread(&self) -> impl Iterator<Item = String> {
        self.unread
            .iter()
            .map(|(one, reason)| format!("environment {one} could not be read: {reason}"))
    }

    fn not_found(&self, base_url: &BaseUrl) -> Failure {
        let say = |what: &'static str| {
            move |one: &NamedEnvironment| format!("environment {one} is {what} host")
        };
        let matching = self.matching.iter().map(say("this"));
        let others = self.others.iter().map(say("another"));
        let lines: Vec<String> = matching.chain(others).chain(self.unread()).collect();
        let portainer = format!("Portainer at {base_url}");
        let message = match (self.matching.len(), self.unread.len()) {
            (0, 0) if lines.is_empty() => format!("{portainer} lists no environment with Docker"),
            (0, 0) => format!("no environment of {portainer} is this host"),
            (0, _) => format!("no environment of {portainer} is known to be this host"),
            (several, _) => format!("{several} environments of {portainer} are this host"),
        };
        let hint = match self.matching.as_slice() {
            [] => self.where_it_may_be(),
            _ => "pass the ID of one of them with --endpoint".to_owned(),
        };
        Failure::new(message).hint(hint).lines(&lines)
    }

    fn where_it_may_be(&self) -> String {
        let mut hints = Vec::new();
        if !self.unread.is_empty() {
            hints.push("an environment that could not be read may be this host: make it reachable, or pass its ID with --endpoint");
        }
        if self.is_limited {
            hints.push("the API key does not belong to an administrator and may not see every environment: use an administrator's API key");
        }
        if hints.is_empty() {
            hints.push("add this host to Portainer as an environment");
        }
        hints.join("; ")
    }
}
