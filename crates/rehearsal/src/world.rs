//! The model: the stacks that Portainer knows and the containers that an engine runs, all in memory.
//!
//! Invariant: pure, but for the time at which a new world begins. A host path exists only if [`World::host`] lists it.
//!
//! The modules form five layers. A module imports only from layers further down, and from modules
//! further right in its own row.
//!
//! | layer | modules |
//! |---|---|
//! | setup | `seed` (outside of `world`), `setup` |
//! | Portainer | `stacks`, `by_hand` |
//! | Compose | `converge`, `create`, `body`, `resolve`, `service`, `compose_files`, `merge`, `canonical`, `ports`, `typed`, `values` |
//! | engine | `containers`, `networks`, `volumes`, `images`, `files`, `settings` |
//! | state | `state`, `clock`, `container`, `entities`, `record`, `errors` |
#![deny(clippy::disallowed_methods)]

mod body;
mod by_hand;
mod canonical;
mod clock;
mod compose_files;
mod container;
mod containers;
mod converge;
mod create;
mod entities;
mod errors;
mod files;
mod images;
mod merge;
mod networks;
mod ports;
mod record;
mod resolve;
mod service;
mod settings;
mod setup;
mod stacks;
mod state;
mod typed;
mod values;
mod volumes;

pub(crate) use self::{clock::clock, entities::Endpoint, images::tagged, values::texts};
pub use self::{
    compose_files::ComposeFiles,
    container::Container,
    entities::{ADMIN, config_hash},
    errors::Refused,
    record::{Files, Kind, Record, ResourceControl, Status, Variable, Work},
    resolve::{COMPOSE_VERSION, config_of_files},
    state::{Era, World},
};
