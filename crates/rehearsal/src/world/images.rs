//! The images on the host.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    entities::{Image, fingerprint},
    errors::EngineError,
    state::World,
};

/// The environment of every simulated image.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl World {
    /// Adds an image to the host, as if it was pulled, and returns its ID.
    pub fn add_image(&mut self, name: &str) -> String {
        if let Some(image) = self.image(name) {
            return image.id.clone();
        }
        let id = format!("sha256:{}", fingerprint(&format!("image {name}")));
        let image = Image {
            id: id.clone(),
            tags: BTreeSet::from([tagged(name)]),
            config: self.image_config(name),
            created: self.seconds(),
        };
        self.images.insert(id.clone(), image);
        id
    }

    /// Removes an image with all its names. Its containers stay.
    pub fn remove_image(&mut self, name: &str) -> Option<Image> {
        let id = self.image(name)?.id.clone();
        self.images.remove(&id)
    }

    /// An image by name, ID or unique ID prefix.
    pub(crate) fn image(&self, name: &str) -> Option<&Image> {
        let tag = tagged(name);
        let by_name = || self.images.values().find(|image| image.tags.contains(&tag));
        let digits = name.strip_prefix("sha256:").unwrap_or(name);
        if let Some(image) = self.images.get(&format!("sha256:{digits}")) {
            return Some(image);
        }
        by_name().or_else(|| {
            let is_id = digits.len() >= 4 && digits.chars().all(|c| c.is_ascii_hexdigit());
            let mut starting = self
                .images
                .values()
                .filter(|image| is_id && image.id["sha256:".len()..].starts_with(digits));
            starting.next().filter(|_| starting.next().is_none())
        })
    }

    /// The image for a new container.
    pub(super) fn wanted_image(&self, name: &str) -> Result<&Image, EngineError> {
        self.image(name)
            .ok_or_else(|| EngineError::new(404, format!("No such image: {}", tagged(name))))
    }

    fn image_config(&self, name: &str) -> Value {
        let short = name.rsplit('/').next().unwrap_or_default();
        let short = short.split([':', '@']).next().unwrap_or_default();
        let volumes = self.image_volumes.get(short).map(|targets| {
            let targets = targets.iter().map(|target| (target.clone(), json!({})));
            Value::Object(targets.collect::<Map<_, _>>())
        });
        json!({
            "Hostname": "", "Domainname": "", "User": "",
            "AttachStdin": false, "AttachStdout": false, "AttachStderr": false,
            "Tty": false, "OpenStdin": false, "StdinOnce": false,
            "Env": [PATH], "Cmd": ["sh"], "Image": "", "Volumes": volumes,
            "WorkingDir": "", "Entrypoint": null, "OnBuild": null, "Labels": null,
        })
    }
}

/// Adds the default tag to a name: `nginx` → `nginx:latest`. Leaves IDs and digests unchanged.
pub(crate) fn tagged(name: &str) -> String {
    let name = name.strip_prefix("docker.io/").unwrap_or(name);
    let name = name.strip_prefix("library/").unwrap_or(name);
    let last = name.rsplit('/').next().unwrap_or_default();
    if last.contains([':', '@']) {
        name.to_owned()
    } else {
        format!("{name}:latest")
    }
}
