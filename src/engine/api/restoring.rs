//! The writes that bring back what ran. By the Engine API only.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use ureq::http::Method;

use super::{Answer, Api, Version, objects::path_of, percent_encoded, wire};
use crate::engine::{
    objects::{Kind, check_name, name_of},
    printable,
};

/// The engine, as one that can be given containers, networks and volumes.
///
/// Nothing is repeated whose outcome is unknown (B05), and no verb looks before it acts: where an answer
/// is lost, the caller looks. A verb succeeds where what it is to bring about is so already, if it says so.
#[derive(Debug)]
pub struct Restoring<'a>(&'a Api);

impl<'a> Restoring<'a> {
    pub(in crate::engine) fn new(api: &'a Api) -> Self {
        Self(api)
    }

    /// The version of the Engine API that is spoken, which decides what a body may hold.
    pub fn version(&self) -> Result<Version> {
        self.0.version()
    }

    /// Creates the container `name` and gives its id. `platform` is `os[/arch[/variant]]`.
    ///
    /// `body` is as in `POST /containers/create`: the fields of `Config`, `HostConfig`,
    /// `NetworkingConfig`. What inspect tells (measured on 20.10 and 26.1) goes back as it is, but for:
    ///
    /// - `Hostname` and `ExposedPorts`, inherited ones included, where `NetworkMode` is `container:…`, and
    ///   `Hostname` where `UTSMode` is `host`: refused (400). `container:…` names an id, so of the new one.
    /// - `Binds` and `Mounts` with the same target: refused. An anonymous volume named as the `Source` of a
    ///   mount is taken; without it the container gets a new one.
    /// - An endpoint's address is refused where its network has no subnet of its own choice, and one that
    ///   another container has got in the meantime fails the start only (403).
    ///
    /// What versions differ in:
    ///
    /// - Below 1.44 more than one network in `NetworkingConfig.EndpointsConfig` is refused: create with
    ///   one, [`Self::connect`] the others before the start.
    /// - Below 1.44 a chosen `MacAddress` belongs beside `Image`, from 1.44 into the endpoint; in both it
    ///   must be the same.
    /// - Below 1.45 `Aliases` read by inspect hold the old container's short id.
    /// - From 1.42 `VolumeOptions`, `BindOptions` and `TmpfsOptions` are refused on a mount of another
    ///   type; below, they are ignored.
    /// - From 1.48 `Sysctls` of an interface (`net.ipv4.conf.eth0.…`) are refused.
    /// - Refused by versions too old for them: `ReadOnlyForceRecursive` (1.44), `VolumeOptions.Subpath`
    ///   (1.45), mounts of type `image` (1.48).
    /// - Ignored without a word by versions too old for them: `CreateMountpoint` (1.42), `Annotations`
    ///   (1.43), `Healthcheck.StartInterval` (1.44), `GwPriority` (1.48).
    pub fn create_container(
        &self,
        name: &str,
        platform: Option<&str>,
        body: &Value,
    ) -> Result<String> {
        let mut path = format!("/containers/create?name={}", percent_encoded(name));
        if let Some(platform) = platform {
            path.push_str("&platform=");
            path.push_str(&percent_encoded(platform));
        }
        let created = self
            .post(&path, Some(body), Duration::ZERO)
            .and_then(|answer| self.created(&answer));
        created.with_context(|| failed("create", Kind::Container, name))
    }

    /// Connects `container`, running or not, with `endpoint` as its settings in the network:
    /// `Aliases`, `IPAMConfig`, `Links`, `DriverOpts`.
    ///
    /// A running one that is connected already is refused; of one that is not running the settings are
    /// replaced. `MacAddress` counts from 1.44 in the documents, in fact on engines of 1.54 and up. A
    /// container of the networks `none`, `host` or `container:…` cannot be connected to another.
    pub fn connect(&self, network: &str, container: &str, endpoint: &Value) -> Result<()> {
        let body = json!({ "Container": container, "EndpointConfig": endpoint });
        self.act_in(network, "connect", &body)
            .with_context(|| to_network("connect", container, "to", network))
    }

    /// Takes `container` off the network; one that is not connected, or gone, is off it already.
    pub fn disconnect(&self, network: &str, container: &str) -> Result<()> {
        let body = json!({ "Container": container, "Force": false });
        let done = self.act_in(network, "disconnect", &body);
        // Engines do not agree on the status of the refusal.
        if done.is_err() && matches!(self.is_connected(network, container), Ok(false)) {
            return Ok(());
        }
        done.with_context(|| to_network("disconnect", container, "from", network))
    }

    fn act_in(&self, network: &str, how: &str, body: &Value) -> Result<()> {
        check_name(network)?;
        let path = format!("/networks/{}/{how}", percent_encoded(network));
        let answer = self.post(&path, Some(body), Duration::ZERO)?;
        self.done(&answer)
    }

    fn is_connected(&self, network: &str, container: &str) -> Result<bool> {
        let Some(found) = self.find(container)? else {
            return Ok(false);
        };
        let networks = found.pointer("/NetworkSettings/Networks");
        let mut networks = networks.and_then(Value::as_object).into_iter().flatten();
        Ok(networks.any(|(name, endpoint)| {
            name == network || endpoint.get("NetworkID").is_some_and(|id| id == network)
        }))
    }

    /// Starts `container`; one that runs already is fine. A paused one is refused.
    pub fn start(&self, container: &str) -> Result<()> {
        self.act(container, "start", Duration::ZERO, &[304])
            .with_context(|| failed("start", Kind::Container, container))
    }

