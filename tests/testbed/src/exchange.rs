//! Answers one request, and disturbs it.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use rehearsal::{Apis, Call, Kind, Peer, Request, Response, Work};
use serde_json::{Value, json};

use crate::{
    Between, FaultKind, access, git,
    late::{self, Ending},
    lock, rights,
};

/// The pause between two bytes of a [`FaultKind::SlowDrip`].
const DRIP: Duration = Duration::from_millis(1);
/// Portainer and the engine send longer responses in chunks. In bytes.
const LONGEST_WHOLE: usize = 2048;
/// The size of a chunk, in bytes.
const CHUNK: usize = 32 * 1024;

pub(crate) fn exchange(
    between: &Arc<Between>,
    apis: &Arc<Apis>,
    stream: &mut dyn Write,
    mut request: Request,
) -> io::Result<()> {
    let (peer, call) = (request.peer, request.call);
    let broken_off = || io::Error::from(io::ErrorKind::ConnectionAborted);
    let fault = between.faults.take(call, &request.path);
    let response = match &fault {
        Some(FaultKind::CloseBefore | FaultKind::Hang | FaultKind::Die) => None,
        Some(FaultKind::Status(status, body)) => Some(failure(*status, body.as_bytes())),
        _ => {
            let ending = ending(fault.as_ref());
            let is_change = is_change(call);
            let late = ending.filter(|_| !is_change);
            if late.is_some_and(|late| !late::wait(between, apis, late.after)) {
                return Err(broken_off());
            }
            let respond = || respond(between, apis, &request, ending);
            if fault == Some(FaultKind::Repeated) {
                respond();
            }
            let response = if late.is_some_and(|late| late.fails) {
                failure(500, b"simulated failure")
            } else {
                respond()
            };
            between.change(apis, call);
            damaged(response, fault.as_ref())
        }
    };
    // First the log: a client that has the response finds the request in it.
    request.status = response.as_ref().map(|response| response.status);
    apis.log().push(request.clone());
    let Some(response) = response else {
        match fault {
            Some(FaultKind::Hang | FaultKind::HangAfter) => drop(between.pause(Duration::MAX)),
            Some(FaultKind::Die | FaultKind::DieAfter) => apis.die(peer),
            _ => {}
        }
        return Err(broken_off());
    };
    let body = response.body.len();
    let mut bytes = in_chunks(response).into_bytes();
    match fault {
        Some(FaultKind::CutOff) => {
            bytes.truncate(bytes.len() - body.div_ceil(2));
            stream.write_all(&bytes)?;
            stream.flush()?;
            return Err(broken_off());
        }
        Some(FaultKind::SlowDrip) => {
            for byte in bytes {
                stream.write_all(&[byte])?;
                stream.flush()?;
                if between.pause(DRIP) {
                    return Err(broken_off());
                }
            }
        }
        _ => stream.write_all(&bytes)?,
    }
    stream.flush()
}

/// Whether a request changes a stack. Portainer continues if its client disconnects (M21).
fn is_change(call: Call) -> bool {
    matches!(
        call,
        Call::Create | Call::CreateGit | Call::Redeploy | Call::Update | Call::Delete
    )
}

fn respond(
    between: &Arc<Between>,
    apis: &Arc<Apis>,
    request: &Request,
    ending: Option<Ending>,
) -> Response {
    if request.peer == Peer::Engine {
        let perform = |work| late::perform(between, apis, work, ending);
        let engine = lock(&between.engine).clone();
        return engine.respond(request, || rehearsal::respond(apis, request, &perform));
    }
    let user = lock(&between.access).user(request).map(str::to_owned);
    let perform = |mut work: Work| {
        if let (Kind::Create, Some(user)) = (work.kind, &user) {
            work.record.created_by.clone_from(user);
        }
        late::perform(between, apis, work, ending)
    };
    rights::respond(&between.access, apis, request, |request| {
        match request.call {
            Call::Preview | Call::CreateGit | Call::Redeploy => {
                git::respond(&between.git, apis, request, &perform)
            }
            Call::Containers if between.has_real_engines => containers(request),
            Call::Access
            | Call::Containers
            | Call::Stop
            | Call::Teams
            | Call::Unshare
            | Call::Users => access::respond(&between.access, apis, request, &perform),
            _ => rehearsal::respond(apis, request, &perform),
        }
    })
}

/// The containers that Portainer is asked for by ID.
fn containers(request: &Request) -> Response {
    let filters = request.query("filters").unwrap_or_default();
    let filters = serde_json::from_str::<Value>(&filters).unwrap_or_default();
    let ids = filters["id"].as_array().into_iter().flatten();
    let found: Value = ids.map(|id| json!({ "Id": id })).collect();
    Response::json(200, &found)
}

/// The response that the client gets because of a fault; `None` if it gets none.
fn damaged(response: Response, fault: Option<&FaultKind>) -> Option<Response> {
    const JSON: &str = "application/json";
    let status = response.status;
    match fault {
        Some(FaultKind::CloseAfter | FaultKind::HangAfter | FaultKind::DieAfter) => None,
        Some(FaultKind::Garbage) => Some(Response::new(status, JSON, b"\0\xff<{]garbage\x1b[31m")),
        Some(FaultKind::Empty) => Some(Response::new(status, JSON, "")),
        Some(FaultKind::Body(status, body) | FaultKind::Impatient { status, body, .. }) => {
            Some(failure(*status, body))
        }
        _ => Some(response),
    }
}

/// A response whose content type follows from its body.
fn failure(status: u16, body: &[u8]) -> Response {
    if status == 204 {
        return Response::no_content();
    }
    let content_type = match body.trim_ascii_start().first() {
        Some(b'<') => "text/html; charset=utf-8",
        Some(b'{' | b'[') => "application/json",
        _ => "text/plain; charset=utf-8",
    };
    let mut response = Response::new(status, content_type, body);
    if body.starts_with(b"<") {
        response.headers.push(("Server", "gateway/1.0".to_owned()));
    }
    if (300..400).contains(&status) {
        response.headers.push(("Location", "/login".to_owned()));
    }
    response
}

/// A response, whose body is sent in chunks if it is long.
fn in_chunks(mut response: Response) -> Response {
    if response.body.len() > LONGEST_WHOLE {
        let mut chunked = Vec::new();
        for chunk in response.body.chunks(CHUNK) {
            chunked.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            chunked.extend(chunk);
            chunked.extend(b"\r\n");
        }
        chunked.extend(b"0\r\n\r\n");
        response.body = chunked;
        let chunked = ("Transfer-Encoding", "chunked".to_owned());
        response.headers.push(chunked);
    }
    response
}

fn ending(fault: Option<&FaultKind>) -> Option<Ending> {
    let (after, fails, is_unattended) = match fault {
        Some(FaultKind::LateSuccess(delay)) => (*delay, false, false),
        Some(FaultKind::LateFailure(delay)) => (*delay, true, false),
        Some(FaultKind::Impatient { after, fails, .. }) => (*after, *fails, true),
        _ => return None,
    };
    Some(Ending {
        after: crate::millis(after),
        fails,
        is_unattended,
    })
}
