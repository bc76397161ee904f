//! A plan with the Compose program of the rehearsal, compared with the requests that nobody can do without: two to Portainer by one
//! `curl` process, and a listing and an inspection of the containers by `docker`.

use std::fs;

use anyhow::{Result, anyhow};

use super::{
    place::{Place, text},
    timing::{medians, milliseconds, ratio, time, verdict},
};

const STACK: &str = "books-db";
const ROUNDS: usize = 40;
/// What the stack mounts, relative to its directory.
const MOUNTED: [&str; 4] = ["initdb", "config", "../shared/books", "../shared/backups"];
/// The most milliseconds that a plan may take.
const LIMIT: f64 = 150.0;

pub fn measure() -> Result<()> {
    println!("a plan of {STACK}, {ROUNDS} rounds in alternation:");
    let place = Place::new()?;
    place.reset(STACK);
    let folder = place.root.path().join(STACK);
    for mounted in MOUNTED {
        fs::create_dir_all(folder.join(mounted))?;
    }
    let started = place.rehearsal.world(|world| {
        world
            .start_by_hand(STACK, text(&folder)?, &[])
            .map_err(|error| anyhow!(error))
    });
    started?;
    let ids = place.rehearsal.world(|world| {
        let containers = world.project(STACK).into_iter();
        containers.map(|one| one.id.clone()).collect::<Vec<_>>()
    });

    let mut plan = place.stacklift(&["plan", STACK])?;
    let url = place.rehearsal.base_url();
    let mut curl = place.curl();
    curl.arg(format!("{url}/api/stacks"));
    curl.args(["--next", "-sSkf", "-o", "/dev/null"]);
    curl.arg(format!("{url}/api/system/status"));
    let mut list = place.command("docker");
    list.args(["ps", "-a"]);
    let mut inspect = place.command("docker");
    inspect.arg("inspect").args(ids);

    let [of_plan, of_others] = medians(["stacklift plan", "curl and docker"], ROUNDS, |way| {
        if way == 0 {
            return time(&mut plan);
        }
        Ok(time(&mut curl)? + time(&mut list)? + time(&mut inspect)?)
    })?;
    println!(
        "  stacklift plan / curl and docker: {:.2}",
        ratio(of_plan, of_others)
    );
    verdict("milliseconds of a plan", milliseconds(of_plan), LIMIT);
    Ok(())
}
