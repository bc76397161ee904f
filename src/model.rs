//! Facts about containers, mounts and Portainer stacks, shared by the modules that observe and plan.
//!
//! Invariant: pure data. Nothing here reads, writes or calls anything.
#![deny(clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
    sync::Arc,
};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::text::{Mask, printable};

mod access;
mod container;
mod memory;
mod settings;
mod subnet;

pub use access::{Access, Grant, Uses, WantedAccess};
pub use container::{Container, given_labels, is_empty, is_id, is_short_id, is_unset};
pub use settings::{ContainerSetting, SETTINGS, effective, without_id};
pub use subnet::{has_address, overlap};

/// The reference of an image with a tag or a digest: without one, the engine pulls every tag.
pub fn tagged(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains([':', '@']) {
        image.to_owned()
    } else {
        format!("{image}:latest")
    }
}

/// An image that has to be pulled. Its `Display` names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pull {
    /// The reference as the Compose file has it.
    pub image: String,
    /// The service's `platform`.
    pub platform: Option<String>,
    /// What is shown of the reference, if it contains the value of a variable.
    pub shown: Option<String>,
}

impl Pull {
    /// Hides the values of variables in what is shown.
    pub fn hide_values(&mut self, mask: &Mask) {
        self.shown = Some(mask.hide_unless(&self.image, |_, is_plain| is_plain));
    }

    /// Why it could not be pulled. The engine names it.
    pub fn told(&self, error: &anyhow::Error) -> String {
        format!("{error:#}").replace(&self.image, self.shown())
    }

    fn shown(&self) -> &str {
        self.shown.as_ref().unwrap_or(&self.image)
    }

    /// The arguments of the container command that pulls it.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["pull".to_owned()];
        let platform = self.platform.iter();
        arguments.extend(platform.map(|platform| format!("--platform={platform}")));
        arguments.extend(["--".to_owned(), self.image.clone()]);
        arguments
    }
}

/// As its `Display`.
impl Serialize for Pull {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Pull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(self.shown()))?;
        match &self.platform {
            Some(platform) => write!(f, " ({})", printable(platform)),
            None => Ok(()),
        }
    }
}

/// Networks or volumes, as the engine lists them: their inspect JSON without what uses them.
pub type ListedObjects = Arc<Vec<Value>>;

/// The network or volume with this name.
pub fn named<'l>(listed: &'l ListedObjects, name: &str) -> Option<&'l Value> {
    listed.iter().find(|container| container["Name"] == name)
}

/// How a text writes its services, as far as no version of Compose prints all of it.
pub type WrittenServices = BTreeMap<String, WrittenService>;

/// How a text writes a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenService {
    /// Its place among the services.
    pub position: usize,
    /// Its mounts, by the clean path in the container.
    pub mounts: BTreeMap<String, WrittenMount>,
    /// Whether it has ports in the long syntax.
    pub has_long_ports: bool,
}

/// How a text writes a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenMount {
    /// `create_host_path` of a bind mount: `true` in the short syntax.
    pub creates: Option<bool>,
    /// The path in the container, which is clean in the short syntax.
    pub target: String,
}

/// The config hashes that Compose computes for the networks and volumes of a text, by the engine's names (N13).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceHashes {
    /// Without external networks.
    pub networks: BTreeMap<String, String>,
    /// Without external volumes.
    pub volumes: BTreeMap<String, String>,
    /// What the networks and volumes are, by these hashes.
    pub definitions: BTreeMap<String, Value>,
}

/// What a service waits for before Compose starts it (`depends_on`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The dependency was started, and does not pause in a restart loop.
    Started,
    /// The dependency is healthy.
    Healthy,
    /// The dependency has exited with 0.
    Completed,
}

impl Condition {
    /// The condition with a name of Compose, such as `service_healthy`.
    pub fn named(name: &str) -> Self {
        match name {
            "service_healthy" => Self::Healthy,
            "service_completed_successfully" => Self::Completed,
            _ => Self::Started,
        }
    }
}

