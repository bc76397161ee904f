//! Replays recorded exchanges with a real Portainer against the simulated one.
//!
//! `STACKLIFT_EXCHANGES` is the path of a recording; the default is the project's own fixture.
//! Each line is one exchange: `{step, request, response, containers{before, after}}`.

#[path = "rehearsal/client.rs"]
mod client;

use std::{collections::BTreeMap, env, fs};

use serde_json::Value;
use testbed::{Options, Rehearsal, World};

use client::Response;

/// Values that differ between runs. Only their types are compared.
const FREE: [&str; 6] = [
    "Id",
    "CreationDate",
    "UpdateDate",
    "InstanceID",
    "ProjectPath",
    "ResourceId",
];
/// The text after this phrase comes from the engine or Compose.
const REASON: &str = "ailed to deploy a stack:";

#[test]
fn the_simulated_portainer_responds_as_recorded() {
    let own = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/exchanges.jsonl"
    );
    let path = env::var("STACKLIFT_EXCHANGES").unwrap_or_else(|_| own.to_owned());
    let recording = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let exchanges = recording.lines().filter(|line| !line.trim().is_empty());
    let exchanges = exchanges
        .map(|line| serde_json::from_str(line).unwrap())
        .collect::<Vec<Value>>();
    assert!(
        exchanges.len() >= 12,
        "{path} has only {} exchanges",
        exchanges.len()
    );
    let mut replay = Replay::new(&exchanges);
    for (index, exchange) in exchanges.iter().enumerate() {
        replay.exchange(index, exchange);
    }
}

struct Replay {
    rehearsal: Rehearsal,
    /// The Compose file that each project was first created with.
    texts: BTreeMap<String, String>,
    /// The ID of each recorded stack in the rehearsal.
    ids: BTreeMap<u64, u64>,
}

impl Replay {
    fn new(exchanges: &[Value]) -> Self {
        let rehearsal = Rehearsal::start(World::new("ptr_replay"), Options::default()).unwrap();
        let mut texts = BTreeMap::new();
        let succeeded = exchanges
            .iter()
            .filter(|one| one["response"]["status"] == 200);
        for body in succeeded.map(|one| &one["request"]["body"]) {
            let text = body["stackFileContent"].as_str().map(str::to_owned);
            if let (Some(name), Some(text)) = (body["name"].as_str(), text) {
                texts.entry(name.to_owned()).or_insert(text);
            }
        }
        Self {
            rehearsal,
            texts,
            ids: BTreeMap::new(),
        }
    }

    fn exchange(&mut self, index: usize, exchange: &Value) {
        let step = format!("line {} ({})", index + 1, exchange["step"]);
        let containers = &exchange["containers"];
        self.start_what_ran(&containers["before"]);
        assert_eq!(self.containers(), containers["before"], "{step}: before");
        let recorded = &exchange["response"];
        let response = self.send(&exchange["request"]);
        assert_eq!(response.status, recorded["status"], "{step}: {response:?}");
        let content_type = recorded["headers"]["Content-Type"].as_str();
        assert_eq!(response.content_type.as_deref(), content_type, "{step}");
        if let Some(text) = recorded["text"].as_str() {
            assert_eq!(response.body, text, "{step}");
        } else {
            let ours: Value = serde_json::from_str(&response.body).unwrap();
            compare(&ours, &recorded["body"], &step, "");
            let theirs = recorded["body"]["Id"].as_u64();
            self.ids.extend(theirs.zip(ours["Id"].as_u64()));
        }
        assert_eq!(self.containers(), containers["after"], "{step}: after");
    }

    fn send(&mut self, request: &Value) -> Response {
        let headers = request["headers"].as_object().unwrap().iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| match value.as_str().unwrap() {
                "<API_KEY>" => (name.as_str(), "ptr_replay"),
                value => (name.as_str(), value),
            })
            .collect();
        let body = match (request["raw"].as_str(), &request["body"]) {
            (Some(raw), _) => raw.to_owned(),
            (None, Value::Null) => String::new(),
            (None, body) => body.to_string(),
        };
        let path = self.path(request["path"].as_str().unwrap());
        let method = request["method"].as_str().unwrap();
        client::send(&self.rehearsal, method, &path, &headers, &body)
    }

    /// A recorded path with the stack ID of the rehearsal.
    fn path(&self, recorded: &str) -> String {
        let Some(rest) = recorded.strip_prefix("/api/stacks/") else {
            return recorded.to_owned();
        };
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let end = end.unwrap_or(rest.len());
        match rest[..end]
            .parse()
            .ok()
            .and_then(|id: u64| self.ids.get(&id))
        {
            Some(id) => format!("/api/stacks/{id}{}", &rest[end..]),
            None => recorded.to_owned(),
        }
    }

    /// Starts by hand the projects that were running before an exchange and that no exchange created.
    fn start_what_ran(&self, before: &Value) {
        self.rehearsal.world(|world| {
            for container in before.as_array().unwrap() {
                let project = container[2].as_str().unwrap();
                if world.project(project).is_empty() {
                    let folder = format!("/opt/stacks/{project}");
                    let text = self.texts[project].as_str();
                    world.add_stack(&folder, [("docker-compose.yml", text)]);
                    world.start_by_hand(project, &folder, &[]).unwrap();
                }
            }
        });
    }

    /// `[name, state, project]` of each container, by name.
    fn containers(&self) -> Value {
        self.rehearsal.world(|world| {
            let mut all = world.containers.values().collect::<Vec<_>>();
            all.sort_by(|one, other| one.name.cmp(&other.name));
            let shown = all.into_iter().map(|container| {
                let project = &container.labels["com.docker.compose.project"];
                Value::from(vec![container.name.as_str(), &container.state, project])
            });
            shown.collect()
        })
    }
}

fn compare(ours: &Value, recorded: &Value, step: &str, at: &str) {
    let key = at.rsplit('.').next().unwrap_or_default();
    match (ours, recorded) {
        (Value::Object(ours), Value::Object(recorded)) => {
            let keys = |map: &serde_json::Map<_, _>| map.keys().cloned().collect::<Vec<String>>();
            assert_eq!(keys(ours), keys(recorded), "{step}: keys at {at}");
            for (key, value) in ours {
                compare(value, &recorded[key], step, &format!("{at}.{key}"));
            }
        }
        (Value::Array(ours), Value::Array(recorded)) => {
            assert_eq!(ours.len(), recorded.len(), "{step}: length of {at}");
            for (one, other) in ours.iter().zip(recorded) {
                compare(one, other, step, at);
            }
        }
        (Value::String(ours), Value::String(recorded)) if recorded.contains(REASON) => {
            let cut = |text: &str| text.split_inclusive(REASON).next().map(str::to_owned);
            assert_eq!(cut(ours), cut(recorded), "{step}: {at}");
            assert!(ours.ends_with('\n'), "{step}: {at}");
        }
        (Value::Number(_), Value::Number(_)) | (Value::String(_), Value::String(_))
            if FREE.contains(&key) => {}
        _ => assert_eq!(ours, recorded, "{step}: {at}"),
    }
}
