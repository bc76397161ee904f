//! Which environment of Portainer is this host (M17, B37).

use anyhow::{Result, bail};

use crate::{
    engine::EngineReader,
    failure::Failure,
    model::{Container, Grant},
    parallel::in_parallel,
    plan::Environment,
    portainer::{BaseUrl, NamedEnvironment, PortainerReader},
};

/// What runs here, and shows which environment is this host (B37): the IDs of the engines of cloned machines are equal.
#[derive(Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The containers of the stack. The environment has to list each that runs.
    pub own: &'a [Container],
    /// Other containers of this host. They count if nothing of the stack runs, and may change in the meantime: one that the
    /// environment lists is enough.
    pub others: &'a [Container],
}

/// How many containers Portainer is asked for: their IDs are part of the address.
const MOST_ASKED: usize = 50;

impl<'a> Evidence<'a> {
    /// Those that Portainer is asked for. It would store the labels of others that say who may use them (M23).
    fn asked(all: &'a [Container]) -> Vec<&'a Container> {
        let is_asked = |one: &&Container| one.is_running() && Grant::of_labels(one).is_empty();
        all.iter().filter(is_asked).take(MOST_ASKED).collect()
    }

    /// The name of a container whose absence shows that the environment is not this host. One that no longer runs here shows
    /// nothing: a deployment may have replaced it between the two lists.
    fn missing(
        self,
        portainer: &PortainerReader,
        engine: &EngineReader,
        endpoint: i64,
    ) -> Result<Option<&'a str>> {
        let own = Self::asked(self.own);
        let is_of_stack = !own.is_empty();
        let asked = if is_of_stack {
            own
        } else {
            Self::asked(self.others)
        };
        let ids: Vec<&str> = asked.iter().map(|one| one.id()).collect();
        let listed = portainer.container_ids(endpoint, &ids)?;
        let is_missing = |one: &&Container| !listed.contains(one.id());
        let is_here = !is_of_stack && !asked.iter().all(is_missing);
        let count = asked.len();
        let mut missing = asked;
        missing.retain(is_missing);
        if missing.is_empty() || is_here {
            return Ok(None);
        }
        let is_all = missing.len() == count;
        let now = engine.list_all_again()?;
        missing.retain(|container| {
            now.iter()
                .any(|now| now.id() == container.id() && now.is_running())
        });
        match missing.first() {
            None if is_all => bail!("the containers were replaced while they were compared"),
            missing => Ok(missing.map(|container| container.name())),
        }
    }
}

/// Whether the environment is this host, if the engine of this host responds (B03, M17, B37). If it is not, looks for the
/// environment that is: a refusal names it.
pub fn environment(
    portainer: &PortainerReader,
    engine: Option<&EngineReader>,
    endpoint: i64,
    evidence: Evidence,
) -> Environment {
    let mut environment = compare(portainer, engine, endpoint, evidence);
    if let Environment::OtherEngine { here }
    | Environment::Clone { here, .. }
    | Environment::NotFound { here } = &mut environment
    {
        let search = engine.and_then(|engine| Environments::new(portainer, engine, evidence).ok());
        *here = search.and_then(|search| search.only().map(|found| found.id));
    }
    environment
}

/// The same, without looking for another environment.
pub fn compare(
    portainer: &PortainerReader,
    engine: Option<&EngineReader>,
    endpoint: i64,
    evidence: Evidence,
) -> Environment {
    match portainer.engine_of(endpoint) {
        Ok(Ok(theirs)) => match engine.map(|engine| (engine, engine.id())) {
            Some((engine, Ok(ours))) if ours == theirs => {
                look_for(portainer, engine, endpoint, evidence)
            }
            Some((_, Ok(_))) => Environment::OtherEngine { here: None },
            Some((_, Err(error))) => Environment::Unknown(format!("{error:#}")),
            None => Environment::Unknown("Docker on this host does not respond".to_owned()),
        },
        Ok(Err(404)) => Environment::NotFound { here: None },
        Ok(Err(status)) => Environment::Forbidden(status),
        Err(error) => Environment::Unknown(format!("{error:#}")),
    }
}

/// Looks for the containers of this host on an environment whose engine has the ID of this host's engine.
fn look_for(
    portainer: &PortainerReader,
    engine: &EngineReader,
    endpoint: i64,
    evidence: Evidence,
) -> Environment {
    let missing = match evidence.missing(portainer, engine, endpoint) {
        Ok(missing) => missing,
        Err(error) => return Environment::Unknown(format!("{error:#}")),
    };
    if let Some(container) = missing {
        let container = container.to_owned();
        let here = None;
        let user = portainer.user();
        return if user.is_ok_and(|user| user.is_administrator == Some(true)) {
            Environment::Clone { container, here }
        } else {
            Environment::Hidden(container)
        };
    }
    match portainer.other_socket(endpoint) {
        Some(socket) => Environment::OtherSocket(socket),
        None => Environment::SameEngine,
    }
}

/// The environments that the API key may see, compared with the engine of this host.
#[derive(Default)]
pub struct Environments {
    /// Those with this engine.
    matching: Vec<NamedEnvironment>,
    /// Those with another engine.
    others: Vec<NamedEnvironment>,
    /// Those whose engine is unknown, with the reason.
    unread: Vec<(NamedEnvironment, String)>,
    /// Whether the API key may not see every environment.
    is_limited: bool,
}

impl Environments {
    /// Compares every environment with all that runs on this host. Fails if the environments, the ID of this engine or its
    /// containers cannot be read.
    pub fn of_host(portainer: &PortainerReader, engine: &EngineReader) -> Result<Self> {
        let others = &engine.list_all()?;
        Self::new(portainer, engine, Evidence { own: &[], others })
    }

    /// Compares every environment with this host. Fails if the environments or the ID of this engine cannot be read.
    fn new(portainer: &PortainerReader, engine: &EngineReader, evidence: Evidence) -> Result<Self> {
        engine.id()?;
        let all = portainer.environments()?;
        let compared = in_parallel(&all, |environment| {
            compare(portainer, Some(engine), environment.id, evidence)
        });
        let mut search = Self::default();
        for (one, compared) in all.into_iter().zip(compared) {
            match compared {
                Environment::SameEngine | Environment::OtherSocket(_) => search.matching.push(one),
                Environment::OtherEngine { .. } | Environment::Clone { .. } => {
                    search.others.push(one);
                }
                // The environment was deleted in the meantime.
                Environment::NotFound { .. } => {}
                Environment::Hidden(container) => {
                    let reason = format!("the API key does not see container {container} there");
                    search.unread.push((one, reason));
                }
                Environment::Forbidden(status) => {
                    let reason = format!("the API key is not allowed to use it ({status})");
                    search.unread.push((one, reason));
                }
                // Its hint is about Portainer, which responded with the list.
                Environment::Unknown(reason) => search.unread.push((one, reason)),
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
