//! The stacks of a corpus: `manifest.jsonl`, one stack a line, its files beside it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// One stack of the corpus.
pub struct Stack {
    /// The corpus.
    folder: PathBuf,
    /// The compose file, below the corpus.
    pub compose: PathBuf,
    files: Vec<PathBuf>,
    /// Only an example of `.env` is there, which stands for it.
    example: bool,
}

pub fn read(folder: &Path) -> Vec<Stack> {
    let manifest = fs::read_to_string(folder.join("manifest.jsonl")).expect("the manifest");
    let stack = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a line of the manifest");
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let files = row["files"].as_array().into_iter().flatten();
        Stack {
            folder: folder.to_owned(),
            compose: Path::new(&text("repo").replace('/', "+")).join(text("path")),
            files: files.filter_map(|file| file.as_str().map(PathBuf::from)).collect(),
            example: text("env_beside") == "example",
        }
    };
    manifest.lines().map(stack).collect()
}

impl Stack {
    pub fn name(&self) -> String {
        self.compose.display().to_string()
    }

    /// Copies the stack's files to `root`; its directory there.
    pub fn copy_to(&self, root: &Path) -> PathBuf {
        for file in &self.files {
            let to = root.join(file);
            fs::create_dir_all(to.parent().expect("a parent")).expect("create");
            fs::write(&to, fs::read(self.folder.join(file)).expect("read")).expect("write");
        }
        let dir = root.join(&self.compose).parent().expect("a parent").to_owned();
        if self.example && !dir.join(".env").exists() {
            let is_example = |file: &&PathBuf| {
                let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let parent = root.join(file).parent().map(Path::to_owned);
                parent.as_deref() == Some(&dir)
                    && name.contains("env")
                    && ["example", "sample", "template", "dist", "default"]
                        .iter()
                        .any(|word| name.to_ascii_lowercase().contains(word))
            };
            if let Some(example) = self.files.iter().find(is_example) {
                fs::copy(root.join(example), dir.join(".env")).expect("copy");
            }
        }
        dir
    }
}
