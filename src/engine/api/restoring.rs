//! Creates and changes containers, networks and volumes. By the Engine API only.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use ureq::http::Method;

use super::{ApiResponse, Version, objects::path_of, percent_encoded};
use crate::{
    engine::{
        Engine, EngineReader,
        objects::{ObjectKind, check_name, name_of},
    },
    model::Container,
    text::printable,
};

/// The operations that create and change containers, networks and volumes.
///
/// No request with an unknown outcome is repeated (B05): if a response is lost, the caller checks the outcome. No
/// operation checks the state first. If an operation is documented as a no-op in some state, that state is not an
/// error. Each is an error unless the engine is reached by the Engine API.
impl Engine {
    /// Creates the container `name` and returns its ID.
    ///
    /// `body` is the body of `POST /containers/create`: the fields of `Config`, `HostConfig` and `NetworkingConfig`.
    /// The engine accepts its own inspect JSON (measured on 20.10 and 26.1), except:
    ///
    /// - It rejects `Hostname` and `ExposedPorts`, including inherited ones, if `NetworkMode` is `container:…`, and
    ///   `Hostname` if `UTSMode` is `host` (400). `container:…` must name the ID of the new container.
    /// - It rejects `Binds` and `Mounts` with the same target. It mounts an anonymous volume that is named as the
    ///   `Source` of a mount; without a source the container gets a new volume.
    /// - It rejects the address of an endpoint if the subnet of the network was not configured. An address that another
    ///   container uses now makes the start fail, not the creation (403).
    ///
    /// API versions differ:
    ///
    /// - Below 1.44, more than one network in `NetworkingConfig.EndpointsConfig` is rejected: create the container with
    ///   one network and [`Self::connect`] the others before the start.
    /// - Below 1.44, a configured `MacAddress` belongs next to `Image`; from 1.44 on, to the endpoint. If both are set,
    ///   they must be equal.
    /// - Below 1.45, `Aliases` in the inspect JSON include the short ID of the old container.
    /// - From 1.42 on, `VolumeOptions`, `BindOptions` and `TmpfsOptions` are rejected on a mount of another type. Older
    ///   versions ignore them.
    /// - From 1.48 on, `Sysctls` of an interface (`net.ipv4.conf.eth0.…`) are rejected.
    /// - Older versions reject `ReadOnlyForceRecursive` (new in 1.44), `VolumeOptions.Subpath` (1.45) and mounts of type
    ///   `image` (1.48).
    /// - Older versions silently ignore `CreateMountpoint` (new in 1.42), `Annotations` (1.43),
    ///   `Healthcheck.StartInterval` (1.44) and `GwPriority` (1.48).
    pub fn create_container(&self, name: &str, body: &Value) -> Result<String> {
        let path = format!("/containers/create?name={}", percent_encoded(name));
        let created = self
            .post(&path, Some(body), Duration::ZERO)
            .and_then(|response| self.created(&response));
        created.with_context(|| failed("create", ObjectKind::Container, name))
    }

    /// Whether a create accepts more than one network.
    pub fn creates_with_networks(&self) -> Result<bool> {
        Ok(self.api()?.version()? >= Version(1, 44))
    }

    /// Connects `container`, running or not, to `network`. `endpoint` holds its settings there: `Aliases`, `IPAMConfig`,
    /// `Links`, `DriverOpts`.
    ///
    /// If the container is connected already, the engine rejects the request for a running container and replaces the
    /// settings of any other. `MacAddress` is documented from 1.44 on, but takes effect only from 1.54 on; `GwPriority` is lost on 28. A container with
    /// the network mode `none`, `host` or `container:…` cannot be connected to another network.
    pub fn connect(&self, network: &str, container: &str, endpoint: &Value) -> Result<()> {
        let body = json!({ "Container": container, "EndpointConfig": endpoint });
        self.link(network, ("connect", "to"), container, &body)
    }

    /// Disconnects `container`, running or not, from `network`.
    pub fn disconnect(&self, network: &str, container: &str) -> Result<()> {
        let body = json!({ "Container": container });
        self.link(network, ("disconnect", "from"), container, &body)
    }

    fn link(
        &self,
        network: &str,
        (verb, preposition): (&str, &str),
        container: &str,
        body: &Value,
    ) -> Result<()> {
        let path = format!("/networks/{}/{verb}", percent_encoded(network));
        check_name(network)
            .and_then(|()| self.post(&path, Some(body), Duration::ZERO))
            .and_then(|response| self.done(&response))
            .with_context(|| {
                let (container, network) = (printable(container), printable(network));
                format!(
                    "failed to {verb} the container {container} {preposition} the network {network}"
                )
            })
    }

    /// Unpacks a tar archive into the root directory of `container`, running or not. Owners and modes are those of the
    /// archive. The engine refuses it for a read-only root file system.
    pub fn unpack(&self, container: &str, archive: &[u8]) -> Result<()> {
        check_name(container)
            .and_then(|()| {
                let api = self.api()?;
                let (version, name) = (api.version()?, percent_encoded(container));
                let path = format!("/v{version}/containers/{name}/archive?path=%2F");
                let request = (&Method::PUT, path.as_str(), "application/x-tar", archive);
                let response = api.exchange(request, api.options.change_timeout)?;
                api.whole(&Method::PUT, &path, response, api.options.change_timeout)
            })
            .and_then(|response| self.done(&response))
            .with_context(|| {
                let container = printable(container);
                format!("failed to copy files into the container {container}")
            })
    }

    /// Starts `container`. A no-op if it is running. The engine rejects the request if it is paused.
    pub fn start(&self, container: &str) -> Result<()> {
        self.act(container, "start", None, &[304])
    }

