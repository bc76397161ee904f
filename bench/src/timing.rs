//! Run times and peak memory.

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

/// The times of repeated measurements.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn median(&self) -> Duration {
        let mut times = self.0.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

/// Runs a command, which must succeed.
pub fn time(command: &mut Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let output = command.stderr(Stdio::piped()).spawn()?.wait_with_output()?;
    let elapsed = started.elapsed();
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
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
    timed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    time(&mut timed)?;
    let output = fs::read_to_string(output.path())?;
    output
        .trim()
        .parse()
        .context("unexpected output of /usr/bin/time: expected a number")
}

/// Prints a ratio, its limit and whether it is within the limit.
pub fn verdict(what: &str, ratio: f64, limit: f64) {
    let result = if ratio <= limit { "reached" } else { "MISSED" };
    println!("  {what}: {ratio:.2} (at most {limit}: {result})");
}

pub fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "memory is far below 2^52 KiB")]
pub fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}
