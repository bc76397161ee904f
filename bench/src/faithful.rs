//! The faithful rewrite with its check: 10 MB compared with parsing, then larger, pathological and small files.

mod texts;

use std::{env, hint::black_box, process::Command};

use anyhow::{Result, anyhow};
use composefile::document::Document;
use granit_parser::Parser;
use stacklift::rewrite::faithful::{Context, EnvFiles, Faithful, Runs, env_files_needed, rewrite};

use super::timing::{Times, megabytes, peak, ratio, verdict};
use texts::{CHAIN, SHAPES, dense, plausible, repeated, small};

const DIR: &str = "/opt/stacks/web";
const ENV: &str = "TZ=Europe/Berlin\nPASSWORD='$ecret # of the stack'\nDB_PASSWORD=x\n";
const BYTES: usize = 10_000_000;
const ROUNDS: usize = 15;
/// The rounds for the largest and the pathological files.
const FEW_ROUNDS: usize = 5;

/// Rewrites a file of that size once, to measure peak memory.
pub fn once(bytes: &str) -> Result<()> {
    let text = plausible(bytes.parse()?);
    black_box(rewritten(&text)?);
    Ok(())
}

pub fn measure() -> Result<()> {
    large()?;
    by_size()?;
    pathological()?;
    two_kilobytes()
}

fn large() -> Result<()> {
    let text = plausible(BYTES);
    println!("the faithful rewrite of {} MB:", text.len() / 1_000_000);
    let [mut plain, mut documents, mut rewrites, mut asked] = [(); 4].map(|()| Times::default());
    for _ in 0..ROUNDS {
        plain.time(|| Ok(parse_events(&text)))?;
        documents.time(|| Ok(Document::parse(&text)?))?;
        rewrites.time(|| rewritten(&text))?;
        asked.time(|| Ok(needed(&text)))?;
    }
    for (what, times) in [
        ("parsing into events", &plain),
        ("parsing into a document", &documents),
        ("the rewrite, which also parses its result", &rewrites),
        ("the search for env files", &asked),
    ] {
        println!("  {what}: median {:.1?}", times.median());
    }
    let to_plain = |times: &Times| ratio(times.median(), plain.median());
    println!("  document / events: {:.2}", to_plain(&documents));
    verdict("rewrite / events", to_plain(&rewrites), 4.0);

    let text = dense(BYTES);
    let (mut plain, mut rewrites) = (Times::default(), Times::default());
    for _ in 0..FEW_ROUNDS {
        plain.time(|| Ok(parse_events(&text)))?;
        rewrites.time(|| rewritten(&text))?;
    }
    println!(
        "  the same with four times as many edits: {:.2}",
        ratio(rewrites.median(), plain.median())
    );
    Ok(())
}

fn by_size() -> Result<()> {
    println!("by size, medians of {FEW_ROUNDS} rounds:");
    let mut each = Vec::new();
    for bytes in [12_500_000, 25_000_000, 50_000_000] {
        let text = plausible(bytes);
        let mut times = Times::default();
        for _ in 0..FEW_ROUNDS {
            times.time(|| rewritten(&text))?;
        }
        let mut command = Command::new(env::current_exe()?);
        command.args(["--faithful-once", &bytes.to_string()]);
        let time = nanos_per_byte(&times, &text);
        let memory = megabytes(peak(&command)?) / millions(text.len());
        println!(
            "  {:.1} MB: {time:.0} ns and {memory:.1} bytes of memory per byte",
            millions(bytes)
        );
        each.push((time, memory));
    }
    let (first, last) = (each[0], each[2]);
    verdict("time per byte, 50 MB / 12.5 MB", last.0 / first.0, 1.2);
    verdict("memory per byte, 50 MB / 12.5 MB", last.1 / first.1, 1.2);
    Ok(())
}

/// Files that would expose quadratic run time.
fn pathological() -> Result<()> {
    println!("pathological files, time per byte of a file four times as large / of the small one:");
    for (name, template, count) in SHAPES {
        let (ratio, per_byte) = growth(template, count)?;
        let name = format!("{} {name}, {per_byte:.0} ns per byte", count * 4);
        verdict(&name, ratio, 1.5);
    }
    let (ratio, _) = growth(CHAIN, 250)?;
    println!("  1000 services in one chain of extends: {ratio:.2}");
    Ok(())
}

/// The growth of the time per byte when the file is four times as large, and that time in nanoseconds.
fn growth(template: &str, count: usize) -> Result<(f64, f64)> {
    let [small, large] = [count, count * 4].map(|count| repeated(template, count));
    let [mut of_small, mut of_large] = [(); 2].map(|()| Times::default());
    for _ in 0..FEW_ROUNDS {
        of_small.time(|| rewritten(&small))?;
        of_large.time(|| rewritten(&large))?;
    }
    let per_byte = nanos_per_byte(&of_large, &large);
    Ok((per_byte / nanos_per_byte(&of_small, &small), per_byte))
}

fn two_kilobytes() -> Result<()> {
    let text = small();
    let mut times = Times::default();
    for _ in 0..1000 {
        times.time(|| {
            black_box(needed(&text));
            rewritten(&text)
        })?;
    }
    let micros = times.median().as_secs_f64() * 1e6;
    let what = format!(
        "microseconds for {} bytes, including the search for env files",
        text.len()
    );
    verdict(&what, micros, 1000.0);
    Ok(())
}

fn parse_events(text: &str) -> usize {
    let options = granit_parser::options! { emit_comments: false, emit_anchor_events: true };
    Parser::new_from_str_with_options(text, options).count()
}

fn needed(text: &str) -> Vec<String> {
    env_files_needed(text, Some(ENV), &context(&files()))
}

fn rewritten(text: &str) -> Result<Faithful> {
    rewrite(text, Some(ENV), &context(&files()), &Runs::default())
        .map_err(|refusals| anyhow!("refused: {:?}", refusals.first()))
}

fn files() -> EnvFiles {
    let app = "APP_KEY='a b'\nAPP_URL=https://$TZ.example.org\nDB_PASSWORD=y\n";
    EnvFiles::from([(format!("{DIR}/app.env"), Some(app.to_owned()))])
}

fn context(env_files: &EnvFiles) -> Context<'_> {
    Context {
        stack_dir: DIR,
        file: "compose.yml",
        env_file: ".env",
        home: Some("/home/me"),
        shell: &|name| (name == "HOME").then(|| "/home/me".to_owned()),
        project: None,
        overrides: &[],
        env_files,
    }
}

fn nanos_per_byte(times: &Times, text: &str) -> f64 {
    times.median().as_secs_f64() * 1e3 / millions(text.len())
}

#[expect(clippy::cast_precision_loss, reason = "texts are far below 2^52 bytes")]
fn millions(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
