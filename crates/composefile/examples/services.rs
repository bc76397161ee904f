//! Prints the services of a Compose file with their images and host paths.
//!
//! usage: services FILE [NAME=VALUE]...

use std::{collections::HashMap, error::Error, io::Write};

use composefile::{
    document::{Document, Node},
    dotenv,
    path::Base,
    places::{self, Role},
    reader::{Context, EnvFiles, Reader},
    services::{MountSpec, MountType},
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments
        .next()
        .ok_or("usage: services FILE [NAME=VALUE]...")?;
    let given: Vec<_> = arguments.collect();
    let shell: HashMap<&str, &str> = given.iter().filter_map(|one| one.split_once('=')).collect();
    let shell = |name: &str| shell.get(name).map(|&value| value.to_owned());

    let path = std::path::absolute(&file)?;
    let dir = path.parent().ok_or("the file has no directory")?;
    let text = std::fs::read_to_string(&path)?;
    let env_text = std::fs::read_to_string(dir.join(".env")).ok();
    let env = dotenv::parse(env_text.as_deref().unwrap_or_default(), &shell)?;

    let document = Document::parse(&text)?;
    let context = Context {
        stack_dir: &dir.to_string_lossy(),
        file: &path.file_name().unwrap_or_default().to_string_lossy(),
        env_file: ".env",
        home: None,
        shell: &shell,
        project: None,
        overrides: &[],
        env_files: &EnvFiles::new(),
    };
    let reader = Reader::new(&document, env_text.as_deref(), &env, &context);
    let mut out = std::io::stdout().lock();
    writeln!(out, "project {}", reader.project)?;
    for service in &reader.services {
        writeln!(out, "service {}", service.name)?;
        if let Some(image) = service.node.get("image").and_then(Node::as_str) {
            writeln!(out, "  image {}", reader.read(image)?)?;
        }
        for (node, role) in places::of_service(*service, &|name| reader.here(name)) {
            let text = reader.read(node.as_str().unwrap_or_default())?;
            if let Some(path) = host_path(&text, role, &reader.base()) {
                writeln!(out, "  path  {path} (line {})", node.line())?;
            }
        }
    }
    Ok(())
}

/// The path that a text names on the host; `None` for a volume.
fn host_path(text: &str, role: Role, base: &Base<'_>) -> Option<String> {
    match role {
        Role::Mount => {
            let mount = MountSpec::parse(text).filter(|mount| mount.kind == MountType::Bind)?;
            mount.source.map(|source| base.host(source))
        }
        Role::Host => Some(base.host(text)),
        Role::Local => Some(base.local(text)),
    }
}
