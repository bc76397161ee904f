//! The language of the project: plain technical English, as CONTRIBUTING.md asks for.
//!
//! Collects every string literal, doc comment and comment of the sources and every line of the documents and scripts,
//! and fails on words and phrases that CONTRIBUTING.md rules out.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};

/// Where the texts are. Other folders hold test data.
const ROOTS: [&str; 15] = [
    ".ci",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "README.md",
    "bench/src",
    "crates",
    "deploy",
    "docs",
    "fuzz/fuzz_targets",
    "packaging",
    "scripts",
    "src",
    "tests",
];

/// Phrases that no text contains, as whole words, and a better one for each.
const RULED_OUT: [(&str, &str); 39] = [
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("take over", "move, continue with"),
    ("takes over", "moves, continues with"),
    ("comes to light", "appears"),
    ("come to light", "appear"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("went on", "continued"),
    ("what is none", "what is not one"),
    ("otherwise than", "differently from"),
    ("stands beside", "is next to"),
    ("stand beside", "are next to"),
    ("made anew", "recreated"),
    ("make anew", "recreate"),
    ("makes anew", "recreates"),
    ("anew", "again"),
    ("made again", "recreated"),
    ("its own self", "itself"),
    ("the like", "(name it)"),
    ("the manager", "Portainer"),
    ("manager's", "Portainer's"),
    ("a manager", "Portainer"),
    ("way back", "rollback"),
    ("cannot be understood", "cannot be parsed"),
    ("is understood", "is parsed"),
    ("knows no", "does not know"),
    ("waits for itself", "dependency cycle"),
    ("in the end", "(say when)"),
    ("is no answer", "is not a response"),
    ("lies in", "is in"),
    ("lie in", "are in"),
    ("brings back", "restores"),
    ("brought back", "restored"),
    ("bring back", "restore"),
    ("settling", "waiting for the deployment"),
    ("normalised", "normalized"),
    ("behaviour", "behavior"),
];

/// A text: its file, its line and its words.
type Text = (PathBuf, usize, String);

#[test]
fn no_text_uses_a_word_that_is_ruled_out() {
    let texts = texts();
    assert!(texts.len() > 3000, "only {} texts", texts.len());
    let mut wrong = Vec::new();
    for (file, line, text) in &texts {
        let words = words(text);
        for (phrase, better) in RULED_OUT {
            if words.contains(&format!(" {phrase} ")) {
                wrong.push(format!(
                    "{}:{line}: {phrase:?} (better: {better}): {}",
                    file.display(),
                    text.trim()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), wrong.len());
}

/// The words of a text in lower case, a space around each.
fn words(text: &str) -> String {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '-' | '_');
    let words = text.split(|c| !word(c)).filter(|part| !part.is_empty());
    let words: Vec<_> = words.map(str::to_lowercase).collect();
    format!(" {} ", words.join(" "))
}

fn texts() -> Vec<Text> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut ahead: Vec<PathBuf> = ROOTS.iter().map(|path| root.join(path)).collect();
    let mut texts = Vec::new();
    while let Some(path) = ahead.pop() {
        if path.is_dir() {
            if ["faithful", "fixtures", "oracle/several", "target"]
                .iter()
                .any(|name| path.ends_with(name))
                && !path.ends_with("src/rewrite/faithful")
            {
                continue;
            }
            let entries = fs::read_dir(path).expect("a folder");
            ahead.extend(entries.map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let extension = path.extension().unwrap_or_default();
        let is_data = ["lock", "yml", "env", "conf", "txt", "json", "jsonl"]
            .iter()
            .any(|data| extension == *data);
        if is_data || path.ends_with(file!()) {
            continue;
        }
        let content =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
        if extension == "rs" {
            let tokens: TokenStream = content.parse().expect("Rust");
            literals(tokens, &name, &mut texts);
            comments(&content, &name, &mut texts);
        } else {
            let lines = content.lines().enumerate();
            texts.extend(lines.map(|(index, line)| (name.clone(), index + 1, line.to_owned())));
        }
    }
    texts
}

/// Every string literal.
fn literals(tokens: TokenStream, file: &Path, texts: &mut Vec<Text>) {
    for token in tokens {
        match token {
            // To the compiler, a doc comment is the attribute `[doc = "…"]`.
            TokenTree::Group(group) if group.to_string().starts_with("[doc") => {}
            TokenTree::Group(group) => literals(group.stream(), file, texts),
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                    texts.push((file.to_owned(), line, text.value()));
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Every comment and doc comment. Lines in sequence are one text, because a phrase may be split over two lines.
fn comments(content: &str, file: &Path, texts: &mut Vec<Text>) {
    let mut run: Option<(usize, String)> = None;
    for (index, line) in content.lines().chain([""]).enumerate() {
        let comment = line.trim_start().strip_prefix("//");
        match (comment, &mut run) {
            (Some(comment), Some((_, text))) => {
                text.push(' ');
                text.push_str(comment);
            }
            (Some(comment), None) => run = Some((index + 1, comment.to_owned())),
            (None, _) => {
                let ended = run.take();
                texts.extend(ended.map(|(line, text)| (file.to_owned(), line, text)));
            }
        }
    }
}
