//! Run times and peak memory.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
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
    if Path::new("/usr/bin/time").exists() {
        peak_by_time(command)
    } else {
        peak_by_polling(command)
    }
}

fn peak_by_time(command: &Command) -> Result<u64> {
    let output = tempfile::NamedTempFile::new()?;
    let mut timed = Command::new("/usr/bin/time");
    timed.args(["-f", "%M", "-o"]).arg(output.path());
    timed.arg(command.get_program()).args(command.get_args());
    copy_environment(command, &mut timed);
    time(&mut timed)?;
    let output = fs::read_to_string(output.path())?;
    output
        .trim()
        .parse()
        .context("unexpected output of /usr/bin/time: expected a number")
}

/// Polls the high-water mark of the process. May miss its very end.
fn peak_by_polling(command: &Command) -> Result<u64> {
    let mut polled = Command::new(command.get_program());
    polled.args(command.get_args());
    copy_environment(command, &mut polled);
    polled
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = polled.spawn()?;
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
