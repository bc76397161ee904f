//! The texts that a rewrite starts from.
#![deny(clippy::disallowed_methods)]

use composefile::{
    document::{Document, Position},
    dotenv,
    reader::Context,
};

use super::{Blocker, Reason};

/// Parses the Compose file.
pub(super) fn document(text: &str) -> Result<Document<'_>, Blocker> {
    let document = Document::parse(text).map_err(|error| Blocker::not_yaml(&error))?;
    match unseen_line_break(text) {
        Some(blocker) => Err(blocker),
        None => Ok(document),
    }
}

/// The variables of `.env`, as Compose reads them.
pub(super) fn variables(
    env: Option<&str>,
    context: &Context<'_>,
) -> Result<Vec<(String, String)>, Blocker> {
    dotenv::parse(env.unwrap_or_default(), context.shell).map_err(|error| {
        Blocker::new(
            Reason::BadEnvFile,
            format!("cannot parse {}: {error}", context.env_file),
            "fix this line: `docker compose config` must accept the file",
        )
    })
}

/// YAML 1.1, and so Compose, ends a line at characters that YAML 1.2 does not.
fn unseen_line_break(text: &str) -> Option<Blocker> {
    let breaks = ["\u{85}", "\u{2028}", "\u{2029}"];
    let find = |c: &&str| memchr::memmem::find(text.as_bytes(), c.as_bytes());
    let at = breaks.iter().filter_map(find).min()?;
    Some(Blocker {
        position: Some(Position::of(text, at)),
        ..Blocker::new(
            Reason::NotYaml,
            "Compose treats this invisible character (U+0085, U+2028 or U+2029) as a line break",
            "remove it, or write it as an escape (`\"\\u2028\"`)",
        )
    })
}
