//! The faithful rewrite of a stack on disk, and how its blockers are shown.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anyhow::Result;
use composefile::document::Position;

use crate::{
    failure::Failure,
    rewrite::faithful::{self, Blocker, Faithful, Notice, Runs},
    stack::{Shell, Source, Stack},
    text::counted,
};

/// Rewrites the stack. The error shows every blocker with its line.
pub(super) fn rewrite(stack: &Stack, source: &Source) -> Result<Faithful> {
    let (text, env) = (source.compose.as_str(), source.env.as_deref());
    let shell = Shell::of(stack, |context| {
        faithful::env_files_needed(text, env, context)
    });
    if let Some(error) = shell.unreadable {
        return Err(error);
    }
    faithful::rewrite(text, env, &shell.context(), &Runs::default())
        .map_err(|blockers| blocked(stack, &source.compose, &blockers).into())
}

/// A notice after its file and line.
pub(super) fn notice(stack: &Stack, notice: &Notice) -> String {
    match notice.line {
        Some(line) => format!("{}:{line}: {}", stack.file(), notice.message),
        None => notice.message.clone(),
    }
}

fn blocked(stack: &Stack, text: &str, blockers: &[Blocker]) -> Failure {
    let name = stack.name();
    let pictures: Vec<String> = blockers
        .iter()
        .map(|blocker| picture(stack.file(), text, blocker))
        .collect();
    let count = counted(blockers.len(), "problem");
    Failure::new(format!("cannot adopt the stack {name}: {count}"))
        .details(pictures.join("\n\n"))
        .hint(format!(
            "fix the file, then run the command again; `stacklift render {name}` shows the literal rewrite"
        ))
}

/// The message, the line with the place marked, and the hint.
fn picture(file: &str, text: &str, blocker: &Blocker) -> String {
    let title = Level::ERROR.no_name().primary_title(&blocker.message);
    let help = Level::HELP.message(&blocker.hint);
    let report = match blocker.position {
        Some(position) => {
            let (line, place) = marked(text, position);
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
