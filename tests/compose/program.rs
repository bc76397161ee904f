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
    let read = |path: &str| fs::read_to_string(path).ok();
    let mut files: Vec<String> = of("-f").into_iter().map(absolute).collect();
    if files.is_empty() {
        let names = [
            "compose.yaml",
            "compose.yml",
            "docker-compose.yml",
            "docker-compose.yaml",
        ];
        files.extend(
            names
                .map(absolute)
                .into_iter()
                .find(|path| Path::new(path).exists()),
        );
    }
    // As Compose, unless it is told another one.
    let of_first = files.first().map(Path::new).and_then(Path::parent);
    let folder = match of("--project-directory").first() {
        Some(folder) => current.join(folder).components().collect(),
        None => of_first.unwrap_or(&current).to_owned(),
    };
    let folder = folder.to_str().ok_or("not UTF-8")?;
    let missing = |path: &String| format!("open {path}: no such file or directory");
    let texts = files
        .iter()
        .map(|path| read(path).ok_or_else(|| missing(path)));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let mut env_files: Vec<String> = of("--env-file").into_iter().map(absolute).collect();
    if env_files.is_empty() {
        env_files.push(format!("{folder}/.env"));
    }
    let mut variables = BTreeMap::new();
    for path in &env_files {
        let text = read(path).unwrap_or_default();
        let known = |name: &str| variables.get(name).cloned();
        let own = composefile::dotenv::parse(&text, &known)
            .map_err(|error| format!("failed to read {path}: {error}"))?;
        let own: Vec<_> = own.into_iter().collect();
        variables.extend(own);
    }
    variables.extend(env::vars());
    let home = env::var("HOME").unwrap_or_default();
    let name = Path::new(folder).file_name().and_then(|name| name.to_str());
    let project = of("-p").first().copied().or(name).unwrap_or_default();
    let config = config_of_files(&ComposeFiles {
        project,
        folder,
        file: files.first().map_or("", String::as_str),
        texts: &texts,
        variables: &variables,
        home: &home,
        read: &read,
    })?;
    Ok(config.to_string())
}
