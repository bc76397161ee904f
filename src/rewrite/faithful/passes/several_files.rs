//! Blocks on a stack of more than one file: Portainer gets a single text.
#![deny(clippy::disallowed_methods)]

use composefile::reader::Reader;

use crate::{
    rewrite::faithful::{Blocker, Reason, findings::Findings},
    text::shell_word,
};

/// Finds the other files that Compose reads for the stack.
pub(super) fn other_files<'d>(reader: &Reader<'d, '_>) -> Findings<'d> {
    let (document, context) = (reader.document, reader.context);
    let files = reader.files();
    let hint = combine(&files, context.stack_dir);
    let mut blockers = Vec::new();
    let include = document.get("include");
    if let Some(include) = include.filter(|include| include.items().next().is_some()) {
        blockers.push(Blocker::at(
            include,
            Reason::SeveralFiles,
            "Portainer cannot read the files that `include` names",
            hint.clone(),
        ));
    }
    for service in &reader.services {
        if let Some(file) = service.extends_file() {
            let message = format!(
                "Portainer cannot read the file that `extends` of service {} names",
                service.name
            );
            blockers.push(Blocker::at(
                file.node,
                Reason::SeveralFiles,
                message,
                hint.clone(),
            ));
        }
    }
    let without_place =
        |message: String, hint: String| Blocker::new(Reason::SeveralFiles, message, hint);
    match &files[..] {
        [one] if one == context.file => {}
        [one] => blockers.push(without_place(
            format!("COMPOSE_FILE names {one}, not {}", context.file),
            format!("to use that file, pass --file {one}"),
        )),
        [file, other] if reader.listed_files().is_empty() => blockers.push(without_place(
            format!("Compose merges {other} into {file}, but Portainer takes a single file"),
            hint,
        )),
        several => blockers.push(without_place(
            format!(
                "COMPOSE_FILE names {} files, but Portainer takes a single file",
                several.len()
            ),
            hint,
        )),
    }
    Findings {
        blockers,
        ..Findings::default()
    }
}

/// How to combine the files into one. The command writes the values of variables into the result, because with
/// `--no-interpolate` Compose prefixes paths that start with a variable with the directory, takes mounts that start
/// with one for volumes, and ignores the `.env` of included files.
fn combine(files: &[String], dir: &str) -> String {
    let files = files
        .iter()
        .flat_map(|file| [" -f ".into(), shell_word(file)]);
    let files: String = files.collect();
    format!(
        "combine them into one file, then pass --file stacklift.yml. The command writes the values of .env into that file; `config --no-interpolate` keeps the variables, but is only safe if no path starts with a variable and no included file has its own .env. Run: (umask 077 && cd {} && docker compose{files} --profile '*' config --output stacklift.yml)",
        shell_word(dir)
    )
}
