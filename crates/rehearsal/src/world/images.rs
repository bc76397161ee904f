//! The images on the host.

use serde_json::{Value, json};

use super::{entities::fingerprint, settings::text, state::World, values::texts};

/// The environment of every simulated image.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl World {
    /// Adds an image to the host, as if it was pulled, and returns its ID.
    pub fn add_image(&mut self, name: &str) -> String {
        if let Some(image) = self.image(name) {
            return text(image, "Id").to_owned();
        }
        let id = format!("sha256:{}", fingerprint(&format!("image {name}")));
        let last = name.rsplit('/').next().unwrap_or_default();
        let short = last.split([':', '@']).next().unwrap_or_default();
        let volumes = self.image_volumes.get(short).map(|targets| {
            let entries = targets.iter().map(|target| (target.clone(), json!({})));
            entries.collect::<Value>()
        });
        let image = json!({
            "Id": id,
            "RepoTags": [tagged(name)],
            "Config": { "Env": [PATH], "Cmd": ["sh"], "Entrypoint": null, "Volumes": volumes, "Labels": null },
        });
        self.images.insert(id.clone(), image);
        id
    }

    /// An image by name or ID.
    pub(crate) fn image(&self, name: &str) -> Option<&Value> {
        let tag = tagged(name);
        let mut all = self.images.values();
        all.find(|image| image["Id"] == name || texts(&image["RepoTags"]).contains(&tag))
    }
}

/// Adds the default tag to a name: `nginx` → `nginx:latest`. Leaves IDs and digests unchanged.
pub(crate) fn tagged(name: &str) -> String {
    let path = name.strip_prefix("docker.io/").unwrap_or(name);
    let short = path.strip_prefix("library/").unwrap_or(path);
    let last = short.rsplit('/').next().unwrap_or_default();
    if last.contains([':', '@']) {
        short.to_owned()
    } else {
        format!("{short}:latest")
    }
}
