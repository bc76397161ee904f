//! The literal rewrite of 10 MB, and its checks compared with parsing.

use std::{env, fmt::Write as _, hint::black_box, process::Command, time::Instant};

use anyhow::{Context as _, Result, ensure};
use composefile::{document::Document, reader::{Context, EnvFiles}};
use stacklift::rewrite::{damage::{self, Verdict}, literal, loss};

use super::timing::{Times, ratio, verdict};

const DIR: &str = "/opt/stacks/web";
const BYTES: usize = 10_000_000;
const ROUNDS: usize = 15;

/// Prints the nanoseconds of the first rewrite in a process.
pub fn once() -> Result<()> {
    let text = large()?;
    let started = Instant::now();
    let rewritten = literal::rewrite(&text, DIR);
    let elapsed = started.elapsed();
    black_box(rewritten);
    println!("{}", elapsed.as_nanos());
    Ok(())
}

pub fn measure() -> Result<()> {
    let text = large()?;
    println!("the literal rewrite of {} MB:", text.len() / 1_000_000);
    let mut rewrites = Times::default();
    for _ in 0..ROUNDS * 4 {
        let started = Instant::now();
        black_box(literal::rewrite(black_box(&text), DIR));
        rewrites.add(started.elapsed());
    }
    let mut first = Times::default();
    for _ in 0..ROUNDS {
        let output = Command::new(env::current_exe()?)
            .arg("--rewrite-once")
            .output()?;
        let nanos = String::from_utf8(output.stdout)?;
        first.add(std::time::Duration::from_nanos(nanos.trim().parse()?));
    }
    #[expect(clippy::cast_precision_loss, reason = "ten million is far below 2^52")]
    let bytes = text.len() as f64;
    let speed = |times: &Times| bytes / times.median().as_secs_f64() / 1e9;
    let reached = if speed(&rewrites) >= 1.0 {
        "reached"
    } else {
        "MISSED"
    };
    println!("  GB/s: {:.2} (at least 1: {reached})", speed(&rewrites));
    println!(
        "  GB/s of the first rewrite in a process, which requests memory from the system: {:.2}",
        speed(&first)
    );

    let rewritten = literal::rewrite(&text, DIR);
    let (mut parses, mut checks) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        black_box(Document::parse(&text).context("YAML")?);
        black_box(Document::parse(&rewritten).context("YAML")?);
        parses.add(started.elapsed());
        let started = Instant::now();
        let verdict = damage::judge_document(&Document::parse(&text)?, &rewritten, DIR);
        checks.add(started.elapsed());
        ensure!(verdict == Verdict::Undamaged, "{verdict:?}");
    }
    println!("  parsing both texts: median {:.0?}", parses.median());
    println!(
        "  the check for damage (B02), which parses both: median {:.0?}",
        checks.median()
    );
    verdict(
        "check / parsing",
        ratio(checks.median(), parses.median()),
        3.0,
    );
    losses(&text)
}

/// The search for losses (B01) in the text and in its first half.
fn losses(text: &str) -> Result<()> {
    let env = "TZ=UTC\nPASSWORD=x\n";
    let context = Context {
        stack_dir: DIR,
        file: "docker-compose.yml",
        env_file: ".env",
        home: Some("/root"),
        shell: &|_| None,
        project: None,
        overrides: &[],
        env_files: &EnvFiles::new(),
    };
    let half = &text[..text[..text.len() / 2].rfind("  web").context("a service")?];
    let mut medians = Vec::new();
    for text in [half, text] {
        let document = Document::parse(text).context("YAML")?;
        let (mut parses, mut times) = (Times::default(), Times::default());
        for _ in 0..ROUNDS {
            let started = Instant::now();
            black_box(Document::parse(text).context("YAML")?);
            parses.add(started.elapsed());
            let started = Instant::now();
            black_box(loss::losses(&document, Some(env), &context, "web"));
            times.add(started.elapsed());
        }
        println!(
            "  the losses (B01) of {} MB: median {:.0?}, {:.2} times parsing",
            text.len() / 1_000_000,
            times.median(),
            ratio(times.median(), parses.median())
        );
        medians.push(times.median());
    }
    verdict(
        "losses of the text / losses of its first half",
        ratio(medians[1], medians[0]),
        2.5,
    );
    Ok(())
}

/// A large Compose file with ordinary services.
fn large() -> Result<String> {
    let mut text = "# ./ at the top\nservices:\n".to_owned();
    let mut number = 0;
    while text.len() < BYTES {
        number += 1;
        writeln!(
            text,
            "  web{number}:
    image: nginx:1.27-alpine # a comment
    restart: unless-stopped
    env_file: .env
    environment:
      - TZ=${{TZ:-Europe/Berlin}}
      - PASSWORD=${{PASSWORD:?set it in .env}}
    volumes:
      - ./data{number}:/var/lib/data
      - ../shared/certs:/certs:ro
      - type: bind
        source: ./nginx.conf
        target: /etc/nginx/nginx.conf
    ports: [\"8080:80\", '127.0.0.1:8443:443']
    labels:
      traefik.enable: \"true\"
      traefik.http.routers.web{number}.rule: Host(`web{number}.example.org`)
    depends_on:
      - db{number}
  db{number}:
    image: postgres:16-alpine
    env_file:
      - .env
    healthcheck:
      test: [\"CMD-SHELL\", \"pg_isready -U $$POSTGRES_USER\"]
      interval: 10s
"
        )?;
    }
    Ok(text)
}
