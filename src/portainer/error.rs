//! Why a request failed: whether it may have had an effect, what to print, and what to do about it.

use std::{env, fmt};

use serde_json::Value;

use super::BaseUrl;
use crate::{
    failure::Failure,
    text::{excerpt, last_words, without_credentials},
};

/// The hint for an HTML page in place of JSON.
pub(super) const HINT_FOR_HTML: &str = "an HTML page is not a response of the Portainer API: it comes from a proxy, a login page or another program; set --base-url to Portainer's own address";

/// A request that failed. Prints what failed; its source says why, with a hint.
#[derive(Debug)]
pub enum Error {
    /// The request never left this host: no connection, no TLS session, an invalid URL.
    NotSent(Box<Cause>),
    /// A complete response that does not indicate success.
    Refused {
        /// The response of Portainer or of a proxy.
        response: Response,
        /// The response in words.
        cause: Box<Cause>,
    },
    /// No response, or only a part of one: the request may have been carried out (B05).
    Unknown(Box<Cause>),
}

impl Error {
    /// A [`Self::NotSent`]; `action` completes "failed to …".
    pub fn not_sent(action: &str, failure: Failure) -> Self {
        Self::NotSent(Box::new(Cause::new(action, failure)))
    }

    /// A [`Self::NotSent`] because Portainer is unreachable, whatever was attempted: `failure` says why.
    pub(super) fn unreachable(base_url: &BaseUrl, failure: Failure) -> Self {
        Self::NotSent(Box::new(Cause {
            failed: format!("cannot reach Portainer at {base_url}"),
            failure,
        }))
    }

    /// A [`Self::Refused`], with the hint for the response.
    pub(super) fn refused(action: &str, response: Response) -> Self {
        let failure = Failure::new(response.summary()).hint(response.hint());
        Self::Refused {
            cause: Box::new(Cause::new(action, failure)),
            response,
        }
    }

    /// A [`Self::Unknown`].
    pub(super) fn unknown(action: &str, failure: Failure) -> Self {
        Self::Unknown(Box::new(Cause::new(action, failure)))
    }

    /// The status, if there was a response.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { response, .. } => Some(response.status),
            Self::NotSent(_) | Self::Unknown(_) => None,
        }
    }

    fn cause(&self) -> &Cause {
        match self {
            Self::NotSent(cause) | Self::Refused { cause, .. } | Self::Unknown(cause) => cause,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause().failed)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause().failure)
    }
}

/// What failed, and why.
#[derive(Debug)]
pub struct Cause {
    failed: String,
    failure: Failure,
}

impl Cause {
    fn new(action: &str, failure: Failure) -> Self {
        let failed = format!("failed to {action}");
        Self { failed, failure }
    }
}

/// A complete response of Portainer or of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The body, at most 64 MiB, or the first 1 MiB for a status other than 2xx. In an [`Error`], it is formatted, and
    /// secret values are hidden (B13).
    pub body: Vec<u8>,
    /// The target of a redirect; it is not followed.
    pub(super) location: Option<String>,
    /// What to do if this is a 403 because of `--header-file`.
    pub(super) hint_for_403: Option<&'static str>,
}

impl Response {
    /// Why Portainer refused, as one sentence: its own words if it has any. Only its `details` may name the cause (N27).
    pub fn reason(&self) -> String {
        let Some(message) = self.message().filter(|_| self.status != 401) else {
            return self.summary();
        };
        // In the details, a message that names the cause begins with a capital letter.
        let is_new = |details: &String| !message.to_lowercase().contains(&details.to_lowercase());
        reason(&match self.text("details").filter(is_new) {
            Some(details) if !message.contains(": ") => format!("{message}: {details}"),
            _ => message,
        })
    }

    /// One line: the status, and the start of the `message` of an error object (M01) or the kind of the body.
    pub fn summary(&self) -> String {
        if self.status == 401 && !self.is_html() {
            return "Portainer rejected the API key (401)".to_owned();
        }
        self.as_received()
    }

    /// The same, of a response that may be another program's.
    pub(super) fn as_received(&self) -> String {
        let status = self.status_line();
        if self.location.is_some() {
            status
        } else if let Some(message) = self.message() {
            format!("{status}: {}", reason(&message))
        } else if self.is_html() {
            format!("{status}, an HTML page")
        } else if self.body.is_empty() {
            format!("{status}, without a body")
        } else {
            status
        }
    }

    /// The status and the target of a redirect, for output that shows the body as well.
    pub fn status_line(&self) -> String {
        let status = self.status;
        match &self.location {
            Some(location) => format!("status {status}, a redirect to {}", excerpt(location)),
            None => format!("status {status}"),
        }
    }

