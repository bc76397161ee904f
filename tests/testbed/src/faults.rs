//! Fault injection: rules by API call, which can change while the rehearsal runs.

use std::{sync::Mutex, time::Duration};

use rehearsal::Call;

use crate::lock;

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
        lock(&self.0).push(rule);
    }

    /// Replaces the rules of the call by one for each of its requests.
    pub fn set(&self, call: Call, kind: FaultKind) {
        lock(&self.0).retain(|rule| rule.call != call);
        self.add(Rule::new(call, kind));
    }

    /// Adds a rule for the next request of the call.
    pub fn once(&self, call: Call, kind: FaultKind) {
        self.add(Rule::new(call, kind).times(1));
    }

    /// Removes all rules.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }

    /// The fault for this request. Counts as one use of its rule.
    pub(crate) fn take(&self, call: Call, target: &str) -> Option<FaultKind> {
        let mut rules = lock(&self.0);
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
}
