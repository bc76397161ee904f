//! Why a request failed: whether it may have had an effect, what to print, and what to do about it.

use std::{env, fmt};

use serde_json::Value;

use super::BaseUrl;
use crate::{
    failure::Failure,
    text::{excerpt, last_words, without_credentials},
};

/// What to do about a response of another program, if its status does not say more.
const HINT_FOR_OTHERS: &str = "the response comes from a proxy, a login page or another program: set --base-url to Portainer's own address, without /api";

/// A request that failed. Prints what failed; its source says why, with a hint.
#[derive(Debug)]
pub enum Error {
    /// The request never left this host: no connection, no TLS session, an invalid URL.
    NotSent(Box<Failure>),
    /// Portainer itself refused the request, so the request has ended (B35).
    Refused {
        response: Response,
        /// What failed, and as its source the response in words.
        cause: Box<Failure>,
    },
    /// No response, only a part of one, or one that does not end the request: it may have been carried out, or still be in
    /// progress (B05, B35).
    Unknown {
        response: Option<Response>,
        cause: Box<Failure>,
    },
}

impl Error {
    /// A [`Self::NotSent`]; `action` completes "failed to …".
    pub fn not_sent(action: &str, failure: Failure) -> Self {
        Self::NotSent(Box::new(failed(action, failure)))
    }

    /// A [`Self::NotSent`] because Portainer is unreachable, whatever was attempted: `failure` says why.
    pub(super) fn unreachable(base_url: &BaseUrl, failure: Failure) -> Self {
        let what = format!("cannot reach Portainer at {base_url}");
        Self::NotSent(Box::new(Failure::new(what).source(failure)))
    }

    /// The error of a response that does not indicate success, with the hint for it (B35).
    pub(super) fn of(action: &str, response: Response) -> Self {
        let failure = Failure::new(response.summary()).hint(response.hint());
        if response.is_refusal() {
            let cause = Box::new(failed(action, failure));
            return Self::Refused { response, cause };
        }
        let failure = failure.body(String::from_utf8_lossy(&response.body));
        let cause = Box::new(failed(action, failure));
        let response = Some(response);
        Self::Unknown { response, cause }
    }

    /// A [`Self::Unknown`] without a whole response.
    pub(super) fn unknown(action: &str, failure: Failure) -> Self {
        let cause = Box::new(failed(action, failure));
        let response = None;
        Self::Unknown { response, cause }
    }

    /// The same, of a request that may not have ended in spite of the refusal.
    pub(super) fn into_unknown(self) -> Self {
        match self {
            Self::Refused { response, cause } => Self::Unknown {
                response: Some(response),
                cause,
            },
            error => error,
        }
    }

    /// Whether the request may have an effect, now or later (B05).
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// The response of Portainer or of another program, if there was one.
    pub fn response(&self) -> Option<&Response> {
        match self {
            Self::NotSent(_) => None,
            Self::Refused { response, .. } => Some(response),
            Self::Unknown { response, .. } => response.as_ref(),
        }
    }

    /// The status with which Portainer itself refused the request.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { response, .. } => Some(response.status),
            Self::NotSent(_) | Self::Unknown { .. } => None,
        }
    }

    fn cause(&self) -> &Failure {
        match self {
            Self::NotSent(cause) | Self::Refused { cause, .. } | Self::Unknown { cause, .. } => {
                cause
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause().fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause().source()
    }
}

/// What failed, because of `failure`.
fn failed(action: &str, failure: Failure) -> Failure {
    Failure::new(format!("failed to {action}")).source(failure)
}

/// A complete response of Portainer or of another program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The body, at most 64 MiB, or the first 1 MiB for a status other than 2xx. In an [`Error`], it is formatted, and
    /// secret values are hidden (B13).
    pub body: Vec<u8>,
    /// The target of a redirect; it is not followed.
    pub(super) location: Option<String>,
    /// The header `Server`, which Portainer does not send.
    pub(super) server: Option<String>,
    /// What to do if this is a 403 because of `--header-file`.
    pub(super) hint_for_403: Option<&'static str>,
}

impl Response {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Why Portainer refused, as one sentence: its own words if it has any. Only its `details` may name the cause (N27).
    pub fn reason(&self) -> String {
        let Some(message) = self
            .message()
            .filter(|_| self.is_refusal() && self.status != 401)
        else {
            return self.summary();
        };
        // In the details, a message that names the cause begins with a capital letter.
        let is_new = |details: &String| !message.to_lowercase().contains(&details.to_lowercase());
        reason(&match self.text("details").filter(is_new) {
            Some(details) if !message.contains(": ") => format!("{message}: {details}"),
            _ => message,
        })
    }