    /// Stops `container` and waits until it has exited. A no-op if it is stopped or does not exist.
    ///
    /// `grace` is in seconds. Without it, the container's own grace period applies.
    pub fn stop_container(&self, container: &str, grace: Option<u32>) -> Result<()> {
        self.act(container, "stop", grace, &[304, 404])
    }

    /// Pauses `container`, which must be running. A no-op if it is paused.
    pub fn pause(&self, container: &str) -> Result<()> {
        self.set_paused(container, "pause", true)
    }

    /// Unpauses `container`. A no-op if it is running.
    pub fn unpause(&self, container: &str) -> Result<()> {
        self.set_paused(container, "unpause", false)
    }

    fn set_paused(&self, container: &str, verb: &str, paused: bool) -> Result<()> {
        let Err(refused) = self.act(container, verb, None, &[]) else {
            return Ok(());
        };
        // Engines reject this with different statuses.
        match self.find(container) {
            Ok(Some(found)) if found.is_running() && found.is_paused() == paused => Ok(()),
            _ => Err(refused),
        }
    }

    /// Creates a network from the body of `POST /networks/create` and returns its ID.
    ///
    /// The engine rejects a name that exists (409) and addresses that overlap with another network (403). From API 1.44
    /// on, and in engines from 25 on with any version, it also rejects an invalid `IPAM`. `EnableIPv4` has an effect
    /// from 1.48 on.
    pub fn create_network(&self, body: &Value) -> Result<String> {
        let mut body = body.clone();
        if let Some(fields) = body.as_object_mut() {
            // Without this field, engines before 25 create a second network of the same name.
            fields.insert("CheckDuplicate".to_owned(), json!(true));
        }
        let created = self
            .post("/networks/create", Some(&body), Duration::ZERO)
            .and_then(|response| self.created(&response));
        created.with_context(|| failed("create", ObjectKind::Network, name_of(&body)))
    }

    /// Removes a network. A no-op if it does not exist. The engine rejects the request while containers are connected.
    pub fn remove_network(&self, network: &str) -> Result<()> {
        check_name(network)
            .and_then(|()| {
                let (api, name) = (self.api()?, percent_encoded(network));
                let path = format!("/v{}/networks/{name}", api.version()?);
                api.send(&Method::DELETE, &path, &[], api.options.change_timeout)
            })
            .and_then(|response| match response.status {
                404 => Ok(()),
                _ => self.done(&response),
            })
            .with_context(|| failed("remove", ObjectKind::Network, network))
    }

    /// Creates a volume from the body of `POST /volumes/create`.
    ///
    /// An existing volume of this name and driver stays unchanged, including its labels and options.
    pub fn create_volume(&self, body: &Value) -> Result<()> {
        self.post("/volumes/create", Some(body), Duration::ZERO)
            .and_then(|response| self.done(&response))
            .with_context(|| failed("create", ObjectKind::Volume, name_of(body)))
    }

    /// Removes the container, running or not, but not its volumes. A no-op if it does not exist.
    pub fn remove_container(&self, id: &str) -> Result<()> {
        check_name(id)
            .and_then(|()| {
                let api = self.api()?;
                let deadline = Instant::now() + api.options.change_timeout;
                api.remove_one(api.version()?, &percent_encoded(id), deadline)
            })
            .with_context(|| failed("remove", ObjectKind::Container, id))
    }

    /// Sends `POST /containers/{container}/{verb}`. The statuses in `no_op` count as success.
    fn act(&self, container: &str, verb: &str, grace: Option<u32>, no_op: &[u16]) -> Result<()> {
        let limit = Duration::from_secs(grace.unwrap_or_default().into());
        let query = grace.map_or_else(String::new, |grace| format!("?t={grace}"));
        let path = format!("/containers/{}/{verb}{query}", percent_encoded(container));
        check_name(container)
            .and_then(|()| self.post(&path, None, limit))
            .and_then(|response| match response.status {
                status if no_op.contains(&status) => Ok(()),
                _ => self.done(&response),
            })
            .with_context(|| failed(verb, ObjectKind::Container, container))
    }

    fn post(&self, path: &str, body: Option<&Value>, grace: Duration) -> Result<ApiResponse> {
        let api = self.api()?;
        let path = format!("/v{}{path}", api.version()?);
        let body = body.map(Value::to_string).unwrap_or_default();
        let limit = api.options.change_timeout + grace;
        api.send(&Method::POST, &path, body.as_bytes(), limit)
    }

    fn done(&self, response: &ApiResponse) -> Result<()> {
        match response.status {
            200..=299 => Ok(()),
            _ => Err(self.api()?.refused(response)),
        }
    }

    fn created(&self, response: &ApiResponse) -> Result<String> {
        self.done(response)?;
        let api = self.api()?;
        let created: Value = api.parse(response)?;
        let id = created["Id"].as_str().map(str::to_owned);
        id.ok_or_else(|| api.unexpected(response, "no ID"))
    }
}

impl EngineReader {
    /// The container with exactly this name; `None` if it does not exist.
    pub fn container_by_name(&self, name: &str) -> Result<Option<Container>> {
        let found = self
            .find(name)
            .with_context(|| failed("inspect", ObjectKind::Container, name))?;
        // The engine also accepts the prefix of an ID.
        Ok(found.filter(|found| found.name() == name))
    }

    fn find(&self, container: &str) -> Result<Option<Container>> {
        check_name(container)?;
        self.api()?.find(&path_of(ObjectKind::Container, container))
    }
}

fn failed(verb: &str, kind: ObjectKind, name: &str) -> String {
    format!("failed to {verb} the {kind} {}", printable(name))
}