/// The namespaces that a service shares: the field of Docker's `HostConfig`, and `service:…` or `container:…`. `mode` gives the
/// text of a key of the service.
pub fn shared_modes<'m>(
    mode: impl Fn(&'static str) -> Option<&'m str>,
) -> impl Iterator<Item = (&'static str, &'m str)> {
    let keys = [
        ("network_mode", "NetworkMode"),
        ("pid", "PidMode"),
        ("ipc", "IpcMode"),
    ];
    let given = keys.map(|(key, field)| Some((field, mode(key)?)));
    let given = given.into_iter().flatten();
    given.filter(|(_, mode)| is_shared(mode))
}

/// Whether a mode is the namespace of another container.
pub fn is_shared(mode: &str) -> bool {
    mode.starts_with("service:") || mode.starts_with("container:")
}

/// Where Portainer keeps its stacks, in its container (M07).
pub const PORTAINER_FOLDERS: &str = "/data/compose/";

/// Whether a directory may be one that a Portainer outside a container keeps for a stack: `…/compose/<Id>`, or that of a
/// version below it (M07).
pub fn may_be_portainers(dir: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = dir.trim_end_matches('/').rsplit('/').peekable();
    let is_version = |part: &&str| part.strip_prefix('v').is_some_and(is_number);
    parts.next_if(is_version);
    parts.next().is_some_and(is_number) && parts.next() == Some("compose")
}

/// Whether a directory is in the folders of a Portainer in a container, or may be a folder of one outside a container.
pub fn is_portainers(dir: &str) -> bool {
    dir.starts_with(PORTAINER_FOLDERS) || may_be_portainers(dir)
}

/// The folder that a Portainer may keep for a stack. The Compose file of a Git stack may be in a directory below it (M24).
pub fn portainers_folder(dir: &str) -> Option<&str> {
    let all = Path::new(dir).ancestors().filter_map(Path::to_str);
    let all = all.filter(|dir| may_be_portainers(dir));
    // The outermost one, or that of a version in it.
    all.reduce(|inner, outer| {
        let is_version = Path::new(inner).parent() == Some(Path::new(outer));
        if is_version { inner } else { outer }
    })
}

/// Whether a directory is the one that Portainer keeps for the Portainer stack `id`: `…/compose/<Id>` (M07), where newer
/// versions keep a folder of each version.
pub fn is_folder_of(id: &str, dir: &str) -> bool {
    let below = dir.rsplit_once(&format!("/compose/{id}"));
    below.is_some_and(|(_, below)| below.is_empty() || below.starts_with('/'))
}

/// The name of another stack than `name` whose Portainer directory `dir` is: a Portainer that is restored from a backup gives
/// IDs again.
pub fn successor<'r>(
    records: impl IntoIterator<Item = &'r Record>,
    name: &str,
    dir: &str,
) -> Option<&'r str> {
    let mut others = records.into_iter().filter(|record| record.name != name);
    let has_folder = |one: &&Record| is_folder_of(&one.id, dir);
    Some(others.find(has_folder)?.name.as_str())
}

/// The name of a label of the tool's Compose: `com.<tool>.compose.<name>`.
pub fn compose_label(tool: &str, name: &str) -> String {
    format!("com.{tool}.compose.{name}")
}

/// Images of Portainer itself, without its agent (B04).
const PORTAINER_IMAGES: [&str; 3] = ["portainer", "portainer-ce", "portainer-ee"];

/// `[registry/]portainer/portainer[-ce|-ee][:tag][@digest]`.
fn is_portainer_image(image: &str) -> bool {
    let mut parts = image.split('@').next().unwrap_or(image).rsplit('/');
    let repository = parts.next().unwrap_or_default();
    let repository = repository.split(':').next().unwrap_or_default();
    parts.next() == Some("portainer") && PORTAINER_IMAGES.contains(&repository)
}

