//! Example stacks.

use std::{fs, io, path::Path};

use super::world::World;

/// An example stack: its name, and the path in its directory and the content of each file.
pub type Example = (&'static str, &'static [(&'static str, &'static str)]);

macro_rules! example {
    ($stack:literal, $($file:literal),+) => {
        ($stack, &[$(($file, include_str!(concat!("../examples/", $stack, "/", $file)))),+])
    };
}

/// The example stacks, ordered by how much a literal rewrite would lose (C01).
pub const EXAMPLES: [Example; 6] = [
    example!("proxy-chain", "docker-compose.yml", "nginx.conf"),
    example!("imgproxy", "docker-compose.yml", ".env"),
    example!("minio", "docker-compose.yml", ".env"),
    example!(
        "mongo",
        "docker-compose.yml",
        ".env",
        "mongo-init/01-users.js"
    ),
    example!("books-db", "docker-compose.yml", ".env"),
    example!(
        "elasticsearch",
        "docker-compose.yml",
        ".env",
        "elasticsearch.yml"
    ),
];

/// Their names.
pub fn names() -> [&'static str; 6] {
    EXAMPLES.map(|(name, _)| name)
}

/// Writes each example stack to its own directory below `root`.
///
/// # Errors
/// I/O errors.
pub fn write(root: &Path) -> io::Result<()> {
    for (stack, files) in EXAMPLES {
        for (name, text) in files {
            let path = root.join(stack).join(name);
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
        for (stack, files) in EXAMPLES {
            let folder = format!("{}/{stack}", root.trim_end_matches('/'));
            world.add_stack(&folder, files.iter().copied());
            world
                .start_by_hand(stack, &folder, &[])
                .map_err(|error| format!("{stack}: {error}"))?;
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
