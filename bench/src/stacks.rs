//! A list of 30 stacks, half of them in Portainer.

use std::fs;

use anyhow::{Result, anyhow};

use super::{
    place::{Place, text},
    timing::{medians, milliseconds, time, verdict},
};

const STACKS: usize = 30;
const ROUNDS: usize = 10;
/// The most milliseconds that a list may take.
const LIMIT: f64 = 2000.0;

pub fn measure() -> Result<()> {
    println!("a list of {STACKS} stacks, {ROUNDS} rounds:");
    let place = Place::new()?;
    let examples: Vec<_> = fs::read_dir(place.root.path())?.collect::<Result<_, _>>()?;
    let mut containers = 0;
    for number in 0..STACKS - examples.len() {
        containers += start(&place, number)?;
    }
    println!("  {containers} containers besides those of the examples");
    let mut list = place.stacklift(&["list"])?;
    let [median] = medians(["stacklift list"], ROUNDS, |_| time(&mut list))?;
    verdict("milliseconds of a list", milliseconds(median), LIMIT);
    Ok(())
}

/// Starts a stack of a web server, a database and a cache, by hand or in Portainer. Returns the number of its containers.
fn start(place: &Place, number: usize) -> Result<usize> {
    let name = format!("app-{number:03}");
    let dir = place.root.path().join(&name);
    let port = 20_000 + number;
    let compose = format!(
        "services:\n  web:\n    image: nginx:1.27\n    env_file: .env\n    depends_on: [db, cache]\n    ports: ['{port}:80']\n    \
         volumes: [./html:/usr/share/nginx/html:ro]\n    restart: unless-stopped\n  db:\n    image: postgres:16\n    \
         environment:\n      POSTGRES_PASSWORD: ${{PASSWORD}}\n    volumes: [data:/var/lib/postgresql/data]\n    \
         restart: unless-stopped\n  cache:\n    image: redis:7\n    volumes: [/data]\n    restart: unless-stopped\n\
         volumes:\n  data:\n"
    );
    let env = format!("PASSWORD=secret-{number}\nTZ=Europe/Berlin\n");
    fs::create_dir_all(dir.join("html"))?;
    fs::write(dir.join("docker-compose.yml"), &compose)?;
    fs::write(dir.join(".env"), &env)?;
    let folder = text(&dir)?;
    place.rehearsal.world(|world| {
        let files = [
            ("docker-compose.yml", compose.as_str()),
            (".env", env.as_str()),
        ];
        world.add_stack(folder, files);
        for image in ["nginx:1.27", "postgres:16", "redis:7"] {
            world.add_image(image);
        }
        world
            .start_by_hand(&name, folder, &[])
            .map_err(|error| anyhow!(error))?;
        if number.is_multiple_of(2) {
            world.add_record(&name, 1, &compose);
        }
        Ok(world.project(&name).len())
    })
}
