//! Files in a container's own layer, as a tar archive.

use std::io::{self, Read as _};

use crate::{
    http::{Response, TEXT},
    world::{Container, Refused},
};

/// The file at `path`.
pub(super) fn read(container: &Container, path: &str) -> Result<Response, Refused> {
    let missing = || {
        let id = &container.id;
        Refused::new(
            404,
            format!("Could not find the file {path} in container {id}"),
        )
    };
    let data = container.files.get(path).ok_or_else(missing)?;
    let name = path.rsplit('/').next().unwrap_or_default();
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o644);
    header.set_size(data.len() as u64);
    let mut archive = tar::Builder::new(Vec::new());
    let appended = archive.append_data(&mut header, name, data.as_slice());
    let written = appended.and_then(|()| archive.into_inner())?;
    Ok(Response::new(200, "application/x-tar", written))
}

/// Writes the files of an archive.
pub(super) fn unpack(container: &mut Container, body: &[u8]) -> Result<Response, Refused> {
    for entry in tar::Archive::new(body).entries()? {
        let mut entry = entry?;
        let path = format!("/{}", String::from_utf8_lossy(&entry.path_bytes()));
        let mut data = Vec::new();
        entry.read_to_end(&mut data)?;
        container.files.insert(path, data);
    }
    Ok(Response::new(200, TEXT, ""))
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::new(500, error.to_string())
    }
}