    /// Stops `container` and waits for its end; one that is stopped, or gone, is fine.
    ///
    /// `grace` is in seconds; without it the container's own holds.
    pub fn stop(&self, container: &str, grace: Option<u32>) -> Result<()> {
        let longer = Duration::from_secs(grace.unwrap_or_default().into());
        let how = grace.map_or_else(|| "stop".to_owned(), |grace| format!("stop?t={grace}"));
        self.act(container, &how, longer, &[304, 404])
            .with_context(|| failed("stop", Kind::Container, container))
    }

    /// Pauses `container`, which must run; one that is paused already is fine.
    pub fn pause(&self, container: &str) -> Result<()> {
        self.freeze(container, "pause", true)
            .with_context(|| failed("pause", Kind::Container, container))
    }

    /// Lets a paused `container` go on; one that runs is fine.
    pub fn unpause(&self, container: &str) -> Result<()> {
        self.freeze(container, "unpause", false)
            .with_context(|| failed("unpause", Kind::Container, container))
    }

    fn freeze(&self, container: &str, how: &str, paused: bool) -> Result<()> {
        let Err(refused) = self.act(container, how, Duration::ZERO, &[]) else {
            return Ok(());
        };
        // Engines do not agree on the status of this refusal.
        let state = match self.find(container) {
            Ok(Some(mut found)) => found["State"].take(),
            _ => return Err(refused),
        };
        if state["Running"] == json!(true) && state["Paused"] == json!(paused) {
            return Ok(());
        }
        Err(refused)
    }

    /// Calls `container` by `new_name`, which nobody else may have. Its present name is refused.
    pub fn rename(&self, container: &str, new_name: &str) -> Result<()> {
        let how = format!("rename?name={}", percent_encoded(new_name));
        self.act(container, &how, Duration::ZERO, &[])
            .with_context(|| {
                let new_name = printable(new_name);
                format!(
                    "{} to {new_name}",
                    failed("rename", Kind::Container, container)
                )
            })
    }

    /// Creates a network from a body as in `POST /networks/create` and gives its id.
    ///
    /// A name that is taken is refused. From 1.44 on, and in engines from 25 on by any version, so is an
    /// invalid `IPAM`; `EnableIPv4` counts from 1.48.
    pub fn create_network(&self, body: &Value) -> Result<String> {
        let mut body = body.clone();
        if let Some(fields) = body.as_object_mut() {
            // Engines before 25 make a second one of the same name without it.
            fields.insert("CheckDuplicate".to_owned(), json!(true));
        }
        let created = self
            .post("/networks/create", Some(&body), Duration::ZERO)
            .and_then(|answer| self.created(&answer));
        created.with_context(|| failed("create", Kind::Network, name_of(&body)))
    }

    /// Creates a volume from a body as in `POST /volumes/create`.
    ///
    /// One of this name and driver that is there stays as it is, labels and options included.
    pub fn create_volume(&self, body: &Value) -> Result<()> {
        self.post("/volumes/create", Some(body), Duration::ZERO)
            .and_then(|answer| self.done(&answer))
            .with_context(|| failed("create", Kind::Volume, name_of(body)))
    }

    /// Removes the container, running or not, and leaves its volumes; one that is gone is fine.
    pub fn remove_container(&self, id: &str) -> Result<()> {
        check_name(id)
            .and_then(|()| {
                let deadline = Instant::now() + self.0.removal_timeout;
                let version = self.0.version()?;
                self.0.remove_one(version, &percent_encoded(id), deadline)
            })
            .with_context(|| failed("remove", Kind::Container, id))
    }

    /// What the engine says of the container of that very name; `None` if there is none.
    pub fn container_by_name(&self, name: &str) -> Result<Option<Value>> {
        let found = self
            .find(name)
            .with_context(|| failed("inspect", Kind::Container, name))?;
        // An engine also takes the beginning of an id.
        Ok(found.filter(|found| name_of(found) == name))
    }

    fn find(&self, container: &str) -> Result<Option<Value>> {
        check_name(container)?;
        self.0.find(&path_of(Kind::Container, container))
    }

    /// Has the engine do with `container` what `how` says; the statuses in `fine` are as good as done.
    fn act(&self, container: &str, how: &str, longer: Duration, fine: &[u16]) -> Result<()> {
        check_name(container)?;
        let path = format!("/containers/{}/{how}", percent_encoded(container));
        let answer = self.post(&path, None, longer)?;
        if fine.contains(&answer.status) {
            return Ok(());
        }
        self.done(&answer)
    }

    fn post(&self, path: &str, body: Option<&Value>, longer: Duration) -> Result<Answer> {
        let path = format!("/v{}{path}", self.0.version()?);
        let body = body.map(serde_json::to_vec).transpose()?;
        let limit = self.0.change_timeout + longer;
        self.0
            .send(&Method::POST, &path, &body.unwrap_or_default(), limit)
    }

    fn done(&self, answer: &Answer) -> Result<()> {
        match answer.status {
            200..=299 => Ok(()),
            _ => Err(self.0.refused(answer)),
        }
    }

    fn created(&self, answer: &Answer) -> Result<String> {
        self.done(answer)?;
        let wire::Created { id } = self.0.parse(answer)?;
        Ok(id)
    }
}

fn failed(verb: &str, kind: Kind, name: &str) -> String {
    format!("failed to {verb} the {kind} {}", printable(name))
}

fn to_network(verb: &str, container: &str, way: &str, network: &str) -> String {
    let (container, network) = (printable(container), printable(network));
    format!("failed to {verb} the container {container} {way} the network {network}")
}