    /// One line: what Portainer says, or who else responded, and the first line of that response (B35).
    pub fn summary(&self) -> String {
        let status = self.status_line();
        if self.status == 401 && self.is_refusal() {
            return "Portainer rejected the API key (401)".to_owned();
        }
        match self.first_line() {
            Some(line) => format!("{status}: {line}"),
            None => format!("{status}, without a body"),
        }
    }

    /// The status, and who responded if it was not Portainer, for output that shows the body as well.
    pub fn status_line(&self) -> String {
        let status = self.status;
        if self.is_refusal() {
            return format!("status {status}");
        }
        let location = self.location.as_deref().map(excerpt);
        let location = location.map_or_else(String::new, |to| format!(", a redirect to {to}"));
        let server = self.server.as_deref().map(excerpt);
        let server = server.map_or_else(String::new, |name| format!(" (Server: {name})"));
        format!("something other than Portainer responded with status {status}{location}{server}")
    }

    /// The failure of a read whose response has another form, with the reason. JSON is not quoted, because it may contain
    /// secrets.
    pub(super) fn in_another_form(&self, reason: &str) -> Failure {
        let is_json = [b'{', b'['].contains(self.body.trim_ascii_start().first().unwrap_or(&0));
        let what = match self.message() {
            None if is_json => format!("{}: {reason}", self.status_line()),
            _ => self.summary(),
        };
        Failure::new(what).hint(self.hint())
    }

    /// Whether it is certainly Portainer's own refusal (M01). Other programs respond in JSON with a `message`, too, and a gateway
    /// that timed out does not know what Portainer does (B35).
    pub(super) fn is_refusal(&self) -> bool {
        let is_status = match self.status {
            408 | 499 => false,
            status => (400..=500).contains(&status),
        };
        is_status && self.message().is_some() && self.text("details").is_some()
    }

    /// What to do after this response to a create.
    pub fn hint_after_create(&self) -> String {
        let again = "then run the command again: that is safe";
        match (self.status, self.is_refusal()) {
            (500, true) => format!("fix that, {again}"),
            // N20
            (403, true) if self.hint_for_403.is_none() => format!(
                "use an administrator's API key; if Portainer names an address, its SSRF protection refuses it: allow it in Portainer, {again}"
            ),
            (404 | 405, _) => format!(
                "check --base-url and --endpoint, and that Portainer is 2.19 or later, {again}"
            ),
            _ => format!("{}, {again}", self.hint()),
        }
    }

    pub(super) fn hint(&self) -> &'static str {
        if self.is_refusal() {
            return match self.status {
                400 => "fix the error that Portainer reports",
                401 => other_key(),
                403 => self.hint_for_403.unwrap_or(
                    "the user of the API key lacks the permission: use an administrator's API key",
                ),
                404 => "check --base-url and --endpoint",
                409 => {
                    "Portainer is busy with this stack, or another stack, which the API key may not see, has the name: check the stacks in Portainer"
                }
                _ => "see Portainer's log for details",
            };
        }
        match self.status {
            300..=399 => {
                "the base URL redirects, perhaps to a login page: pass the headers that the proxy asks for with --header-file, or set --base-url to Portainer's own address"
            }
            400 if self.expects_https() => "the port expects HTTPS: use https:// in --base-url",
            401 | 403 => {
                "a proxy in front of Portainer refused the request: pass the headers that it asks for with --header-file, or bypass the proxy with --base-url"
            }
            404 | 405 => "check --base-url and any proxy in front of Portainer",
            413 => {
                "the request is too large for a proxy: raise the proxy's limit, or bypass the proxy with --base-url"
            }
            429 => "a proxy limits the request rate: wait a minute",
            502 => {
                "a proxy got no response from Portainer: check that Portainer is running, or bypass the proxy with --base-url"
            }
            503 => "Portainer or a proxy is not ready: wait until it responds",
            408 | 499 | 504 => {
                "a proxy timed out, and Portainer may still be working: check Portainer, raise the proxy's timeout, or bypass the proxy with --base-url"
            }
            _ => HINT_FOR_OTHERS,
        }
    }

    /// Portainer's own words: the `message` of its error object (M01).
    pub(super) fn message(&self) -> Option<String> {
        self.text("message")
    }

    /// A text of the error object.
    fn text(&self, key: &str) -> Option<String> {
        let json: Value = serde_json::from_slice(&self.body).ok()?;
        Some(json.get(key)?.as_str()?.to_owned())
    }

    /// Whether a port that uses TLS rejected plain HTTP, in the words of Go or nginx.
    fn expects_https(&self) -> bool {
        [
            &b"HTTP request to an HTTPS server"[..],
            b"plain HTTP request was sent to HTTPS port",
        ]
        .into_iter()
        .any(|words| memchr::memmem::find(&self.body, words).is_some())
    }

    /// The `message` of an error object, or the first line that is not empty.
    fn first_line(&self) -> Option<String> {
        let body = String::from_utf8_lossy(&self.body);
        let line = || body.lines().map(excerpt).find(|line| !line.is_empty());
        self.message().map(|message| reason(&message)).or_else(line)
    }
}

