//! What the fuzz targets call of this module that is private otherwise.

use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, de::DeserializeOwned};

use super::{Answer, Api, wire};
use crate::{
    engine::{
        Choice, Options, Surroundings,
        objects::{Changes, wire_changes},
    },
    model::Container,
    trace::Trace,
};

thread_local! {
    static API: Api = {
        let options = Options::new("docker", Choice::Api, Surroundings::default(), Trace::off());
        Api::new(PathBuf::from("engine.sock"), options)
    };
}

pub(in crate::engine) fn listed(body: &[u8]) -> Result<Vec<Container>> {
    let listed: Option<Vec<wire::Container>> = read(body)?;
    let listed = listed.unwrap_or_default().into_iter();
    Ok(listed.map(Container::from).collect())
}

pub(in crate::engine) fn changes(body: &[u8]) -> Result<Changes> {
    #[derive(Deserialize)]
    struct Listed(#[serde(deserialize_with = "wire_changes")] Changes);

    let Listed(changes) = read(body)?;
    Ok(changes)
}

pub(in crate::engine) fn others(body: &[u8]) -> Vec<Result<()>> {
    vec![
        read::<wire::Inspected>(body).map(drop),
        read::<wire::Info>(body).map(drop),
        read::<Option<Vec<wire::Network>>>(body).map(drop),
        read::<wire::Volumes>(body).map(drop),
        read::<wire::Created>(body).map(drop),
        API.with(|api| Err(api.refused(&answer(500, body)))),
    ]
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    API.with(|api| api.read(&answer(200, body)))
}

fn answer(status: u16, body: &[u8]) -> Answer {
    Answer {
        path: "GET /fuzzing".to_owned(),
        status,
        api_version: None,
        body: body.to_vec(),
    }
}
