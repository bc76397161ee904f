//! Fault injection: rules by API call, which can change while the rehearsal runs.

use std::{
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

/// The calls, each with its requests: `*` is any segment of the path, and `...` any rest.
macro_rules! calls {
    ($($call:ident: $peer:ident $($pattern:literal),+;)*) => {
        /// An API call that a rule can select.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call {
            $(#[doc = concat!($("`", $pattern, "` "),+)] $call,)*
            /// Any other request.
            Other,
        }

        /// The calls with their requests.
        impl Call {
            /// Every call that has a name.
            pub const ALL: &[Self] = &[$(Self::$call),*];
        }

        const CALLS: &[(Call, Peer, &[&str])] =
            &[$((Call::$call, Peer::$peer, &[$($pattern),+]),)*];
    };
}

calls! {
    Status: Portainer "GET api/system/status";
    Endpoints: Portainer "GET api/endpoints", "GET api/endpoints/*";
    List: Portainer "GET api/stacks";
    Get: Portainer "GET api/stacks/*";
    File: Portainer "GET api/stacks/*/file";
    Create: Portainer "POST api/stacks/create/standalone/string";
    CreateGit: Portainer "POST api/stacks/create/standalone/repository";
    Preview: Portainer "POST api/gitops/repo/file/preview";
    Redeploy: Portainer "PUT api/stacks/*/git/redeploy";
    Update: Portainer "PUT api/stacks/*";
    Delete: Portainer "DELETE api/stacks/*";
    Stop: Portainer "POST api/stacks/*/stop";
    Access: Portainer "PUT api/resource_controls/*";
    Info: Portainer "GET api/endpoints/*/docker/info";
    Unshare: Portainer "DELETE api/resource_controls/*";
    Containers: Portainer "GET api/endpoints/*/docker/containers/json";
    Me: Portainer "GET api/users/me";
    Users: Portainer "GET api/users";
    Teams: Portainer "GET api/teams";
    EnginePing: Engine "GET _ping", "HEAD _ping";
    EngineVersion: Engine "GET version";
    EngineInfo: Engine "GET info";
    EngineEvents: Engine "GET events";
    EngineList: Engine "GET containers/json";
    EngineInspect: Engine "GET containers/*/json";
    EngineRemove: Engine "DELETE containers/*";
    EngineChanges: Engine "GET containers/*/changes";
    EngineArchive: Engine "GET containers/*/archive";
    EngineUnpack: Engine "PUT containers/*/archive";
    EngineTop: Engine "GET containers/*/top";
    EngineCreate: Engine "POST containers/create";
    EngineStart: Engine "POST containers/*/start";
    EngineStop: Engine "POST containers/*/stop";
    EngineNetworks: Engine "GET networks", "GET networks/*";
    EngineNetworkCreate: Engine "POST networks/create";
    EngineNetworkRemove: Engine "DELETE networks/*";
    EngineConnect: Engine "POST networks/*/connect";
    EngineVolumes: Engine "GET volumes", "GET volumes/*";
    EngineVolumeCreate: Engine "POST volumes/create";
    EngineImages: Engine "GET images/...";
}

impl Call {
    /// Classifies a request.
    pub(super) fn of(peer: Peer, method: &str, path: &[&str]) -> Self {
        let fits = |pattern: &&&str| {
            let (wanted, pattern) = pattern.split_once(' ').unwrap_or_default();
            let start = pattern.strip_suffix("/...");
            let parts = start.unwrap_or(pattern).split('/').collect::<Vec<_>>();
            wanted == method
                && (parts.len() == path.len() || (start.is_some() && parts.len() < path.len()))
                && parts
                    .iter()
                    .zip(path)
                    .all(|(part, given)| *part == "*" || part == given)
        };
        let found = CALLS
            .iter()
            .find(|(_, of, patterns)| *of == peer && patterns.iter().any(|one| fits(&one)));
        found.map_or(Self::Other, |(call, ..)| *call)
    }
}

/// A kind of fault. Unless noted otherwise, the request takes effect and only the response is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// Responds with this status and body; the request has no effect. A redirect points to `/login`.
    Status(u16, String),
    /// Responds with this status and body. A redirect points to `/login`.
    Body(u16, Vec<u8>),
    /// A gateway responds at once, with this status and body. Portainer ends a create, update or delete after this time.
    Impatient {
        /// The status of the response.
        status: u16,
        /// The body of the response.
        body: Vec<u8>,
        /// The time until the request ends.
        after: Duration,
        /// Whether it fails then.
        fails: bool,
    },
    /// A proxy sends the request twice, and passes on the second response.
    Repeated,
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

    /// Skips the first `after` requests.
    #[must_use]
    pub fn after(self, after: usize) -> Self {
        Self { after, ..self }
    }

    /// Limits the rule to requests whose path and query contain `part`.
    #[must_use]
    pub fn path(self, part: &str) -> Self {
        let path = Some(part.to_owned());
        Self { path, ..self }
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
                && rule.path.iter().all(|part| target.contains(part))
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
