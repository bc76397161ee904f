//! Measures how long services are away, by the engine's own times.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::Value;

use crate::host::{PROJECT, docker};

/// The starts and ends of a project's containers since its creation.
pub struct Watch {
    events: Child,
    reader: JoinHandle<Vec<Value>>,
}

impl Watch {
    pub fn start(project: &str) -> Self {
        let now = docker(&["info", "--format", "{{.SystemTime}}"]);
        let mut events = Command::new("docker")
            .args(["events", "--format", "{{json .}}", "--since", &now])
            .args(["--filter", "type=container"])
            .args(["--filter", "event=die", "--filter", "event=start"])
            .args(["--filter", &format!("label={PROJECT}={project}")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(events.stdout.take().unwrap()).lines();
        let reader = thread::spawn(move || {
            let events = lines.map_while(Result::ok);
            events
                .filter_map(|line| serde_json::from_str(&line).ok())
                .collect()
        });
        Self { events, reader }
    }

    /// How long the containers of each service were away. A service that is still away has no time.
    pub fn away(mut self) -> BTreeMap<String, Option<Duration>> {
        // The engine sends an event after the change that a client sees.
        thread::sleep(Duration::from_millis(300));
        self.events.kill().unwrap();
        self.events.wait().unwrap();
        let mut ended: BTreeMap<String, Option<u64>> = BTreeMap::new();
        let mut away: BTreeMap<String, Duration> = BTreeMap::new();
        for event in self.reader.join().unwrap() {
            let attributes = &event["Actor"]["Attributes"];
            let service = attributes["com.docker.compose.service"].as_str().unwrap();
            let time = event["timeNano"].as_u64().unwrap();
            let end = ended.entry(service.to_owned()).or_default();
            if event["Action"] == "die" {
                end.get_or_insert(time);
            } else if let Some(end) = end.take() {
                let gap = Duration::from_nanos(time.saturating_sub(end));
                *away.entry(service.to_owned()).or_default() += gap;
            }
        }
        let is_away = |service: &String| ended[service].is_some();
        let services = ended.keys();
        services
            .map(|service| {
                let time = away.get(service).copied().unwrap_or_default();
                (service.clone(), (!is_away(service)).then_some(time))
            })
            .collect()
    }
}
