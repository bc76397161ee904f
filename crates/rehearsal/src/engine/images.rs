//! `/images`

use serde_json::json;

use super::{input::filters, shapes::image as shapes};
use crate::{
    http::{Incoming, Response},
    world::{EngineError, World, tagged},
};

pub(super) fn route(
    world: &mut World,
    parts: &[&str],
    incoming: &Incoming,
) -> Result<Response, EngineError> {
    match (incoming.method.as_str(), parts) {
        ("GET", ["json"]) => Ok(Response::ok(&shapes::images(world, &filters(incoming)?))),
        ("POST", ["create"]) => pull(world, incoming),
        // A name may contain slashes.
        ("GET", [name @ .., "json"]) => {
            let name = name.join("/");
            let missing = || {
                let text = format!("no such image: {name}: No such image: {}", tagged(&name));
                EngineError::new(404, text)
            };
            Ok(Response::ok(&shapes::image(
                world.image(&name).ok_or_else(missing)?,
            )))
        }
        _ => Err(EngineError::no_page()),
    }
}

fn pull(world: &mut World, incoming: &Incoming) -> Result<Response, EngineError> {
    let name = incoming.query("fromImage").unwrap_or_default();
    let name = match incoming.query("tag").unwrap_or_default().as_str() {
        "" => name,
        digest if digest.contains(':') => format!("{name}@{digest}"),
        tag => format!("{name}:{tag}"),
    };
    if world
        .unpullable
        .iter()
        .any(|one| tagged(one) == tagged(&name))
    {
        return Err(EngineError::new(
            404,
            format!(
                "pull access denied for {name}, repository does not exist or may require 'docker login': \
                 denied: requested access to the resource is denied"
            ),
        ));
    }
    world.add_image(&name);
    let status = format!("Status: Downloaded newer image for {}", tagged(&name));
    Ok(Response::json(200, &json!({ "status": status })))
}
