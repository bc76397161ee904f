//! One request and its response.

use std::time::{Duration, Instant};

use anyhow::Result;
use ureq::{
    AsSendBody, Body,
    http::{Method, Request, Response, header::CONTENT_TYPE},
};

use super::{Api, ApiResponse};
use crate::{engine::MAX_OUTPUT, trace::Exchange};

/// The type of a body.
const JSON: &str = "application/json";

impl Api {
    /// Sends one request, with `body` as JSON unless it is empty, and reads the whole response within `limit`.
    pub(super) fn send(
        &self,
        method: &Method,
        path: &str,
        body: &[u8],
        limit: Duration,
    ) -> Result<ApiResponse> {
        let response = self.exchange((method, path, JSON, body), limit)?;
        self.whole(method, path, response, limit)
    }

    /// Sends one request: method, path, type of the body, and body. The time limit includes reading the response.
    pub(super) fn exchange(
        &self,
        (method, path, content_type, body): (&Method, &str, &str, &[u8]),
        limit: Duration,
    ) -> Result<Response<Body>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"));
        let started = Instant::now();
        let response = if matches!(*method, Method::POST | Method::PUT) {
            self.run(
                match body {
                    [] => request,
                    _ => request.header(CONTENT_TYPE, content_type),
                }
                .body(body)?,
                limit,
            )
        } else {
            self.run(request.body(())?, limit)
        };
        self.options.trace.report(Exchange {
            peer: "engine",
            request: format!("{method} {path}"),
            outcome: match &response {
                Ok(response) => response.status().as_u16().to_string(),
                Err(error) => error.to_string(),
            },
            elapsed: started.elapsed(),
        });
        response.map_err(|error| self.unreachable(error, limit))
    }

    /// Reads the whole response.
    pub(super) fn whole(
        &self,
        method: &Method,
        path: &str,
        mut response: Response<Body>,
        limit: Duration,
    ) -> Result<ApiResponse> {
        let header = response.headers().get("Api-Version");
        let api_version = header
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let is_podman = response.headers().contains_key("Libpod-Api-Version");
        let limited = response.body_mut().with_config().limit(MAX_OUTPUT);
        let body = limited.read_to_vec();
        Ok(ApiResponse {
            request: format!("{method} {path}"),
            status: response.status().as_u16(),
            api_version,
            is_podman,
            body: body.map_err(|error| self.unreachable(error, limit))?,
        })
    }

    fn run(
        &self,
        request: Request<impl AsSendBody>,
        limit: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(request);
        self.agent.run(request.timeout_global(Some(limit)).build())
    }
}
