//! The six example stacks.

use std::{fs, io, path::Path};

use super::world::{Change, World};

/// One example stack: its files by their path in the stack's directory.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The stack's name.
    pub name: &'static str,
    /// Path and text.
    pub files: &'static [(&'static str, &'static str)],
}

macro_rules! files {
    ($stack:literal, $($file:literal),+) => {
        &[$(($file, include_str!(concat!("../examples/", $stack, "/", $file)))),+]
    };
}

/// The example stacks, lowest impact first.
pub fn examples() -> [Example; 6] {
    [
        Example {
            name: "proxy-chain",
            files: files!("proxy-chain", "docker-compose.yml", "nginx.conf"),
        },
        Example {
            name: "imgproxy",
            files: files!("imgproxy", "docker-compose.yml", ".env"),
        },
        Example {
            name: "minio",
            files: files!("minio", "docker-compose.yml", ".env"),
        },
        Example {
            name: "mongo",
            files: files!(
                "mongo",
                "docker-compose.yml",
                ".env",
                "mongo-init/01-users.js"
            ),
        },
        Example {
            name: "books-db",
            files: files!("books-db", "docker-compose.yml", ".env"),
        },
        Example {
            name: "elasticsearch",
            files: files!(
                "elasticsearch",
                "docker-compose.yml",
                ".env",
                "elasticsearch.yml"
            ),
        },
    ]
}

/// Writes the example stacks below `root`, a directory each.
pub fn write(root: &Path) -> io::Result<()> {
    for example in examples() {
        for (name, text) in example.files {
            let path = root.join(example.name).join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, text)?;
        }
    }
    Ok(())
}

impl World {
    /// All example stacks as if started by hand from below `root`, and what must stay as it is: a
    /// record of another endpoint and a container of no stack.
    ///
    /// # Errors
    /// What compose would say about an example that it cannot start.
    pub fn with_examples(secret: &str, root: &str) -> Result<Self, String> {
        let mut world = Self::new(secret);
        let hour = 3_600_000;
        world.now -= 50 * hour;
        for example in examples() {
            let folder = format!("{}/{}", root.trim_end_matches('/'), example.name);
            world.add_stack(&folder, example.files.iter().copied());
            world
                .start_by_hand(example.name, &folder)
                .map_err(|what| format!("{}: {what}", example.name))?;
            world.now += hour;
        }
        world.add_container("watchtower", "containrrr/watchtower:1.7.1");
        world.add_endpoint(2, "edge");
        world.add_record(
            "mail",
            2,
            "services:\n  mail:\n    image: axllent/mailpit:v1.21\n",
        );
        world.now += 44 * hour;
        Ok(world)
    }

    /// The stack `everything` in `folder`, started by hand: two networks with aliases and a fixed address,
    /// every kind of mount, a container in another's network, a job that has exited and a container
    /// that was stopped.
    ///
    /// # Errors
    /// What compose would say that cannot start it.
    pub fn add_everything(&mut self, folder: &str) -> Result<(), String> {
        let files = [
            ("docker-compose.yml", include_str!("seed/everything.yml")),
            (".env", "TOKEN=hidden\n"),
            ("www/index.html", "<p>everything</p>\n"),
        ];
        self.add_stack(folder, files);
        self.exits.insert("everything/job".to_owned(), 0);
        self.start_by_hand("everything", folder)?;
        if let Some(idle) = self.container("everything-idle-1") {
            let id = idle.id.clone();
            self.stop_container(&id, 137)
                .map_err(|problem| problem.message)?;
        }
        let front = self.container("everything-front-1");
        if let Some(id) = front.map(|front| front.id.clone()) {
            let paths = [("/etc", 0), ("/etc/motd", 1), ("/usr/share/nginx/old", 2)];
            let changes = paths.map(|(path, kind)| Change {
                path: path.to_owned(),
                kind,
            });
            if let Some(front) = self.containers.get_mut(&id) {
                front.changes = changes.to_vec();
            }
        }
        Ok(())
    }
}
