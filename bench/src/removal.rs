//! A whole run that removes 30 containers, compared with `docker rm -f` of as many and `curl` for the two requests to
//! Portainer.
//!
//! The run does more than its reference: it inspects the containers, looks for losses and writes a snapshot.

use std::fmt::Write as _;

use anyhow::{Result, anyhow, ensure};

use super::{
    place::{Place, text},
    timing::{Times, ratio, time},
};

const STACK: &str = "thirty";
const COUNT: usize = 30;
const ROUNDS: usize = 40;

pub fn measure() -> Result<()> {
    println!("a run that removes {COUNT} running containers, {ROUNDS} rounds in alternation:");
    let place = Place::new()?;
    let folder = place.root.path().join(STACK);
    let folder = text(&folder)?;
    std::fs::create_dir(folder)?;
    let compose = compose()?;
    std::fs::write(format!("{folder}/docker-compose.yml"), &compose)?;
    place
        .rehearsal
        .world(|world| world.add_stack(folder, [("docker-compose.yml", compose.as_str())]));
    let start = || {
        place.reset(STACK);
        let started = place
            .rehearsal
            .world(|world| world.start_by_hand(STACK, folder));
        started.map_err(|error| anyhow!(error))
    };
    // Creates the backup.
    start()?;
    time(&mut place.stacklift(&[STACK])?)?;

    let mut stacklift = place.stacklift(&[STACK])?;
    let mut curl = place.two_requests(STACK)?;
    let (mut of_stacklift, mut of_docker) = (Times::default(), Times::default());
    for round in 0..ROUNDS * 2 {
        start()?;
        if (round / 2 + round) % 2 == 0 {
            of_stacklift.add(time(&mut stacklift)?);
        } else {
            let ids = place.rehearsal.world(|world| {
                let containers = world.project(STACK).into_iter();
                containers.map(|one| one.id.clone()).collect::<Vec<_>>()
            });
            ensure!(ids.len() == COUNT, "{} containers are running", ids.len());
            let mut docker = place.command("docker");
            docker.args(["rm", "-f"]).args(ids);
            of_docker.add(time(&mut docker)? + time(&mut curl)?);
        }
    }
    println!("  stacklift: median {:.2?}", of_stacklift.median());
    println!(
        "  docker rm -f, then curl: median {:.2?}",
        of_docker.median()
    );
    println!(
        "  stacklift / docker rm -f and curl: {:.2}",
        ratio(of_stacklift.median(), of_docker.median())
    );
    place.reset(STACK);
    Ok(())
}

fn compose() -> Result<String> {
    let mut compose = "services:\n".to_owned();
    for number in 0..COUNT {
        writeln!(compose, "  s{number}:\n    image: busybox:1.36")?;
    }
    Ok(compose)
}
