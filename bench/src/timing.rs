//! Times and peaks of processes.

use std::{
    fs,
    hint::black_box,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

/// Times of one thing that is measured.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Adds what one call takes; what it returns is gone before the next.
    pub fn time<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<()> {
        let started = Instant::now();
        let result = work();
        self.add(started.elapsed());
        black_box(result?);
        Ok(())
    }

    pub fn median(&self) -> Duration {
        let mut times = self.0.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

/// Runs a command to its end, which must be a good one.
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

/// The most memory that a run of a command takes, in KiB.
pub fn peak(command: &Command) -> Result<u64> {
    if Path::new("/usr/bin/time").exists() {
        peak_by_time(command)
    } else {
        peak_by_looking(command)
    }
}

fn peak_by_time(command: &Command) -> Result<u64> {
    let said = tempfile::NamedTempFile::new()?;
    let mut timed = Command::new("/usr/bin/time");
    timed.args(["-f", "%M", "-o"]).arg(said.path());
    timed.arg(command.get_program()).args(command.get_args());
    copy_environment(command, &mut timed);
    time(&mut timed)?;
    let said = fs::read_to_string(said.path())?;
    said.trim().parse().context("time says no number")
}

/// Looks at the high-water mark as often as it can; the very end may be missed.
fn peak_by_looking(command: &Command) -> Result<u64> {
    let mut looked_at = Command::new(command.get_program());
    looked_at.args(command.get_args());
    copy_environment(command, &mut looked_at);
    looked_at
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = looked_at.spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let mark = mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(mark.unwrap_or(0));
        thread::sleep(Duration::from_micros(100));
    }
    Ok(peak)
}

fn copy_environment(from: &Command, to: &mut Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
}

/// `0.42 (at most 0.6)`, and whether that is reached.
pub fn verdict(what: &str, ratio: f64, most: f64) {
    let reached = if ratio <= most { "reached" } else { "MISSED" };
    println!("  {what}: {ratio:.2} (at most {most}: {reached})");
}

pub fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "memory is far below 2^52 KiB")]
pub fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}
