//! The real binary against the rehearsal's manager and engine; one file a feature.

mod answers;
mod bench;
mod calls;
mod disk;
mod git_server;
mod hostile;
mod list;
mod listing;
mod newer;
mod plan;
mod rehearse;
mod requests;
mod restore;
mod rules;
mod schema;
mod screen;
mod screenshot;
mod several;
