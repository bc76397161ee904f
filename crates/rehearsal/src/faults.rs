//! Fault injection: rules by API call, which can change while the rehearsal runs.

use std::{
    fmt,
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// An API call that a rule can select.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Portainer: `GET /api/system/status`.
    Status,
    /// Portainer: `GET /api/endpoints`.
    Endpoints,
    /// Portainer: `GET /api/stacks`.
    List,
    /// Portainer: `GET /api/stacks/<id>`.
    Get,
    /// Portainer: `GET /api/stacks/<id>/file`.
    File,
    /// Portainer: `POST /api/stacks/create/standalone/string`.
    Create,
    /// Portainer: `PUT /api/stacks/<id>`.
    Update,
    /// Portainer: `DELETE /api/stacks/<id>`.
    Delete,
    /// Portainer: `POST /api/stacks/<id>/stop`.
    Stop,
    /// Portainer: `POST /api/stacks/<id>/start`.
    Start,
    /// Portainer: `PUT /api/resource_controls/<id>`.
    Access,
    /// Portainer: `GET /api/endpoints/<id>/docker/…`.
    Info,
    /// Portainer: `GET /api/users/me`.
    Me,
    /// Engine: `/_ping`.
    EnginePing,
    /// Engine: `/version`.
    EngineVersion,
    /// Engine: `/info`.
    EngineInfo,
    /// Engine: `/events`.
    EngineEvents,
    /// Engine: `/containers/json`.
    EngineList,
    /// Engine: `/containers/<id>/json`.
    EngineInspect,
    /// Engine: `DELETE /containers/<id>`.
    EngineRemove,
    /// Engine: `GET /containers/<id>/changes`.
    EngineChanges,
    /// Engine: `GET /containers/<id>/archive`.
    EngineArchive,
    /// Engine: `PUT /containers/<id>/archive`.
    EngineUnpack,
    /// Engine: `GET /containers/<id>/top`.
    EngineTop,
    /// Engine: `POST /containers/create`.
    EngineCreate,
    /// Engine: `POST /containers/<id>/start`.
    EngineStart,
    /// Engine: `POST /containers/<id>/stop`.
    EngineStop,
    /// Engine: `POST /containers/<id>/kill`.
    EngineKill,
    /// Engine: `POST /containers/<id>/restart`.
    EngineRestart,
    /// Engine: `POST /containers/<id>/pause` and `unpause`.
    EnginePause,
    /// Engine: `POST /containers/<id>/rename`.
    EngineRename,
    /// Engine: `POST /containers/<id>/wait`.
    EngineWait,
    /// Engine: `GET /networks` and `/networks/<id>`.
    EngineNetworks,
    /// Engine: `POST /networks/create`.
    EngineNetworkCreate,
    /// Engine: `DELETE /networks/<id>`.
    EngineNetworkRemove,
    /// Engine: `POST /networks/<id>/connect`.
    EngineConnect,
    /// Engine: `POST /networks/<id>/disconnect`.
    EngineDisconnect,
    /// Engine: `GET /volumes` and `/volumes/<name>`.
    EngineVolumes,
    /// Engine: `POST /volumes/create`.
    EngineVolumeCreate,
    /// Engine: `DELETE /volumes/<name>`.
    EngineVolumeRemove,
    /// Engine: `GET /images/json` and `/images/<name>/json`.
    EngineImages,
    /// Engine: `POST /images/create`.
    EnginePull,
    /// Any other request.
    Other,
}

