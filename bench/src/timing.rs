//! Run times and peak memory.

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

/// Measures each of the named ways once a round, each round in another order. Prints and returns their medians.
pub fn medians<const N: usize>(
    names: [&str; N],
    rounds: usize,
    mut measure: impl FnMut(usize) -> Result<Duration>,
) -> Result<[Duration; N]> {
    let mut times = [const { Vec::new() }; N];
    for turn in 0..rounds * N {
        let way = (turn / N + turn) % N;
        times[way].push(measure(way)?);
    }
    let medians = times.map(|mut times| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    });
    for (name, median) in names.into_iter().zip(medians) {
        println!("  {name}: median {median:.2?}");
    }
    Ok(medians)
}

/// Runs a command, which must succeed.
pub fn time(command: &mut Command) -> Result<Duration> {
    command.stdin(Stdio::null());
    let started = Instant::now();
    let output = command.output()?;
    let elapsed = started.elapsed();
    ensure!(
        output.status.success(),
        "{command:?} failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(elapsed)
}

/// The peak memory of a command in KiB.
pub fn peak(command: &Command) -> Result<u64> {
    let output = tempfile::NamedTempFile::new()?;
    let mut timed = Command::new("/usr/bin/time");
    timed.args(["-f", "%M", "-o"]).arg(output.path());
    timed.arg(command.get_program()).args(command.get_args());
    timed.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    time(&mut timed)?;
    let output = fs::read_to_string(output.path())?;
    output
        .trim()
        .parse()
        .context("unexpected output of /usr/bin/time: expected a number")
}

/// Prints a number, its limit and whether it is within the limit.
pub fn verdict(what: &str, number: f64, limit: f64) {
    let result = if number <= limit { "reached" } else { "MISSED" };
    println!("  {what}: {number:.2} (at most {limit}: {result})");
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "memory is far below 2^52 KiB")]
pub fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}
