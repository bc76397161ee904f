//! The faithful rewrite of a stack as `adopt` makes it, and how its blockers are shown.

use std::{ops::Range, sync::Arc};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anyhow::Result;
use composefile::document::Position;

use crate::{
    adopt::Prepared,
    cli::{
        Console,
        opened::inventory,
        peers,
        settings::{KeySource, Settings},
    },
    compose,
    failure::Failure,
    inventory::Inventory,
    observe::with_hint,
    plan::Keep,
    rewrite::{
        faithful::{Blocker, Faithful},
        masked,
    },
    stack::{Origins, Source, Stack, StackName},
    text::{counted, shell_word},
};

/// A stack as it would be adopted.
pub(super) struct Adopted {
    pub(super) stack: Stack,
    pub(super) source: Source,
    pub(super) rewrite: Faithful,
    /// The files that each service comes from, if several were combined.
    pub(super) origins: Option<Origins>,
}

/// Rewrites the stack as `adopt` does, from its files and its containers. Warns if they are not enough. The error shows
/// every blocker with its line.
pub(super) fn adopted(
    name: StackName,
    settings: &Settings,
    keep: Keep,
    console: &Arc<Console>,
) -> Result<Adopted> {
    let engine = peers::engine(settings, console);
    let listed = engine.list(name.as_str());
    let containers = listed.as_deref().unwrap_or_default();
    let earlier = peers::earlier(settings, &name);
    let stack = Stack::find_started(name, &settings.location, containers, earlier)?;
    let compose =
        compose::Host::new(&settings.location.tool, console.trace()).that_started(containers);
    let alone = inventory(settings, None, engine.reader(), &compose);
    // Whether a container stays depends on Portainer, and nothing else that is written does.
    let asked = keep.anonymous.then(|| {
        let key = KeySource::of(settings.api_key_file.as_deref())?.read()?;
        console.hide(&key);
        let portainer = peers::portainer(settings, key, console)?;
        let portainer = portainer.reader();
        let id = peers::environment(settings, portainer, engine.reader(), console)?;
        let asked = Inventory {
            portainer: Some((portainer, id)),
            ..alone
        };
        Prepared::new(&asked.situation(&stack, None), keep)
    });
    let alone = alone.situation(&stack, None);
    let prepared = match asked {
        Some(Ok(prepared)) => prepared,
        Some(Err(error)) => {
            console.warning(&format!(
                "Portainer was not asked, so no container is certain to stay, and every anonymous volume gets a name here: {}",
                with_hint(&error)
            ));
            Prepared::new(&alone, keep)?
        }
        None => Prepared::new(&alone, keep)?,
    };
    if !prepared.before.is_known() {
        let why = listed.as_ref().err();
        let why = why.map(|error| format!(": {}", with_hint(error)));
        console.warning(&format!(
            "cannot read the containers of {}, so what `adopt` writes because of them is not shown: names for anonymous volumes, and the variables of --keep-variables{}",
            stack.name(),
            why.unwrap_or_default()
        ));
    }
    let name = stack.name();
    let has_containers = !containers.is_empty();
    if let Some(project) = prepared.project.filter(|_| !has_containers)
        && project != name.as_str()
    {
        console.warning(&format!(
            "Compose names the project of {} {project}: its Portainer stack must have the same name, not {name}",
            stack.dir().display()
        ));
    }
    let (source, rewrite) = (prepared.source, prepared.rewrite);
    let rewrite = rewrite.map_err(|blockers| blocked(&stack, &source.compose, &blockers))?;
    Ok(Adopted {
        stack,
        source,
        rewrite,
        origins: prepared.combined.map(|(_, origins)| origins),
    })
}

fn blocked(stack: &Stack, text: &str, blockers: &[Blocker]) -> Failure {
    let name = stack.name();
    let shown = masked(text);
    let pictures: Vec<String> = blockers
        .iter()
        .map(|blocker| picture(stack.file(), [text, &shown], blocker))
        .collect();
    let count = counted(blockers.len(), "problem");
    Failure::new(format!("cannot adopt the stack {name}: {count}"))
        .details(pictures.join("\n\n"))
        .hint(format!(
            "fix the file, then run the command again; `stacklift render {}` shows the literal rewrite",
            shell_word(name.as_str())
        ))
}

/// The message, the line with the place marked, and the hint.
fn picture(file: &str, [text, shown]: [&str; 2], blocker: &Blocker) -> String {
    let title = Level::ERROR.no_name().primary_title(&blocker.message);
    let help = Level::HELP.message(&blocker.hint);
    let report = match blocker.position {
        Some(position) => {
            let (line, mut place) = marked(shown, position);
            let (written, at) = marked(text, position);
            // A masked value has other columns: the value is what is marked.
            if line != written {
                let same = line.bytes().zip(written.bytes());
                let same = same.take_while(|(shown, written)| shown == written).count();
                let start = line.floor_char_boundary(same.min(at.start));
                place = start..line.len();
            }
            let snippet = Snippet::source(line)
                .path(file)
                .line_start(position.line)
                .annotation(AnnotationKind::Primary.span(place));
            title.element(snippet).element(help)
        }
        None => title.element(help),
    };
    Renderer::plain().render(&[report])
}

/// The line of a position without its byte order mark, and the byte range of the character there.
fn marked(text: &str, position: Position) -> (&str, Range<usize>) {
    let line = text.split('\n').nth(position.line - 1).unwrap_or_default();
    let line = line.trim_end();
    // A position counts the byte order mark as a character.
    let shown = line.trim_start_matches('\u{feff}');
    let hidden = line.len() - shown.len();
    let mut offsets = line
        .char_indices()
        .map(|(at, _)| at.saturating_sub(hidden))
        .skip(position.column - 1);
    let start = offsets.next().unwrap_or(shown.len());
    (shown, start..offsets.next().unwrap_or(shown.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_character_at_a_position_is_marked() {
        for (text, line, column, expected) in [
            ("a: x\nb: [y]\r\n", 2, 4, ("b: [y]", 3..4)),
            ("\u{feff}a: [x]", 1, 5, ("a: [x]", 3..4)),
            ("日本: [x]", 1, 5, ("日本: [x]", 8..9)),
            ("a:\n  -\n", 2, 4, ("  -", 3..3)),
            ("", 1, 1, ("", 0..0)),
        ] {
            assert_eq!(
                marked(text, Position { line, column }),
                expected,
                "{text:?}"
            );
        }
    }
}
