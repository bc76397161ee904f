//! The values that Portainer's words must not show (C55, B13).

use super::Run;
use crate::{model::Variable, rewrite::env::contract_env, text::Mask};
use composefile::dotenv;

impl Run<'_> {
    /// Hides the values of a `.env` and of `variables` in everything that Portainer says from now on, in addition to those
    /// that are hidden already. Call it before the first request whose response may contain them.
    pub fn hide(&mut self, env: Option<&str>, variables: &[Variable]) {
        self.secrets.extend(env.into_iter().flat_map(values));
        let values = variables.iter().map(|variable| variable.value.clone());
        self.secrets.extend(values);
        let mask = Mask::new(self.secrets.iter().map(String::as_str));
        self.portainer.hide(mask);
    }
}

/// The values as the literal rewrite sends them and as Compose reads them, and the lines that are not variables: Compose
/// may read them as part of a value.
fn values(env: &str) -> Vec<String> {
    let sent = contract_env(env).variables.into_iter();
    let read = dotenv::parse(env, &|_| None).unwrap_or_default();
    let rest = env.lines().filter(|line| !line.contains('='));
    let mut values: Vec<String> = sent.map(|variable| variable.value).collect();
    values.extend(read.iter().map(|(_, value)| value.clone()));
    values.extend(rest.map(str::to_owned));
    values
}