impl Call {
    /// Every call, with its name in `--fault CALL=KIND`.
    pub const NAMES: [(Self, &'static str); 43] = [
        (Self::Status, "status"),
        (Self::Endpoints, "endpoints"),
        (Self::List, "list"),
        (Self::Get, "get"),
        (Self::File, "file"),
        (Self::Create, "create"),
        (Self::Update, "update"),
        (Self::Delete, "delete"),
        (Self::Stop, "stop"),
        (Self::Start, "start"),
        (Self::Access, "access"),
        (Self::Info, "info"),
        (Self::Me, "me"),
        (Self::EnginePing, "engine-ping"),
        (Self::EngineVersion, "engine-version"),
        (Self::EngineInfo, "engine-info"),
        (Self::EngineEvents, "engine-events"),
        (Self::EngineList, "engine-list"),
        (Self::EngineInspect, "engine-inspect"),
        (Self::EngineRemove, "engine-remove"),
        (Self::EngineChanges, "engine-changes"),
        (Self::EngineArchive, "engine-archive"),
        (Self::EngineUnpack, "engine-unpack"),
        (Self::EngineTop, "engine-top"),
        (Self::EngineCreate, "engine-create"),
        (Self::EngineStart, "engine-start"),
        (Self::EngineStop, "engine-stop"),
        (Self::EngineKill, "engine-kill"),
        (Self::EngineRestart, "engine-restart"),
        (Self::EnginePause, "engine-pause"),
        (Self::EngineRename, "engine-rename"),
        (Self::EngineWait, "engine-wait"),
        (Self::EngineNetworks, "engine-networks"),
        (Self::EngineNetworkCreate, "engine-network-create"),
        (Self::EngineNetworkRemove, "engine-network-remove"),
        (Self::EngineConnect, "engine-connect"),
        (Self::EngineDisconnect, "engine-disconnect"),
        (Self::EngineVolumes, "engine-volumes"),
        (Self::EngineVolumeCreate, "engine-volume-create"),
        (Self::EngineVolumeRemove, "engine-volume-remove"),
        (Self::EngineImages, "engine-images"),
        (Self::EnginePull, "engine-pull"),
        (Self::Other, "other"),
    ];
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES
            .iter()
            .find(|(call, _)| call == self)
            .map_or("other", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for Call {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(call, _)| *call);
        found.ok_or_else(|| {
            format!(
                "unknown call {text:?}; expected one of {}",
                listed(&Self::NAMES)
            )
        })
    }
}

fn listed<T>(names: &[(T, &'static str)]) -> String {
    let names: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
    names.join(", ")
}

/// A kind of fault. Unless noted otherwise, the request takes effect and only the response is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// Responds with this status and body; the request has no effect. A redirect points to `/login`.
    Status(u16, String),
    /// Responds with this status and body.
    Body(u16, Vec<u8>),
    /// Fails, but the response is that of a proxy, with this status and body.
    FailureBehind(u16, Vec<u8>),
    /// Responds with a body of invalid bytes.
    Garbage,
    /// Responds with an empty body.
    Empty,
    /// Closes the connection in the middle of the body.
    CutOff,
    /// Closes the connection; the request has no effect.
    CloseBefore,
    /// Closes the connection without a response.
    CloseAfter,
    /// Does not respond until the rehearsal ends; the request has no effect.
    Hang,
    /// Does not respond until the rehearsal ends.
    HangAfter,
    /// Sends the response byte by byte.
    SlowDrip,
    /// Stops the API, so that connections are refused; the request has no effect.
    Die,
    /// Stops the API after the request, so that connections are refused.
    DieAfter,
    /// Succeeds only after this time. Portainer continues if the client of a create, update or delete disconnects (M21).
    LateSuccess(Duration),
    /// Fails after this time. Portainer continues if the client of a create, update or delete disconnects (M21).
    LateFailure(Duration),
}

/// The delay of `late-success` and `late-failure` without one.
const LATE: Duration = Duration::from_secs(3);

impl FaultKind {
    /// Every kind except statuses, with its name in `--fault CALL=KIND`.
    pub const NAMES: [(Self, &'static str); 12] = [
        (Self::Garbage, "garbage"),
        (Self::Empty, "empty"),
        (Self::CutOff, "cut-off"),
        (Self::CloseBefore, "close-before"),
        (Self::CloseAfter, "close-after"),
        (Self::Hang, "hang"),
        (Self::HangAfter, "hang-after"),
        (Self::SlowDrip, "slow-drip"),
        (Self::Die, "die"),
        (Self::DieAfter, "die-after"),
        (Self::LateSuccess(LATE), "late-success"),
        (Self::LateFailure(LATE), "late-failure"),
    ];

    /// The same kind with another delay; `None` if the kind has none.
    fn delayed(&self, seconds: &str) -> Option<Self> {
        let delay = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
        match self {
            Self::LateSuccess(_) => Some(Self::LateSuccess(delay)),
            Self::LateFailure(_) => Some(Self::LateFailure(delay)),
            _ => None,
        }
    }
}

impl FromStr for FaultKind {
    type Err = String;

    /// Parses a name of [`FaultKind::NAMES`], a late one with its seconds such as `late-failure:0.5`, or a status such
    /// as `503`.
    fn from_str(text: &str) -> Result<Self, String> {
        let named = |text: &str| Self::NAMES.iter().find(|(_, name)| *name == text);
        if let Some((kind, _)) = named(text) {
            return Ok(kind.clone());
        }
        if let Some((name, seconds)) = text.split_once(':')
            && let Some(kind) = named(name).and_then(|(kind, _)| kind.delayed(seconds))
        {
            return Ok(kind);
        }
        if let Ok(status @ 200..=599) = text.parse() {
            return Ok(Self::Status(status, "simulated failure".to_owned()));
        }
        Err(format!(
            "unknown fault {text:?}; expected a status such as 503, or one of {}",
            listed(&Self::NAMES)
        ))
    }
}

/// A rule: injects a fault into requests of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    call: Call,
    kind: FaultKind,
    after: usize,
    times: usize,
    path: Option<String>,
}

impl Rule {
    /// Applies to every request of the call.
    pub fn new(call: Call, kind: FaultKind) -> Self {
        Self {
            call,
            kind,
            after: 0,
            times: usize::MAX,
            path: None,
        }
    }

    /// Limits the rule to the next `times` requests.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// Skips the first `count` requests.
    #[must_use]
    pub fn after(self, count: usize) -> Self {
        Self {
            after: count,
            ..self
        }
    }

    /// Limits the rule to requests whose path and query contain `part`.
    #[must_use]
    pub fn path(self, part: &str) -> Self {
        Self {
            path: Some(part.to_owned()),
            ..self
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    /// Parses `CALL=KIND` (every request) and `CALL=KIND*TIMES` (the next ones), such as `create=close-after*1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (call, rest) = text.split_once('=').ok_or_else(|| {
            format!(
                "expected CALL=KIND[*TIMES], such as create=close-after or list=503*1\n\
                 calls: {}\n\
                 kinds: a status such as 503, {}",
                listed(&Call::NAMES),
                listed(&FaultKind::NAMES)
            )
        })?;
        let (kind, times) = match rest.split_once('*') {
            Some((kind, times)) => (
                kind,
                times
                    .parse()
                    .map_err(|_| format!("invalid count {times:?}: expected a number"))?,
            ),
            None => (rest, usize::MAX),
        };
        Ok(Self::new(call.parse()?, kind.parse()?).times(times))
    }
}

/// The active rules. The first rule that matches a request applies.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Vec<Rule>>);

impl Faults {
    /// Adds a rule.
    pub fn add(&self, rule: Rule) {
        self.rules().push(rule);
    }

