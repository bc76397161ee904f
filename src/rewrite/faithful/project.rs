//! Whether one text makes the stack.
#![deny(clippy::disallowed_methods)]

use super::{Reason, Refusal};
use composefile::reader::Reader;

/// What makes the stack out of more than one file.
pub(super) fn other_files(reader: &Reader<'_, '_>) -> Vec<Refusal> {
    let (document, context) = (reader.document, reader.context);
    let files = reader.files();
    let hint = one_file_of(&files, context.stack_dir);
    let refusal = |message: String| Refusal::of(Reason::SeveralFiles, message, hint.clone());
    let mut found = Vec::new();
    let include = document.get("include");
    if let Some(include) = include.filter(|include| include.items().next().is_some()) {
        let message = "`include` names files that the manager cannot read";
        found.push(Refusal::at(
            include,
            Reason::SeveralFiles,
            message,
            hint.clone(),
        ));
    }
    for service in &reader.services {
        if let Some(file) = service.extends_file() {
            let name = service.name;
            let message = format!(
                "`extends` of the service {name} names a file that the manager cannot read"
            );
            found.push(Refusal::at(
                file.node,
                Reason::SeveralFiles,
                message,
                hint.clone(),
            ));
        }
    }
    match &files[..] {
        [one] if one == context.file => {}
        [one] => found.push(Refusal::of(
            Reason::SeveralFiles,
            format!("COMPOSE_FILE names {one}, not {}", context.file),
            format!("say which one is the stack's: --file {one}"),
        )),
        [file, beside] if reader.listed_files().is_empty() => found.push(refusal(format!(
            "{beside} stands beside {file}, and compose reads both"
        ))),
        several => found.push(refusal(format!(
            "COMPOSE_FILE names {} files",
            several.len()
        ))),
    }
    found
}

/// How to make one file of several. The values are written into it: without that (`--no-interpolate`),
/// compose puts the directory in front of a path that starts with a variable, takes a mount that starts with
/// one for a volume, and forgets the `.env` of what is included.
fn one_file_of(files: &[String], dir: &str) -> String {
    let files = files
        .iter()
        .flat_map(|file| [" -f ".to_owned(), word(file)]);
    let files: String = files.collect();
    format!(
        "make one file of them and name it with --file stacklift.yml; the values of .env stand in it, unless with `config --no-interpolate`, which is right only where no path starts with a variable and nothing that is included has a .env of its own: (umask 077 && cd {} && docker compose{files} --profile '*' config --output stacklift.yml)",
        word(dir)
    )
}

/// A word of a shell.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