/// A port of a container that is published on a port of this host.
#[derive(Debug, Clone, Copy)]
pub struct PublishedPort<'a> {
    /// The port inside the container.
    pub container_port: &'a str,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: &'a str,
    /// The address of this host that it listens on: `0.0.0.0`, `::`, `127.0.0.1`. It may be empty: all of them.
    pub address: &'a str,
    /// The port on this host. It may be empty, or a range of which the engine chooses one.
    pub published: &'a str,
}

impl PublishedPort<'_> {
    /// The same, on `0.0.0.0` if no address is known.
    fn somewhere(self) -> Self {
        let address = match self.address {
            "" => "0.0.0.0",
            address => address,
        };
        Self { address, ..self }
    }

    /// The port on this host, if it is a fixed one.
    pub fn host_port(&self) -> Option<u16> {
        self.published.parse().ok().filter(|&port| port != 0)
    }

    /// Whether nothing else can listen on this port of an address.
    pub fn holds(&self, address: &str, port: u16, protocol: &str) -> bool {
        self.host_port() == Some(port)
            && self.protocol == protocol
            && cannot_share(address, self.address)
    }
}

/// Whether two addresses of this host cannot both listen on one port. An empty one stands for all.
pub fn cannot_share(one: &str, other: &str) -> bool {
    let family = |address: &str| address.contains(':');
    if one.is_empty() || other.is_empty() {
        return true;
    }
    let is_any = |address: &str| matches!(address, "0.0.0.0" | "::");
    family(one) == family(other) && (one == other || is_any(one) || is_any(other))
}

/// The most changes of one container that are kept. All are counted.
pub const MOST_CHANGES: usize = 10_000;

/// The files that differ between a container's writable layer and its image, in the engine's order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The first [`MOST_CHANGES`] changes.
    pub listed: Vec<Change>,
    /// The number of all changes.
    pub total: usize,
    /// The paths of its mounts in memory that hold files, which are lost when it stops (B36).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_memory: Vec<String>,
    /// Why some of them could not be looked at.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unseen_memory: BTreeSet<String>,
    /// The paths of the host that it can write to and that were replaced since it started: it still has the earlier ones.
    #[serde(skip)]
    pub replaced: Vec<String>,
    /// The changed files that a snapshot would not keep (B18). A snapshot names its own.
    #[serde(skip)]
    pub unsaved: Vec<String>,
}

impl Changes {
    /// Counts `change`, and keeps it if there is room.
    pub fn add(&mut self, change: Change) {
        self.total += 1;
        if self.listed.len() < MOST_CHANGES {
            self.listed.push(change);
        }
    }

    /// Whether there are files in memory, or it is unknown whether there are.
    pub fn have_memory(&self) -> bool {
        !self.in_memory.is_empty() || !self.unseen_memory.is_empty()
    }

    /// The paths of the image that were deleted.
    pub fn deleted(&self) -> impl Iterator<Item = &str> {
        let deleted = self.listed.iter();
        let deleted = deleted.filter(|change| change.kind == ChangeKind::Deleted);
        deleted.map(|change| change.path.as_str())
    }

    /// Whether the layer has this path of its own.
    pub fn has(&self, path: &str) -> bool {
        let mut all = self.listed.iter();
        all.any(|change| change.kind != ChangeKind::Deleted && change.path == path)
    }
}

/// A changed path. A directory is also modified if an entry in it was added or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The absolute path in the container.
    pub path: String,
    /// The kind of the change.
    pub kind: ChangeKind,
}

/// How a path differs from the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The path is not in the image.
    Added,
    /// Its content or its permissions differ from the image.
    Modified,
    /// The path is only in the image.
    Deleted,
}

/// The name that Portainer gives a stack called `name`: lower case, without characters outside `[-_a-z0-9]` (M02).
pub fn portainer_name(name: &str) -> String {
    let lower = name.chars().flat_map(char::to_lowercase);
    lower
        .filter(|c| matches!(c, '-' | '_' | 'a'..='z' | '0'..='9'))
        .collect()
}

