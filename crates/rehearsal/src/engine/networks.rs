//! `/networks`

use serde_json::{Value, json};

use super::{
    input::{body, filters},
    shapes::network as shapes,
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
    let named = |of: &Value| of["Container"].as_str().unwrap_or_default().to_owned();
    Ok(match (incoming.method.as_str(), parts) {
        ("GET", []) => Response::ok(&shapes::networks(world, engine, &filters(incoming)?)),
        ("GET", [name]) => Response::ok(&shapes::network(world, world.network_on(engine, name)?)),
        ("POST", ["create"]) => {
            let id = world.create_network(engine, &body(incoming)?)?;
            Response::json(201, &json!({ "Id": id, "Warning": "" }))
        }
        ("POST", [name, "connect"]) => {
            let body = body(incoming)?;
            world.connect(engine, name, &named(&body), &body["EndpointConfig"])?;
            Response::new(200, "text/plain; charset=utf-8", "")
        }
        ("POST", [name, "disconnect"]) => {
            world.disconnect(engine, name, &named(&body(incoming)?))?;
            Response::new(200, "text/plain; charset=utf-8", "")
        }
        ("DELETE", [name]) => {
            world.remove_network(engine, name)?;
            Response::no_content()
        }
        _ => return Err(EngineError::no_page()),
    })
}