    /// Whether the request has no further effect: Portainer says so itself (M01), or a proxy did not let the
    /// request through. A proxy that timed out does not know what Portainer does.
    pub fn is_final(&self) -> bool {
        match self.status {
            408 | 499 => false,
            300..=499 => true,
            500..=599 => self.message().is_some(),
            _ => false,
        }
    }

    /// What to do after this response to a create.
    pub fn hint_after_create(&self) -> String {
        let again = "then run the command again: that is safe";
        match self.status {
            500..=599 if self.message().is_some() => format!("fix that, {again}"),
            // N20
            403 if self.message().is_some() && self.hint_for_403.is_none() => format!(
                "use an administrator's API key; if Portainer names an address, its SSRF protection refuses it: allow it in Portainer, {again}"
            ),
            404 | 405 => format!(
                "check --base-url and --endpoint, and that Portainer is 2.19 or later, {again}"
            ),
            200..=299 => format!("this is not Portainer's response: {}, {again}", self.hint()),
            _ => format!("{}, {again}", self.hint()),
        }
    }

    pub(super) fn hint(&self) -> &'static str {
        match self.status {
            300..=399 => {
                "the base URL redirects, perhaps to a login page: set --base-url to Portainer's own address"
            }
            400 if self.expects_https() => "the port expects HTTPS: use https:// in --base-url",
            400 if self.message().is_some() => "fix the error that Portainer reports",
            401 => other_key(),
            403 => self.hint_for_403.unwrap_or(
                "the user of the API key lacks the permission, or a proxy forbids the request: use an administrator's API key"
            ),
            404 => "check --base-url and --endpoint",
            409 => {
                "Portainer is busy with this stack, or another stack, which the API key may not see, has the name: check the stacks in Portainer"
            }
            413 => {
                "the request is too large for a proxy: raise the proxy's limit, or bypass the proxy with --base-url"
            }
            429 => "a proxy limits the request rate: wait, then run the command again",
            500 if !self.is_html() => "see Portainer's log for details",
            502 => {
                "a proxy got no response from Portainer: check that Portainer is running, or bypass the proxy with --base-url"
            }
            503 => "Portainer or a proxy is not ready: wait, then run the command again",
            504 => {
                "a proxy timed out, and Portainer may still be working: check Portainer, raise the proxy's timeout, or bypass the proxy with --base-url"
            }
            // The status of a proxy says more than its page.
            _ if self.is_html() => HINT_FOR_HTML,
            500..=599 => "see Portainer's log for details",
            _ => "check --base-url",
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

    fn is_html(&self) -> bool {
        let start = self.body.trim_ascii_start();
        [&b"<!doctype html"[..], b"<html"]
            .into_iter()
            .any(|tag| start.len() >= tag.len() && start[..tag.len()].eq_ignore_ascii_case(tag))
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

/// Why a deployment failed, as one sentence: without the progress that Compose reported, and with the container that was
/// being started, if it was only one.
pub fn reason(text: &str) -> String {
    let words = last_words(&without_credentials(text));
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
            location: None,
            hint_for_403: None,
        }
    }

    #[test]
    fn a_response_in_one_line() {
        let long = format!("{{\"message\":\"{}\"}}", "x".repeat(501));
        for (body, expected) in [
            ("{\"message\":\" no\\u001b \"}", ": no\\u{1b}"),
            ("\n <!DOCTYPE HTML><title>x</title>", ", an HTML page"),
            (
                "{\"message\":\"failed to deploy a stack:  Container a  Recreate\\n Container a  Recreated\\nError response from daemon: no\\n\"}",
                ": no",
            ),
            (
                "{\"message\":\"failed: Container a  Creating\\n1\\n2\\n3\\n4\"}",
                ": 2; 3; 4",
            ),
            (
                "{\"message\":\"failed:  Container a  Creating\\n Container b  Creating\"}",
                ": failed:  Container a  Creating\\n Container b  Creating",
            ),
            ("<HTML>", ", an HTML page"),
            ("", ", without a body"),
            (&long, &format!(": {}…", "x".repeat(500))),
            ("<htm", ""),
            ("no", ""),
        ] {
            let expected = format!("status 500{expected}");
            assert_eq!(response(500, body).summary(), expected);
        }
        let redirect = Response {
            location: Some("/login".to_owned()),
            ..response(302, "<html>")
        };
        assert_eq!(redirect.summary(), "status 302, a redirect to /login");
    }

    #[test]
    fn a_response_that_ends_the_request() {
        let portainer = "{\"message\":\"no\"}";
        for (status, body, is_final) in [
            (200, "{}", false),
            (302, "", true),
            (400, "", true),
            (408, "", false),
            (499, "", false),
            (409, portainer, true),
            (500, portainer, true),
            (500, "", false),
            (504, "<html>", false),
        ] {
            assert_eq!(response(status, body).is_final(), is_final, "{status}");
        }
    }
}