/// The names that the project of a stack may have: that of the stack, and the one that Portainer gives it (B10, M02).
pub fn projects_of(stack: &str) -> Vec<String> {
    let mut projects = vec![stack.to_owned(), portainer_name(stack)];
    projects.retain(|project| !project.is_empty());
    projects.dedup();
    projects
}

/// Portainer's entry of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The ID of the Portainer stack, as Portainer writes it.
    pub id: String,
    /// Its name, see [`portainer_name`].
    pub name: String,
    /// The environment it runs in.
    pub endpoint_id: i64,
    /// What it deploys.
    pub kind: StackKind,
    /// The state of its deployment.
    pub deployment: Deployment,
    /// The settings that a new stack of the same name will not have.
    pub carries: Vec<Carried>,
    /// When Portainer last deployed it, in seconds since 1970; 0 if that is unknown.
    pub deployed_at: i64,
    /// The names of its environment variables.
    pub variables: BTreeSet<String>,
    /// Whether Portainer removes services that the text no longer has. An update keeps it (N19).
    pub prune: bool,
}

impl Record {
    /// Whether Portainer takes its Compose file from a Git repository (M24).
    pub fn is_from_git(&self) -> bool {
        let mut carries = self.carries.iter();
        carries.any(|carried| matches!(carried, Carried::Git(_)))
    }
}

/// What the user of the API key sees and may do on an environment (M22). Its `Display` says what that means, unless it is
/// [`Self::Administrator`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rights {
    /// Sees every stack and may change it.
    Administrator,
    /// May have stacks, and may not see all stacks of others. What the environment forbids them, as Portainer names it:
    /// `BindMounts` in `allowBindMountsForRegularUsers`.
    OwnStacks(BTreeSet<String>),
    /// May not read, create, update or delete a stack: `allowStackManagementForRegularUsers` is false.
    NoStacks,
    /// May not use the environment: Portainer lists their own stacks, and lets them do nothing with those.
    NoEnvironment,
    /// They could not be read, with the reason.
    Unknown(String),
}

impl Default for Rights {
    fn default() -> Self {
        Self::Unknown("Portainer was not asked".to_owned())
    }
}

impl Rights {
    /// Whether a stack that Portainer does not list does not exist (B24).
    pub fn see_every_stack(&self) -> bool {
        *self == Self::Administrator
    }

    /// What to do about it. A failure to read them says nothing about the API key (B35).
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "check Portainer and any proxy in front of it",
            _ => "use an administrator's API key",
        }
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Administrator => return f.write_str("the API key belongs to an administrator"),
            Self::OwnStacks(_) => ", so Portainer may not list every stack",
            Self::NoStacks => ", and the environment does not let other users manage stacks",
            Self::NoEnvironment => ", and its user may not use the environment",
            Self::Unknown(reason) => {
                let unknown = "cannot determine whether the API key sees every Portainer stack";
                return write!(f, "{unknown}: {reason}");
            }
        };
        write!(f, "the API key does not belong to an administrator{what}")
    }
}

/// What a Portainer stack deploys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackKind {
    /// A Compose project. Also assumed if Portainer does not report a type.
    Compose,
    /// A stack of a swarm.
    Swarm,
    /// Objects of Kubernetes.
    Kubernetes,
}

/// The state of the deployment of a Portainer stack (N01).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deployment {
    /// It is deployed. Also assumed if Portainer does not report a state.
    Active,
    /// A user stopped it.
    Inactive,
    /// The deployment is in progress.
    Deploying,
    /// The deployment failed, with the reason that Portainer gives.
    Failed(Option<String>),
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Inactive => "inactive",
            Self::Deploying => "still deploying",
            Self::Failed(_) => "in error",
        })
    }
}

