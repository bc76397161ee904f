//! Removing thirty containers, against `docker rm -f` of as many.

use std::{env, fmt::Write as _, process::Command};

use anyhow::{Context, Result, ensure};
use stacklift::{
    engine::{Choice, Engine, Options, Surroundings},
    trace::Trace,
};

use super::{
    place::{Place, text},
    timing::{Times, ratio, time, verdict},
};

const COUNT: usize = 30;
const PROJECT: &str = "stacklift-bench";
const LABEL: &str = "com.docker.compose.project=stacklift-bench";

/// What the program does to remove a project: lists it and removes what it finds.
pub fn remove(socket: &str, project: &str) -> Result<()> {
    let surroundings = Surroundings {
        docker_host: Some(socket.to_owned()),
        ..Surroundings::default()
    };
    let engine = Engine::open(Options::new(
        "docker",
        Choice::Api,
        surroundings,
        Trace::off(),
    ));
    let containers = engine.list(project)?;
    ensure!(containers.len() == COUNT, "{} containers", containers.len());
    engine.remove(&containers)
}

pub fn measure() -> Result<()> {
    match env::var("STACKLIFT_BENCH_ENGINE") {
        Ok(host) if !host.is_empty() => on_a_real_engine(&host)?,
        _ => println!(
            "removing {COUNT} containers: no real engine answers, so only the served one is measured"
        ),
    }
    on_the_served_engine()
}

fn on_the_served_engine() -> Result<()> {
    let place = Place::new()?;
    let mut compose = "services:\n".to_owned();
    for number in 0..COUNT {
        writeln!(compose, "  s{number}:\n    image: busybox:1.36")?;
    }
    let folder = place.root.path().join(PROJECT);
    let folder = text(&folder)?;
    place
        .rehearsal
        .world(|world| world.add_stack(folder, [("docker-compose.yml", compose.as_str())]));
    let start = || {
        place.rehearsal.forget_requests();
        let started = place
            .rehearsal
            .world(|world| world.start_by_hand(PROJECT, folder));
        started.map_err(|why| anyhow::anyhow!(why))
    };
    let host = format!("unix://{}", place.rehearsal.socket().display());
    compare("the served engine", &host, 60, start)
}

fn on_a_real_engine(host: &str) -> Result<()> {
    let image = env::var("STACKLIFT_BENCH_IMAGE").context("STACKLIFT_BENCH_IMAGE is not set")?;
    let start = || {
        for _ in 0..COUNT {
            let mut run = Command::new("docker");
            run.env("DOCKER_HOST", host);
            run.args([
                "run", "-d", "--init", "--label", LABEL, &image, "sleep", "1000",
            ]);
            time(&mut run)?;
        }
        Ok(())
    };
    compare("a real engine", host, 5, start)
}

fn compare(engine: &str, host: &str, rounds: usize, start: impl Fn() -> Result<()>) -> Result<()> {
    println!("removing {COUNT} running containers of {engine}, {rounds} rounds in turn:");
    let mut ours = Command::new(env::current_exe()?);
    ours.args(["--remove", host, PROJECT]);
    let (mut of_ours, mut of_docker) = (Times::default(), Times::default());
    for round in 0..rounds * 2 {
        start()?;
        if (round / 2 + round) % 2 == 0 {
            of_ours.add(time(&mut ours)?);
        } else {
            let mut docker = Command::new("docker");
            docker
                .env("DOCKER_HOST", host)
                .args(["rm", "-f"])
                .args(ids(host)?);
            of_docker.add(time(&mut docker)?);
        }
    }
    println!(
        "  a process that lists and removes as stacklift does: median {:.2?}",
        of_ours.median()
    );
    println!("  docker rm -f: median {:.2?}", of_docker.median());
    verdict(
        "stacklift / docker rm -f",
        ratio(of_ours.median(), of_docker.median()),
        0.5,
    );
    Ok(())
}

fn ids(host: &str) -> Result<Vec<String>> {
    let listed = Command::new("docker")
        .env("DOCKER_HOST", host)
        .args(["ps", "-aq", "--no-trunc", "--filter"])
        .arg(format!("label={LABEL}"))
        .output()?;
    let ids: Vec<_> = String::from_utf8(listed.stdout)?
        .lines()
        .map(str::to_owned)
        .collect();
    ensure!(ids.len() == COUNT, "{} containers", ids.len());
    Ok(ids)
}
