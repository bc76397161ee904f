//! A new world, and what a test adds to it.

use std::collections::BTreeMap;

use super::{clock::clock, entities::Endpoint, state::World};

/// The `VOLUME`s of well-known images.
const IMAGE_VOLUMES: &str = "influxdb:/var/lib/influxdb mariadb:/var/lib/mysql mongo:/data/configdb mongo:/data/db \
                             mysql:/var/lib/mysql nextcloud:/var/www/html postgres:/var/lib/postgresql/data \
                             rabbitmq:/var/lib/rabbitmq redis:/data registry:/var/lib/registry valkey:/data \
                             wordpress:/var/www/html";

impl World {
    /// An empty Portainer with one environment, `local` (ID 1), which is this host's engine.
    ///
    /// `secret` is the API key of Portainer's administrator.
    pub fn new(secret: &str) -> Self {
        let engine = "RHRS:4L2K:7QYV:ZJ5D:WXNA:3BTC:EMUF:6HGO:PI2S:LOCA:LENG:INE1";
        let local = Endpoint::new("local", engine);
        let mut image_volumes = BTreeMap::<String, Vec<String>>::new();
        let volumes = IMAGE_VOLUMES.split(' ');
        for (image, target) in volumes.filter_map(|volume| volume.split_once(':')) {
            let targets = image_volumes.entry(image.to_owned()).or_default();
            targets.push(target.to_owned());
        }
        let mut world = Self {
            tool: "docker".to_owned(),
            endpoints: BTreeMap::from([(1, local)]),
            secret: secret.to_owned(),
            engine: engine.to_owned(),
            engine_version: "20.10.24".to_owned(),
            image_volumes,
            deploy_polls: 2,
            home: "/home/operator".to_owned(),
            now: clock(),
            next_record: 1,
            next_port: 32_768,
            ..Self::default()
        };
        world.add_predefined_networks();
        world
    }

    /// Adds an environment with its own engine and returns the engine's ID.
    pub fn add_endpoint(&mut self, id: u64, name: &str) -> String {
        let engine = format!("REMOTE-ENGINE-{id}");
        self.endpoints.insert(id, Endpoint::new(name, &engine));
        engine
    }

    /// Adds a directory and files in it. Starts nothing.
    pub fn add_stack<'f>(
        &mut self,
        folder: &str,
        files: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) {
        self.add_directory(folder);
        for (name, text) in files {
            self.add_file(&format!("{folder}/{name}"), text);
        }
    }

    /// Adds a file without contents, unless the path exists.
    pub fn add_empty_file(&mut self, path: &str) {
        if self.read_host(path).is_none() {
            self.add_file(path, "");
        }
    }

    /// Starts Portainer's own container and returns its ID. `top` shows its Compose processes (M21).
    ///
    /// # Panics
    /// If the name is taken.
    pub fn add_portainer(&mut self) -> String {
        self.add_container("portainer", "portainer/portainer-ce:2.23.0")
    }

    /// Starts a container without a project and returns its ID.
    ///
    /// # Panics
    /// If the name is taken.
    pub fn add_container(&mut self, name: &str, image: &str) -> String {
        self.add_image(image);
        let id = self
            .create_container(name, &serde_json::json!({ "Image": image }))
            .expect("the name is free and the image exists");
        self.start_container(&id)
            .expect("the container has no ports or networks that could conflict");
        id
    }
}
