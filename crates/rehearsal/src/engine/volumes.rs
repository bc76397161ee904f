//! `/volumes`

use super::{body, filters, no_page, ok, shapes::volume as shapes};
use crate::{
    http::{Answer, Incoming},
    world::{Problem, World},
};

pub(super) fn route(
    world: &mut World,
    engine: &str,
    parts: &[&str],
    incoming: &Incoming,
) -> Result<Answer, Problem> {
    Ok(match (incoming.method.as_str(), parts) {
        ("GET", []) => ok(&shapes::volumes(world, engine, &filters(incoming)?)),
        ("GET", [name]) => ok(&shapes::volume(world.volume_on(engine, name)?)),
        ("POST", ["create"]) => {
            let volume = world.create_volume(engine, &body(incoming)?)?;
            Answer::json(201, &shapes::volume(volume))
        }
        ("DELETE", [name]) => {
            world.remove_volume(engine, name)?;
            Answer::no_content()
        }
        _ => return Err(no_page()),
    })
}