/// What each program says before it passes on the error of the next one.
const PASSED_ON: [&str; 9] = [
    "failed to deploy a stack: ",
    "compose up operation failed: ",
    "Error response from daemon: ",
    "failed to create task for container: ",
    "failed to create shim task: ",
    "OCI runtime create failed: ",
    "runc create failed: ",
    "unable to start container process: ",
    "error during container init: ",
];

/// What to do about a deployment that failed with this text (N20).
pub fn remedy(text: &str) -> &'static str {
    if text.contains("SSRF") {
        "allow the address in Portainer, whose SSRF protection refuses it, then run the command again"
    } else {
        "fix that, then run the command again"
    }
}

/// What Compose printed without its warnings, such as that `version` is obsolete.
fn without_warnings(text: &str) -> String {
    let start = |line: &str| {
        line.find("time=\"")
            .filter(|_| line.contains(" level=warning "))
    };
    let lines = text.lines();
    let lines = lines.map(|line| line[..start(line).unwrap_or(line.len())].trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

/// Why a deployment failed, as one sentence: without the progress that Compose reported, and with the container that was
/// being started, if it was only one.
pub fn reason(text: &str) -> String {
    let words = last_words(&without_credentials(&without_warnings(text)));
    let mut reason = words.trim();
    while let Some(rest) = PASSED_ON
        .iter()
        .find_map(|start| reason.strip_prefix(start))
    {
        reason = rest;
    }
    let reason = reason.strip_suffix(": unknown").unwrap_or(reason);
    match starting(text) {
        Some(name) if !reason.contains(name) && reason.len() < words.len() => {
            format!("{reason} (container {name})")
        }
        _ => reason.to_owned(),
    }
}

/// The only container whose start Compose reported as begun, and not as ended.
fn starting(text: &str) -> Option<&str> {
    let mut starting = Vec::new();
    for line in text.lines() {
        let Some((_, progress)) = line.split_once(" Container ") else {
            continue;
        };
        let mut words = progress.split_whitespace();
        match (words.next()?, words.next()) {
            (name, Some("Starting")) => starting.push(name),
            (name, Some("Started" | "Running")) => starting.retain(|one| *one != name),
            _ => {}
        }
    }
    match starting[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// What to do about a rejected API key. The variable takes precedence over every file (C02).
pub fn other_key() -> &'static str {
    match env::var_os("STACKMGR_API_KEY") {
        Some(_) => {
            "replace the key in STACKMGR_API_KEY, or unset the variable to use the key from your settings"
        }
        None => "run stacklift config init, or set STACKMGR_API_KEY",
    }
}

/// Whether Portainer rejected the API key (401).
pub fn is_rejected_key(error: &anyhow::Error) -> bool {
    let mut failed = error.chain().filter_map(|cause| cause.downcast_ref());
    failed.any(|request: &Error| request.status() == Some(401))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_deployment_failed_is_one_sentence() {
        let said = "failed to deploy a stack:  Container shop-db-1  Starting\n Container shop-db-1  Started\n Container shop-web-1  Starting\nError response from daemon: failed to create task for container: OCI runtime create failed: exec: \"/nope\": no such file or directory: unknown\n";
        let expected = "exec: \"/nope\": no such file or directory (container shop-web-1)";
        assert_eq!(reason(said), expected);
        let named = "failed to deploy a stack:  Container a  Starting\nError response from daemon: driver failed on endpoint a";
        assert_eq!(reason(named), "driver failed on endpoint a");
        assert_eq!(reason("no such image"), "no such image");
        let yaml = "failed to deploy a stack:  Container a  Starting\nyaml: unmarshal errors:\n  line 3: mapping key \"a\" already defined at line 2\n  line 5: no\n";
        let expected = "yaml: unmarshal errors: line 3: mapping key \"a\" already defined at line 2; line 5: no";
        assert!(reason(yaml).starts_with(expected), "{}", reason(yaml));
        let warned = "failed to deploy a stack: time=\"2026\" level=warning msg=\"`version` is obsolete\"\nno network\n";
        assert_eq!(reason(warned), "no network");
        for (body, expected) in [
            (
                r#"{"message": "failed to deploy a stack: no\n", "details": "Failed to deploy a stack: no\n"}"#,
                "no",
            ),
            (r#"{"message": "no", "details": "No"}"#, "no"),
            (
                r#"{"message": "Failed to prepare stack", "details": "No branch"}"#,
                "Failed to prepare stack: No branch",
            ),
        ] {
            assert_eq!(response(500, body).reason(), expected);
        }
        let refused = "stack file contains a URL blocked by the SSRF policy";
        assert!(remedy(refused).starts_with("allow the address in Portainer"));
    }

    fn response(status: u16, body: &str) -> Response {
        Response {
            status,
            body: body.as_bytes().to_vec(),
            ..Response::default()
        }
    }

    #[test]
    fn a_response_in_one_line() {
        let error = |message: &str| {
            let message = serde_json::to_string(message).expect("JSON");
            format!("{{\"message\":{message},\"details\":\"\"}}")
        };
        let long = "x".repeat(501);
        for (message, expected) in [
            (" no\u{1b} ", "no\\u{1b}"),
            (
                "failed to deploy a stack:  Container a  Recreate\n Container a  Recreated\nError response from daemon: no\n",
                "no",
            ),
            ("failed: Container a  Creating\n1\n2\n3\n4", "2; 3; 4"),
            (
                "failed:  Container a  Creating\n Container b  Creating",
                "failed:  Container a  Creating\\n Container b  Creating",
            ),
            (&long, &format!("{}…", "x".repeat(500))),
        ] {
            let expected = format!("status 500: {expected}");
            assert_eq!(response(500, &error(message)).summary(), expected);
        }
    }

    #[test]
    fn b35_another_program_is_named_with_its_status_its_server_and_its_first_line() {
        let who = "something other than Portainer responded with status";
        for (body, expected) in [
            ("{\"message\":\"no\"}", ": no"),
            ("\n <!DOCTYPE HTML>\n<title>", ": <!DOCTYPE HTML>"),
            ("", ", without a body"),
            ("no\u{1b}", ": no\\u{1b}"),
        ] {
            let response = Response {
                server: Some("nginx/1.18.0".to_owned()),
                ..response(504, body)
            };
            let expected = format!("{who} 504 (Server: nginx/1.18.0){expected}");
            assert_eq!(response.summary(), expected);
        }
        let redirect = Response {
            location: Some("/login".to_owned()),
            ..response(302, "")
        };
        let expected = format!("{who} 302, a redirect to /login, without a body");
        assert_eq!(redirect.summary(), expected);
        let secret = response(200, "{\"Env\":\"hunter2\"}").in_another_form("it has no Id");
        assert_eq!(secret.to_string(), format!("{who} 200: it has no Id"));
    }

    #[test]
    fn b35_only_portainers_own_refusal_ends_a_request() {
        let own = "{\"message\":\"no\",\"details\":\"no\"}";
        for (status, body, is_refusal) in [
            (400, own, true),
            (401, own, true),
            (403, own, true),
            (404, own, true),
            (409, own, true),
            (500, own, true),
            (200, own, false),
            (302, own, false),
            (408, own, false),
            (499, own, false),
            (501, own, false),
            (502, own, false),
            (503, own, false),
            (504, own, false),
            (500, "{\"message\":\"no\"}", false),
            (404, "{\"message\":\"no\",\"details\":[]}", false),
            (403, "{\"details\":\"no\"}", false),
            (404, "<html>", false),
            (409, "", false),
            (500, "{\"message\":\"no\",\"details\":\"n", false),
        ] {
            let response = response(status, body);
            assert_eq!(response.is_refusal(), is_refusal, "{status} {body}");
        }
    }
}
