//! Reads the file of `--header-file`.

use std::{io::Read as _, path::Path};

use anyhow::Result;

use crate::{
    disk::{self, Refused},
    failure::Failure,
    portainer::Headers,
};

/// The size limit of the file, in bytes.
const LONGEST: u64 = 64 * 1024;

/// Reads the headers. The file must be private: its values are secrets, and no error shows them.
pub(super) fn read(path: &Path) -> Result<Headers> {
    let failed = |error| {
        Failure::new(format!("failed to read the header file {}", path.display()))
            .source(error)
            .hint("pass a UTF-8 text file that has lines such as `Name: value` with --header-file")
    };
    let refused = |why: &str| {
        Failure::new(format!(
            "refusing to read the header file {}: {why}",
            path.display()
        ))
    };
    let (file, metadata) = disk::open_secret(path).map_err(|error| match Refused::of(&error) {
        Some(Refused::Exposed) => refused(&error.to_string()).hint(format!(
            "check its owner, then run: chmod 600 {}",
            path.display()
        )),
        Some(why) => refused(&why.to_string()).hint("pass a text file with --header-file"),
        None => failed(error),
    })?;
    if metadata.len() > LONGEST {
        return Err(refused(&format!("it is larger than {} KiB", LONGEST / 1024)).into());
    }
    let mut text = String::new();
    file.take(LONGEST)
        .read_to_string(&mut text)
        .map_err(failed)?;
    text.parse().map_err(|problem: String| {
        Failure::new(format!(
            "cannot parse the header file {}: {problem}",
            path.display()
        ))
        .hint("write one header per line: Name: value; lines that start with # are comments")
        .into()
    })
}