/// An entry of the `env` that is sent to Portainer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name. Not validated: it may be empty (C42).
    pub name: String,
    /// Its value. It may be a secret: `Debug` does not show it.
    #[serde(default)]
    pub value: String,
}

/// The last value of each variable.
pub fn values(variables: &[Variable]) -> BTreeMap<&str, &str> {
    let pairs = variables
        .iter()
        .map(|variable| (&*variable.name, &*variable.value));
    pairs.collect()
}

impl Variable {
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
        }
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({}=…)", self.name)
    }
}

/// A setting of a Portainer stack that a new stack of the same name will not have (B01).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// The link to a Git repository, with its URL without credentials.
    Git(String),
    /// Automatic updates at an interval.
    AutoUpdate,
    /// The webhook URL.
    Webhook,
    /// The access rights of users and teams.
    Access,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_cannot_share_a_port_within_their_family() {
        for (one, other, expected) in [
            ("", "127.0.0.1", true),
            ("", "::", true),
            ("127.0.0.1", "0.0.0.0", true),
            ("127.0.0.1", "::", false),
            ("127.0.0.1", "10.0.0.1", false),
            ("0.0.0.0", "10.0.0.1", true),
            ("::1", "::", true),
        ] {
            assert_eq!(cannot_share(one, other), expected, "{one} {other}");
        }
    }

    impl Record {
        /// A Compose stack that is deployed, with this ID.
        pub fn with_id(id: &str) -> Self {
            Self {
                id: id.to_owned(),
                name: "web".to_owned(),
                endpoint_id: 1,
                kind: StackKind::Compose,
                deployment: Deployment::Active,
                carries: Vec::new(),
                deployed_at: 0,
                variables: BTreeSet::new(),
                prune: false,
            }
        }
    }

    #[test]
    fn portainers_images_are_recognized() {
        for image in [
            "portainer/portainer-ce:2.21.0",
            "portainer/portainer-ee",
            "portainer/portainer@sha256:00",
            "registry.example:5000/portainer/portainer-ce:latest",
        ] {
            assert!(is_portainer_image(image), "{image}");
        }
        for image in ["portainer/agent:2", "portainer-ce", "nginx", "x/portainer"] {
            assert!(!is_portainer_image(image), "{image}");
        }
    }

    #[test]
    fn m02_portainer_keeps_lower_case_letters_digits_hyphens_and_underscores() {
        assert_eq!(portainer_name("Rec.Two_x-1"), "rectwo_x-1");
        assert_eq!(portainer_name("web"), "web");
        assert_eq!(portainer_name("ÄÖ"), "");
        // The Kelvin sign lower-cases to an ASCII k in Go and in Rust.
        assert_eq!(portainer_name("\u{212a}"), "k");
    }

    #[test]
    fn m24_a_compose_file_may_be_below_portainers_folder() {
        for (dir, folder) in [
            ("/data/compose/7", Some("/data/compose/7")),
            ("/data/compose/7/v2/app", Some("/data/compose/7/v2")),
            ("/data/compose/7/compose/8", Some("/data/compose/7")),
            ("/data/compose/7/v2/compose/8", Some("/data/compose/7/v2")),
            ("/srv/compose/web", None),
        ] {
            assert_eq!(portainers_folder(dir), folder, "{dir}");
        }
    }

    #[test]
    fn m07_folders_that_may_be_portainers() {
        for dir in [
            "/data/compose/7",
            "/opt/portainer/compose/56",
            "/opt/portainer/compose/56/",
            "/opt/portainer/compose/56/v2",
        ] {
            assert!(may_be_portainers(dir), "{dir}");
        }
        for dir in [
            "/srv/compose",
            "/srv/compose/web",
            "/srv/compose/7/web",
            "/srv/7",
            "/srv/mycompose/7",
            "/srv/compose/v2",
            "",
        ] {
            assert!(!may_be_portainers(dir), "{dir}");
        }
    }
}
