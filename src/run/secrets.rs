//! The values that Portainer's words must not show (C55, B13).

use super::Run;
use crate::{model::Variable, rewrite::env::secrets, text::Mask};

impl Run<'_> {
    /// Hides the values of a `.env` and of `variables` in everything that Portainer says from now on, in addition to those
    /// that are hidden already. Call it before the first request whose response may contain them.
    pub fn hide(&mut self, env: Option<&str>, variables: &[Variable]) {
        self.secrets.extend(env.into_iter().flat_map(secrets));
        let values = variables.iter().map(|variable| variable.value.clone());
        self.secrets.extend(values);
        let mask = Mask::new(self.secrets.iter().map(String::as_str));
        self.portainer.hide(mask);
    }
}
