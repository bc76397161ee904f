//! The images on the host.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Image, Problem, World, entities::fingerprint};

/// What most images set.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl World {
    /// Says that an image is there, as if pulled; gives its id.
    pub fn add_image(&mut self, name: &str) -> String {
        if let Some(image) = self.image(name) {
            return image.id.clone();
        }
        self.new_image(name, 0)
    }

    /// Gives the name to a newer image, as a pull does: the old one stays without it. Gives the new id.
    pub fn renew_image(&mut self, name: &str) -> String {
        let tag = tagged(name);
        let before = self.images.len() + 1;
        for image in self.images.values_mut() {
            image.tags.remove(&tag);
        }
        self.new_image(name, before)
    }

    /// Makes an image vanish, with its id and all its names; containers made from it remain.
    pub fn remove_image(&mut self, name: &str) -> Option<Image> {
        let id = self.image(name)?.id.clone();
        self.images.remove(&id)
    }

    /// An image by its name, its id or the start of its id.
    pub fn image(&self, name: &str) -> Option<&Image> {
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

    /// The image that a container is to be made from.
    pub(super) fn wanted_image(&self, name: &str) -> Result<&Image, Problem> {
        self.image(name)
            .ok_or_else(|| Problem::new(404, format!("No such image: {}", tagged(name))))
    }

    fn new_image(&mut self, name: &str, renewed: usize) -> String {
        let seed = match renewed {
            0 => format!("image {name}"),
            count => format!("image {name} renewed {count}"),
        };
        let id = format!("sha256:{}", fingerprint(&seed));
        let image = Image {
            id: id.clone(),
            tags: BTreeSet::from([tagged(name)]),
            config: self.image_config(name),
            created: self.seconds(),
        };
        self.images.insert(id.clone(), image);
        id
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

/// A name with its tag: `nginx` is `nginx:latest`. Ids and digests stay as they are.
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
