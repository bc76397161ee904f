//! Fault injection: rules by API call, which can change while the rehearsal runs.

use std::{
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The API that received a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The simulated Portainer.
    Portainer,
    /// The simulated container engine.
    Engine,
}

/// The calls, each with its name in `--fault CALL=KIND` and its requests: `*` is any segment of the path, and `...` any
/// rest.
macro_rules! calls {
    ($($call:ident = $name:literal: $peer:ident $($pattern:literal),+;)*) => {
        /// An API call that a rule can select.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call {
            $(#[doc = concat!($("`", $pattern, "` "),+)] $call,)*
            /// Any other request.
            Other,
        }

        /// The calls with their names and requests.
        const CALLS: &[(Call, &str, Peer, &[&str])] =
            &[$((Call::$call, $name, Peer::$peer, &[$($pattern),+]),)*];
    };
}

calls! {
    Status = "status": Portainer "GET api/system/status";
    Endpoints = "endpoints": Portainer "GET api/endpoints", "GET api/endpoints/*";
    List = "list": Portainer "GET api/stacks";
    Get = "get": Portainer "GET api/stacks/*";
    File = "file": Portainer "GET api/stacks/*/file";
    Create = "create": Portainer "POST api/stacks/create/standalone/string";
    Update = "update": Portainer "PUT api/stacks/*";
    Delete = "delete": Portainer "DELETE api/stacks/*";
    Stop = "stop": Portainer "POST api/stacks/*/stop";
    Access = "access": Portainer "PUT api/resource_controls/*";
    Info = "info": Portainer "GET api/endpoints/*/docker/info";
    Me = "me": Portainer "GET api/users/me";
    EnginePing = "engine-ping": Engine "GET _ping", "HEAD _ping";
    EngineVersion = "engine-version": Engine "GET version";
    EngineInfo = "engine-info": Engine "GET info";
    EngineEvents = "engine-events": Engine "GET events";
    EngineList = "engine-list": Engine "GET containers/json";
    EngineInspect = "engine-inspect": Engine "GET containers/*/json";
    EngineRemove = "engine-remove": Engine "DELETE containers/*";
    EngineChanges = "engine-changes": Engine "GET containers/*/changes";
    EngineArchive = "engine-archive": Engine "GET containers/*/archive";
    EngineUnpack = "engine-unpack": Engine "PUT containers/*/archive";
    EngineTop = "engine-top": Engine "GET containers/*/top";
    EngineCreate = "engine-create": Engine "POST containers/create";
    EngineStart = "engine-start": Engine "POST containers/*/start";
    EngineStop = "engine-stop": Engine "POST containers/*/stop";
    EnginePause = "engine-pause": Engine "POST containers/*/pause", "POST containers/*/unpause";
    EngineNetworks = "engine-networks": Engine "GET networks", "GET networks/*";
    EngineNetworkCreate = "engine-network-create": Engine "POST networks/create";
    EngineNetworkRemove = "engine-network-remove": Engine "DELETE networks/*";
    EngineConnect = "engine-connect": Engine "POST networks/*/connect";
    EngineVolumes = "engine-volumes": Engine "GET volumes", "GET volumes/*";
    EngineVolumeCreate = "engine-volume-create": Engine "POST volumes/create";
    EngineImages = "engine-images": Engine "GET images/...";
    EnginePull = "engine-pull": Engine "POST images/create";
}

impl Call {
    /// Classifies a request.
    pub(super) fn of(peer: Peer, method: &str, path: &[&str]) -> Self {
        let fits = |pattern: &&&str| {
            let (wanted, pattern) = pattern.split_once(' ').unwrap_or_default();
            let (pattern, has_rest) = match pattern.strip_suffix("/...") {
                Some(pattern) => (pattern, true),
                None => (pattern, false),
            };
            let parts = pattern.split('/').collect::<Vec<_>>();
            wanted == method
                && (parts.len() == path.len() || (has_rest && parts.len() < path.len()))
                && parts
                    .iter()
                    .zip(path)
                    .all(|(part, given)| *part == "*" || part == given)
        };
        let found = CALLS
            .iter()
            .find(|(_, _, of, patterns)| *of == peer && patterns.iter().any(|one| fits(&one)));
        found.map_or(Self::Other, |(call, ..)| *call)
    }

    /// The names of all calls.
    pub fn names() -> String {
        listed(CALLS.iter().map(|(_, name, ..)| *name))
    }
}

impl FromStr for Call {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = CALLS.iter().find(|(_, name, ..)| *name == text);
        found.map(|(call, ..)| *call).ok_or_else(|| {
            let names = Self::names();
            format!("unknown call {text:?}; expected one of {names}")
        })
    }
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<Vec<_>>().join(", ")
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
    pub const NAMES: &[(Self, &'static str)] = &[
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

    /// The names of all kinds except statuses.
    pub fn names() -> String {
        listed(Self::NAMES.iter().map(|(_, name)| *name))
    }

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
            Self::names()
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
                Call::names(),
                FaultKind::names()
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

    /// Replaces the rules of the call by one for each of its requests.
    pub fn set(&self, call: Call, kind: FaultKind) {
        self.rules().retain(|rule| rule.call != call);
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
