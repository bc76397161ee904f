//! What goes wrong on purpose: rules by call, settable while the rehearsal runs.

use std::{
    fmt,
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The calls that a rule can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Manager: `GET /api/system/status`.
    Status,
    /// Manager: `GET /api/endpoints`.
    Endpoints,
    /// Manager: `GET /api/stacks`.
    List,
    /// Manager: `GET /api/stacks/<id>`.
    Get,
    /// Manager: `GET /api/stacks/<id>/file`.
    File,
    /// Manager: `POST /api/stacks/create/standalone/string`.
    Create,
    /// Manager: `PUT /api/stacks/<id>`.
    Update,
    /// Manager: `DELETE /api/stacks/<id>`.
    Delete,
    /// Manager: `GET /api/endpoints/<id>/docker/…`.
    Info,
    /// Manager: `GET /api/users/me`.
    Me,
    /// Engine: `/_ping`.
    EnginePing,
    /// Engine: `/version`.
    EngineVersion,
    /// Engine: `/info`.
    EngineInfo,
    /// Engine: `/containers/json`.
    EngineList,
    /// Engine: `/containers/<id>/json`.
    EngineInspect,
    /// Engine: `DELETE /containers/<id>`.
    EngineRemove,
    /// Engine: `GET /containers/<id>/changes`.
    EngineChanges,
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
    /// Anything else.
    Other,
}

impl Call {
    /// Every call with the name that `--fault CALL=KIND` takes.
    pub const NAMES: [(Self, &'static str); 36] = [
        (Self::Status, "status"),
        (Self::Endpoints, "endpoints"),
        (Self::List, "list"),
        (Self::Get, "get"),
        (Self::File, "file"),
        (Self::Create, "create"),
        (Self::Update, "update"),
        (Self::Delete, "delete"),
        (Self::Info, "info"),
        (Self::Me, "me"),
        (Self::EnginePing, "engine-ping"),
        (Self::EngineVersion, "engine-version"),
        (Self::EngineInfo, "engine-info"),
        (Self::EngineList, "engine-list"),
        (Self::EngineInspect, "engine-inspect"),
        (Self::EngineRemove, "engine-remove"),
        (Self::EngineChanges, "engine-changes"),
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
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, name)| *name).collect();
            format!("there is no call {text:?}; there are {}", names.join(", "))
        })
    }
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The work is not done; this status and body are answered. A redirect points to `/login`.
    Status(u16, String),
    /// The work is done; this status and body are answered instead of the right ones.
    Body(u16, Vec<u8>),
    /// The work is done; the body is bytes that mean nothing.
    Garbage,
    /// The work is done; the body is empty.
    Empty,
    /// The work is done; the connection ends in the middle of the body.
    CutOff,
    /// The connection ends and the work is not done.
    CloseBefore,
    /// The work is done and the connection ends without an answer.
    CloseAfter,
    /// Nothing is done and nothing answered until the rehearsal ends.
    Hang,
    /// The work is done and nothing answered until the rehearsal ends.
    HangAfter,
    /// The work is done; the answer comes byte by byte.
    SlowDrip,
    /// Who is asked is gone from then on, and the work is not done: connections are refused.
    Die,
    /// The work is done, then the same.
    DieAfter,
}

impl FaultKind {
    /// Every kind but the statuses, with the name that `--fault CALL=KIND` takes.
    pub const NAMES: [(Self, &'static str); 10] = [
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
    ];
}

impl FromStr for FaultKind {
    type Err = String;

    /// A name of [`FaultKind::NAMES`], or a status: `503`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((kind, _)) = Self::NAMES.iter().find(|(_, name)| *name == text) {
            return Ok(kind.clone());
        }
        if let Ok(status @ 200..=599) = text.parse() {
            return Ok(Self::Status(status, "the rehearsal refuses".to_owned()));
        }
        let names: Vec<&str> = Self::NAMES.iter().map(|(_, name)| *name).collect();
        Err(format!(
            "there is no kind of fault {text:?}; there are a status such as 503, {}",
            names.join(", ")
        ))
    }
}

/// One rule: the next `times` requests of `call` go wrong in the way of `kind`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    call: Call,
    kind: FaultKind,
    after: usize,
    times: usize,
    path: Option<String>,
}

impl Rule {
    /// A rule for every request of the call.
    pub fn new(call: Call, kind: FaultKind) -> Self {
        Self {
            call,
            kind,
            after: 0,
            times: usize::MAX,
            path: None,
        }
    }

    /// Only the next `times` requests.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// Lets the first `count` requests through.
    #[must_use]
    pub fn after(self, count: usize) -> Self {
        Self {
            after: count,
            ..self
        }
    }

    /// Only requests whose path (with its query) contains `part`.
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

    /// `CALL=KIND` for every request, `CALL=KIND*TIMES` for the next ones: `create=close-after*1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (call, rest) = text
            .split_once('=')
            .ok_or("expected CALL=KIND, such as create=close-after or list=503*1")?;
        let (kind, times) = match rest.split_once('*') {
            Some((kind, times)) => (
                kind,
                times
                    .parse()
                    .map_err(|_| format!("{times:?} is no number of times"))?,
            ),
            None => (rest, usize::MAX),
        };
        Ok(Self::new(call.parse()?, kind.parse()?).times(times))
    }
}

/// The rules in force. The first that fits a request is the one that counts.
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

    /// The fault for this request, if there is one; uses it up.
    pub(super) fn take(&self, call: Call, target: &str) -> Option<FaultKind> {
        let mut rules = self.rules();
        let fits = |rule: &&mut Rule| {
            rule.call == call
                && rule.times > 0
                && rule
                    .path
                    .as_ref()
                    .is_none_or(|part| target.contains(part.as_str()))
        };
        let rule = rules.iter_mut().find(fits)?;
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
    fn rules_are_read_from_the_command_line() {
        let read = |text: &str| text.parse::<Rule>();
        assert_eq!(
            read("create=close-after*1"),
            Ok(Rule::new(Call::Create, FaultKind::CloseAfter).times(1))
        );
        assert_eq!(
            read("engine-remove=hang"),
            Ok(Rule::new(Call::EngineRemove, FaultKind::Hang))
        );
        assert!(matches!(
            read("list=503").unwrap().kind,
            FaultKind::Status(503, _)
        ));
        for wrong in ["list", "list=", "lists=503", "list=1000", "list=503*x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for (call, name) in Call::NAMES {
            assert_eq!((call.to_string().as_str(), name.parse()), (name, Ok(call)));
        }
    }
}
