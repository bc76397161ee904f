//! What to do about an answer that is not the one asked for.

use ureq::{
    Body,
    http::{Response, header::CONTENT_TYPE},
};

use super::{Options, http::Refusal};

/// The hint for an HTML page in the place of JSON.
pub(super) const OF_PAGE: &str = "an HTML page is no answer of the manager: a proxy in front of it, its login page, or another program answered; give the manager's own address with --base-url";

/// Whether a body is an HTML page: a proxy in front, or not the manager at all.
pub(super) fn is_html(body: &[u8]) -> bool {
    let start: String = body
        .iter()
        .take(256)
        .map(|byte| byte.to_ascii_lowercase() as char)
        .collect();
    let start = start.trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Whether an answer calls itself an HTML page.
pub(super) fn is_page(reply: &Response<Body>) -> bool {
    let kind = reply.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// The hint for a status that is not 2xx.
pub(super) fn of_refusal(refusal: &Refusal) -> String {
    match refusal.status {
        300..=399 => "the base URL leads elsewhere, perhaps to a login page; give the manager's own address with --base-url",
        400 if !is_html(&refusal.body) => "the manager did not understand the request; check that it is a Portainer of version 2.19 or later",
        401 => "the key is unknown to the manager: make one under My account > Access tokens and set STACKMGR_API_KEY",
        403 => "the key's user may not do this, or a proxy in front forbids it: use a key of an administrator",
        404 => "check --base-url and --endpoint: there is no such thing at the manager",
        409 => "the manager is busy with this stack, or the name is taken: look for it in the manager",
        413 => "the request is too large for a proxy in front of the manager: raise its limit, or go past it with --base-url",
        429 => "a proxy in front of the manager limits requests: wait, then run again",
        500 if !is_html(&refusal.body) => "the manager's own log says more",
        502 => "a proxy in front of the manager got no answer from it: check that the manager runs, or go past the proxy with --base-url",
        503 => "the manager, or a proxy in front of it, is not ready: wait until it is up, then run again",
        504 => "a proxy in front of the manager lost patience: the manager may still be at it; look there, raise the proxy's limit, or go past it with --base-url",
        // What a proxy says by the status counts more than its page.
        _ if is_html(&refusal.body) => OF_PAGE,
        500..=599 => "the manager's own log says more",
        _ => "check --base-url",
    }
    .to_owned()
}

/// The hint for a connection that failed, broke or took too long.
pub(super) fn of_transport(error: &ureq::Error, options: &Options) -> String {
    let text = error.to_string().to_ascii_lowercase();
    if text.contains("certificate") || text.contains("unknownissuer") {
        return format!(
            "the certificate is not vouched for by --tls {}; give the manager's own certificate as a PEM file",
            options.tls
        );
    }
    if text.contains("corrupt message") || text.contains("invalid message") {
        return "the port does not speak TLS: check --base-url (http:// is allowed for loopback)"
            .to_owned();
    }
    if matches!(error, ureq::Error::Timeout(_)) {
        return "the manager hangs or is out of reach: check it, then run again".to_owned();
    }
    "check that the manager runs and that --base-url is its address".to_owned()
}
