//! The stacks of a corpus: `manifest.jsonl`, one stack a line, its files beside it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// One stack of the corpus.
pub struct Stack {
    name: String,
    /// The corpus, or the case.
    folder: PathBuf,
    /// The Compose file, below the corpus.
    pub compose: PathBuf,
    files: Vec<PathBuf>,
    /// Only an example of `.env` is there, which stands for it.
    example: bool,
    /// A case of the project, which is taken as it is.
    pub is_case: bool,
    /// Variables of the shell besides the usual ones, one `NAME=value` a line.
    pub shell: String,
}

pub fn read(folder: &Path) -> Vec<Stack> {
    let manifest = fs::read_to_string(folder.join("manifest.jsonl")).expect("the manifest");
    let stack = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a line of the manifest");
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let files = row["files"].as_array().into_iter().flatten();
        let compose = Path::new(&text("repo").replace('/', "+")).join(text("path"));
        Stack {
            name: compose.display().to_string(),
            folder: folder.to_owned(),
            compose,
            is_case: false,
            shell: String::new(),
            files: files
                .filter_map(|file| file.as_str().map(PathBuf::from))
                .collect(),
            example: text("env_beside") == "example",
        }
    };
    manifest.lines().map(stack).collect()
}

/// The cases of the project, as stacks called `web`.
pub fn cases() -> Vec<Stack> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faithful");
    let folders = fs::read_dir(root).expect("the cases");
    let case = |folder: PathBuf| {
        let files = fs::read_dir(folder.join("in")).expect("a case");
        let names = files.map(|file| PathBuf::from(file.expect("a file").file_name()));
        Stack {
            name: name_of(&folder),
            compose: PathBuf::from("web/docker-compose.yml"),
            files: names.map(|name| Path::new("web").join(name)).collect(),
            shell: fs::read_to_string(folder.join("shell")).unwrap_or_default(),
            folder,
            example: false,
            is_case: true,
        }
    };
    folders
        .map(|folder| case(folder.expect("a case").path()))
        .collect()
}

/// The last part of a path.
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().expect("a name");
    name.to_string_lossy().into_owned()
}

impl Stack {
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Copies the stack's files to `root`; its directory there.
    pub fn copy_to(&self, root: &Path) -> PathBuf {
        for file in &self.files {
            let to = root.join(file);
            fs::create_dir_all(to.parent().expect("a parent")).expect("create");
            let from = match file.strip_prefix("web") {
                Ok(below) if self.is_case => self.folder.join("in").join(below),
                _ => self.folder.join(file),
            };
            fs::write(&to, fs::read(from).expect("read")).expect("write");
        }
        let compose = root.join(&self.compose);
        let dir = compose.parent().expect("a parent").to_owned();
        if self.example && !dir.join(".env").exists() {
            let words = ["example", "sample", "template", "dist", "default"];
            let is_example = |file: &&PathBuf| {
                let name = name_of(file).to_ascii_lowercase();
                root.join(file).parent() == Some(&dir)
                    && name.contains("env")
                    && words.iter().any(|word| name.contains(word))
            };
            if let Some(example) = self.files.iter().find(is_example) {
                fs::copy(root.join(example), dir.join(".env")).expect("copy");
            }
        }
        dir
    }
}
