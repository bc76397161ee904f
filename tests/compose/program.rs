//! The Compose program of a test host: `docker-compose` of the rehearsal, as an executable.

use std::{collections::BTreeMap, env, fs, path::Path, process::ExitCode};

use rehearsal::{COMPOSE_VERSION, ComposeFiles, config_of_files};

/// The exit status of Compose for a text that it rejects.
const REJECTED: u8 = 15;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.iter().any(|word| word == "version") {
        println!("{COMPOSE_VERSION}");
        return ExitCode::SUCCESS;
    }
    match config(&words) {
        Ok(config) => {
            println!("{config}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(REJECTED)
        }
    }
}

/// What `[-p PROJECT] [-f FILE]… [--env-file FILE]… config --format json` prints.
fn config(words: &[String]) -> Result<String, String> {
    let of = |flag: &str| -> Vec<&str> {
        let pairs = words.windows(2).filter(|pair| pair[0] == flag);
        pairs.map(|pair| pair[1].as_str()).collect()
    };
    let current = env::current_dir().map_err(|error| error.to_string())?;
    let absolute = |name: &str| current.join(name).display().to_string();
    let files: Vec<String> = of("-f").into_iter().map(absolute).collect();
    let env_files: Vec<String> = of("--env-file").into_iter().map(absolute).collect();
    // As Compose, unless it is told another one.
    let of_first = files.first().map(Path::new).and_then(Path::parent);
    let folder = match of("--project-directory").first() {
        Some(folder) => current.join(folder).components().collect(),
        None => of_first.unwrap_or(&current).to_owned(),
    };
    let mut shell: BTreeMap<String, String> = env::vars().collect();
    if let Some(profile) = of("--profile").first() {
        shell.insert("COMPOSE_PROFILES".to_owned(), (*profile).to_owned());
    }
    let config = config_of_files(&ComposeFiles {
        project: of("-p").first().copied(),
        folder: folder.to_str().ok_or("not UTF-8")?,
        files: &files,
        env_files: &env_files,
        home: &env::var("HOME").unwrap_or_default(),
        shell: &shell,
        interpolates: !words.iter().any(|word| word == "--no-interpolate"),
        read: &|path| fs::read_to_string(path).ok(),
    })?;
    Ok(config.to_string())
}