    /// Adds a rule for every request of the call.
    pub fn set(&self, call: Call, kind: FaultKind) {
        self.add(Rule::new(call, kind));
    }

    /// Adds a rule for the next request of the call.
    pub fn once(&self, call: Call, kind: FaultKind) {
        self.add(Rule::new(call, kind).times(1));
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.rules().clear();
    }

    /// The fault for this request. Counts as one use of its rule.
    pub(super) fn take(&self, call: Call, target: &str) -> Option<FaultKind> {
        let mut rules = self.rules();
        let matches = |rule: &&mut Rule| {
            rule.call == call
                && rule.times > 0
                && rule
                    .path
                    .as_ref()
                    .is_none_or(|part| target.contains(part.as_str()))
        };
        let rule = rules.iter_mut().find(matches)?;
        if rule.after > 0 {
            rule.after -= 1;
            return None;
        }
        rule.times -= 1;
        Some(rule.kind.clone())
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_rules_of_the_command_line() {
        let parse = |text: &str| text.parse::<Rule>();
        assert_eq!(
            parse("create=close-after*1"),
            Ok(Rule::new(Call::Create, FaultKind::CloseAfter).times(1))
        );
        assert_eq!(
            parse("engine-remove=hang"),
            Ok(Rule::new(Call::EngineRemove, FaultKind::Hang))
        );
        assert!(matches!(
            parse("list=503").unwrap().kind,
            FaultKind::Status(503, _)
        ));
        for wrong in ["list", "list=", "lists=503", "list=1000", "list=503*x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for (call, name) in Call::NAMES {
            assert_eq!((call.to_string().as_str(), name.parse()), (name, Ok(call)));
        }
    }
}
