//! The model: the stacks that Portainer knows and the containers that an engine runs, all in memory.
//!
//! Invariant: pure, but for the time at which a new world begins. [`World::advance`] sets the clock. A host path exists only if [`World::host`] lists it.
//!
//! The modules form five layers. A module imports only from layers further down, and from modules
//! further right in its own row.
//!
//! | layer | modules |
//! |---|---|
//! | setup | `seed` (outside of `world`), `setup` |
//! | Portainer | `stacks`, `in_flight`, `by_hand`, `git` |
//! | Compose | `converge`, `create`, `body`, `deployment`, `resolve`, `service`, `compose_files`, `merge`, `canonical`, `ports`, `typed`, `values` |
//! | engine | `containers`, `networks`, `volumes`, `images`, `files`, `settings` |
//! | state | `state`, `clock`, `work`, `container`, `entities`, `record`, `repository`, `errors` |
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
mod deployment;
mod entities;
mod errors;
mod files;
mod git;
mod images;
mod in_flight;
mod merge;
mod networks;
mod ports;
mod record;
mod repository;
mod resolve;
mod service;
mod settings;
mod setup;
mod stacks;
mod state;
mod typed;
mod values;
mod volumes;
mod work;

pub(crate) use self::{
    clock::{clock, millis},
    containers::AnonymousVolumes,
    entities::{ApiKey, Endpoint, Network, Role},
    errors::Refused,
    images::tagged,
    values::{labels, texts},
    work::{Ending, Kind, Work},
};
pub use self::{
    compose_files::ComposeFiles,
    container::Container,
    deployment::COMPOSE_VERSION,
    entities::config_hash,
    record::{Record, ResourceControl, Status, Variable},
    repository::{CloneError, Fetch, Files, GitClone, GitRepository, GitSettings},
    resolve::config_of_files,
    state::{Era, Health, World},
};
