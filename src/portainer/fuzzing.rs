//! What the fuzz targets call of this module that is private otherwise.

use std::io::{self, Read};

use ureq::{Body, http::Response};

use super::{list, wire};
use crate::model::Record;

/// Gives the entries of a list that have one of `names`.
pub fn entries(reader: impl Read, names: &[&str], take: impl FnMut(&[u8])) -> io::Result<()> {
    list::entries(reader, names, take)
}

/// Reads a body as each of the manager's answers; gives the records of it as a list.
pub fn answers(body: &[u8], names: &[&str]) -> anyhow::Result<Vec<Record>> {
    let reply = || {
        let body = Body::builder().data(body.to_vec());
        Response::new(body)
    };
    // Whatever they are: only that they end matters.
    let _ = wire::record(reply());
    let _ = wire::env(reply());
    let _ = wire::text(reply());
    let _ = wire::engine_id(reply());
    let _ = wire::created(body);
    wire::records(reply(), names)
}
