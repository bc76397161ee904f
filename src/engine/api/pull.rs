//! Pulls an image without credentials.

use std::io::{BufRead as _, BufReader, Read as _};

use anyhow::{Result, bail};
use serde_json::Value;
use ureq::http::Method;

use super::{Api, percent_encoded};
use crate::{
    engine::{MAX_OUTPUT, PULL_TIMEOUT},
    model::{Pull, tagged},
    text::excerpt,
};

impl Api {
    /// Pulls an image. Only public images can be pulled.
    pub(in crate::engine) fn pull(&self, pull: &Pull) -> Result<()> {
        let mut path = format!(
            "/v{}/images/create?fromImage={}",
            self.version()?,
            percent_encoded(&tagged(&pull.image))
        );
        if let Some(platform) = &pull.platform {
            path = format!("{path}&platform={}", percent_encoded(platform));
        }
        let request = (&Method::POST, path.as_str(), "", &[][..]);
        let response = self.exchange(request, PULL_TIMEOUT)?;
        if response.status() != 200 {
            let response = self.whole(&Method::POST, &path, response, PULL_TIMEOUT)?;
            return Err(self.refused(&response));
        }
        // The engine reports progress until the end, and an error only then.
        let progress = response.into_body().into_reader().take(MAX_OUTPUT);
        for line in BufReader::new(progress).lines() {
            let line = line.map_err(|error| self.unreachable(error.into(), PULL_TIMEOUT))?;
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(error) = message["error"].as_str() {
                bail!(excerpt(error));
            }
        }
        Ok(())
    }
}
