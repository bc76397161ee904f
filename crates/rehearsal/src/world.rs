//! The model: the stacks that Portainer knows and the containers that an engine runs, all in memory.
//!
//! Invariant: pure. [`World::advance`] sets the clock. A host path exists only if [`World::host`] lists it.
//!
//! The modules form five layers. A module imports only from layers further down, and from modules
//! further right in its own row.
//!
//! | layer | modules |
//! |---|---|
//! | setup | `seed` (outside of `world`), `setup`, `clock`, `summary` |
//! | Portainer | `stacks`, `requests` |
//! | Compose | `asked`, `by_hand`, `converge`, `create`, `body`, `deployment`, `resolve`, `service`, `mounts`, `ports`, `context`, `values` |
//! | engine | `containers`, `networks`, `volumes`, `images`, `files`, `settings` |
//! | state | `state`, `container`, `events`, `entities`, `in_flight`, `record`, `errors` |
#![deny(clippy::disallowed_methods)]

mod asked;
mod body;
mod by_hand;
mod clock;
mod container;
mod containers;
mod context;
mod converge;
mod create;
mod deployment;
mod entities;
mod errors;
mod events;
mod files;
mod images;
mod in_flight;
mod mounts;
mod networks;
mod ports;
mod record;
mod requests;
mod resolve;
mod service;
mod settings;
mod setup;
mod stacks;
mod state;
mod summary;
#[cfg(test)]
mod tests;
mod values;
mod volumes;

pub(crate) use self::{
    container::{Attachment, Mount, MountType, Port},
    containers::{AnonymousVolumes, Effect},
    entities::{ApiKey, Image, Network, Role, Volume},
    errors::{EngineError, PortainerError},
    images::tagged,
    in_flight::{Accepted, Ending, NamedVolumes, Work},
};
pub use self::{
    container::{Change, Container},
    events::{Action, Event},
    record::{Record, Status, Update, Variable},
    state::{Era, Health, LocalCompose, World},
};
