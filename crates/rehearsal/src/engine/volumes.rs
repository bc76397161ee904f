//! `/volumes`

use super::{
    input::{body, filters},
    shapes::volume as shapes,
};
use crate::{
    http::{Incoming, Response},
    world::{EngineError, World},
};

pub(super) fn route(
    world: &mut World,
    engine: &str,
    parts: &[&str],
    incoming: &Incoming,
) -> Result<Response, EngineError> {
    Ok(match (incoming.method.as_str(), parts) {
        ("GET", []) => Response::ok(&shapes::volumes(world, engine, &filters(incoming)?)),
        ("GET", [name]) => Response::ok(&shapes::volume(world.volume_on(engine, name)?)),
        ("POST", ["create"]) => {
            let volume = world.create_volume(engine, &body(incoming)?)?;
            Response::json(201, &shapes::volume(volume))
        }
        ("DELETE", [name]) => {
            world.remove_volume(engine, name)?;
            Response::no_content()
        }
        _ => return Err(EngineError::no_page()),
    })
}
