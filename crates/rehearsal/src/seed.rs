//! Example stacks.

use std::{fs, io, path::Path};

use super::world::World;

/// An example stack.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The name of the stack.
    pub name: &'static str,
    /// The path in the stack's directory and the content of each file.
    pub files: &'static [(&'static str, &'static str)],
}

macro_rules! files {
    ($stack:literal, $($file:literal),+) => {
        &[$(($file, include_str!(concat!("../examples/", $stack, "/", $file)))),+]
    };
}

/// The six example stacks, ordered by how much a literal rewrite would lose.
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

/// Writes each example stack to its own directory below `root`.
///
/// # Errors
/// I/O errors.
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
    /// All example stacks, started by hand from directories below `root`.
    ///
    /// Also contains what a migration must not touch: a stack in another environment and a container without a project.
    ///
    /// # Errors
    /// The message that Compose prints if it cannot start an example.
    pub fn with_examples(secret: &str, root: &str) -> Result<Self, String> {
        let mut world = Self::new(secret);
        let hour = 3_600_000;
        world.now -= 50 * hour;
        for example in examples() {
            let folder = format!("{}/{}", root.trim_end_matches('/'), example.name);
            world.add_stack(&folder, example.files.iter().copied());
            world
                .start_by_hand(example.name, &folder)
                .map_err(|error| format!("{}: {error}", example.name))?;
            world.now += hour;
        }
        world.add_portainer();
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
}
