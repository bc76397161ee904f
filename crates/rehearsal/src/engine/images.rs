//! `/images`

use serde_json::json;

use super::{filters, no_page, ok, shapes::image as shapes};
use crate::{
    http::{Answer, Incoming},
    world::{Problem, World, tagged},
};

pub(super) fn route(
    world: &mut World,
    parts: &[&str],
    incoming: &Incoming,
) -> Result<Answer, Problem> {
    match (incoming.method.as_str(), parts) {
        ("GET", ["json"]) => Ok(ok(&shapes::images(world, &filters(incoming)?))),
        ("POST", ["create"]) => pull(world, incoming),
        // A name can have slashes in it.
        ("GET", [name @ .., "json"]) => {
            let name = name.join("/");
            let missing = || {
                let text = format!("no such image: {name}: No such image: {}", tagged(&name));
                Problem::new(404, text)
            };
            Ok(ok(&shapes::image(world.image(&name).ok_or_else(missing)?)))
        }
        _ => Err(no_page()),
    }
}

fn pull(world: &mut World, incoming: &Incoming) -> Result<Answer, Problem> {
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
        return Err(Problem::new(
            404,
            format!(
                "pull access denied for {name}, repository does not exist or may require 'docker login': \
                 denied: requested access to the resource is denied"
            ),
        ));
    }
    world.add_image(&name);
    let status = format!("Status: Downloaded newer image for {}", tagged(&name));
    Ok(Answer::json(200, &json!({ "status": status })))
}
