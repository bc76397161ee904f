//! Containers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

/// A container.
#[derive(Clone, Default, PartialEq, Serialize)]
pub struct Container {
    /// 64 hexadecimal digits.
    pub id: String,
    /// Without the leading slash.
    pub name: String,
    /// The image name in the create request.
    pub image: String,
    /// The image's ID. The name may belong to a newer image now.
    pub image_id: String,
    /// `created`, `running`, `paused`, `restarting` or `exited`.
    pub state: String,
    /// The number of its first process on this host; 0 if it has none.
    pub process: u64,
    /// The exit code of the last run.
    pub exit_code: i64,
    /// The error of the last start; empty if it succeeded.
    pub error: String,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970; 0 is never.
    pub started: i64,
    /// Seconds since 1970; 0 is never.
    pub finished: i64,
    /// When it becomes healthy, in milliseconds since 1970; `None` is never.
    pub healthy_at: Option<i64>,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// Entrypoint and command.
    pub command: Vec<String>,
    /// `Config` with the defaults of the image, without labels.
    pub config: Value,
    /// `HostConfig` with the defaults of the engine.
    pub host_config: Value,
    /// The mounts, as the engine shows them.
    pub mounts: Vec<Value>,
    /// The volumes that were created for its mounts, and so may be removed with it.
    pub own_volumes: Vec<String>,
    /// The exposed ports while it is running, each with its bindings on the host, as the engine shows them.
    pub ports: Value,
    /// Its endpoint on each network, by the network's name, as the engine shows it. `NetworkID` is the network at the last
    /// start; empty before the first start. `EndpointID` is empty unless it is running.
    pub networks: BTreeMap<String, Value>,
    /// The files written in its own layer, by path.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Container {
    /// Whether it is running, paused, or between two runs.
    pub fn is_running(&self) -> bool {
        matches!(self.state.as_str(), "running" | "paused" | "restarting")
    }

    /// Whether the engine starts it again whenever it ends with this code.
    pub(super) fn is_restarted_after(&self, code: i64) -> bool {
        match self.host_config["RestartPolicy"]["Name"].as_str() {
            Some("on-failure") => code != 0,
            policy => matches!(policy, Some("always" | "unless-stopped")),
        }
    }

    pub(super) fn start(&mut self, now: i64) {
        "running".clone_into(&mut self.state);
        self.error.clear();
        self.exit_code = 0;
        self.started = now;
    }

    /// Ends the run, as when the process in the container exits.
    pub fn exit(&mut self, code: i64, now: i64) {
        "exited".clone_into(&mut self.state);
        self.exit_code = code;
        self.finished = now;
        for attachment in self.networks.values_mut() {
            for key in ["EndpointID", "IPAddress", "MacAddress"] {
                attachment[key] = json!("");
            }
        }
        self.ports = json!({});
    }

    /// Whether its image is Portainer's.
    pub(crate) fn runs_portainer(&self) -> bool {
        self.image.contains("portainer/portainer")
    }

    /// The health status; `None` without a health check. `now` is in milliseconds.
    pub(crate) fn health(&self, now: i64) -> Option<&'static str> {
        let test = self.config.get("Healthcheck")?.get("Test")?.get(0)?;
        let status = match self.healthy_at.filter(|_| self.is_running()) {
            Some(at) if at <= now => "healthy",
            Some(_) => "starting",
            None => "unhealthy",
        };
        (test != "NONE").then_some(status)
    }

    /// The status as the engine displays it: `Up 2 hours`, `Exited (0) 3 days ago`. `now` is in milliseconds.
    pub(crate) fn status(&self, now: i64) -> String {
        let health = self.health(now);
        let now = now / 1000;
        let up = duration(now - self.started);
        match self.state.as_str() {
            "running" => match health {
                Some("starting") => format!("Up {up} (health: starting)"),
                Some(health) => format!("Up {up} ({health})"),
                None => format!("Up {up}"),
            },
            "paused" => format!("Up {up} (Paused)"),
            "exited" => format!(
                "Exited ({}) {} ago",
                self.exit_code,
                duration(now - self.finished)
            ),
            "created" => "Created".to_owned(),
            other => other.to_owned(),
        }
    }

    /// The first 12 digits of its ID.
    pub(crate) fn short_id(&self) -> &str {
        &self.id[..12.min(self.id.len())]
    }
}

/// A time span, roughly as the engine rounds it.
fn duration(seconds: i64) -> String {
    match seconds {
        ..1 => "Less than a second".to_owned(),
        1..60 => format!("{seconds} seconds"),
        60..3600 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3600),
    }
}
