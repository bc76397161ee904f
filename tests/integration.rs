//! The real binary against the rehearsal's manager and engine; one file a feature.

#[path = "integration/access.rs"]
mod access;
#[path = "integration/adopt.rs"]
mod adopt;
#[path = "integration/adopt_all.rs"]
mod adopt_all;
#[path = "integration/backup.rs"]
mod backup;
#[path = "integration/bench.rs"]
mod bench;
#[path = "integration/beyond.rs"]
mod beyond;
#[path = "integration/blockers.rs"]
mod blockers;
#[path = "integration/calling.rs"]
mod calling;
#[path = "integration/calls.rs"]
mod calls;
#[path = "integration/certificates.rs"]
mod certificates;
#[path = "integration/compose.rs"]
mod compose;
#[path = "integration/config.rs"]
mod config;
#[path = "integration/confirming.rs"]
mod confirming;
#[path = "integration/disk.rs"]
mod disk;
#[path = "integration/doctor.rs"]
mod doctor;
#[path = "integration/edited.rs"]
mod edited;
#[path = "integration/engines.rs"]
mod engines;
#[path = "integration/environment.rs"]
mod environment;
#[path = "integration/environments.rs"]
mod environments;
#[path = "integration/export.rs"]
mod export;
#[path = "integration/export_containers.rs"]
mod export_containers;
#[path = "integration/export_portainer_data.rs"]
mod export_portainer_data;
#[path = "integration/exposure.rs"]
mod exposure;
#[path = "integration/foreign.rs"]
mod foreign;
#[path = "integration/git.rs"]
mod git;
#[path = "integration/headers.rs"]
mod headers;
#[path = "integration/hostile.rs"]
mod hostile;
#[path = "integration/hostile_peers.rs"]
mod hostile_peers;
#[path = "integration/interrupted.rs"]
mod interrupted;
#[path = "integration/kept.rs"]
mod kept;
#[path = "integration/limits.rs"]
mod limits;
#[path = "integration/list.rs"]
mod list;
#[path = "integration/listing.rs"]
mod listing;
#[path = "integration/newer.rs"]
mod newer;
#[path = "integration/order.rs"]
mod order;
#[path = "integration/output.rs"]
mod output;
#[path = "integration/plan.rs"]
mod plan;
#[path = "integration/proxies.rs"]
mod proxies;
#[path = "integration/reading.rs"]
mod reading;
#[path = "integration/refusing.rs"]
mod refusing;
#[path = "integration/rehearse.rs"]
mod rehearse;
#[path = "integration/render.rs"]
mod render;
#[path = "integration/requests.rs"]
mod requests;
#[path = "integration/restore.rs"]
mod restore;
#[path = "integration/restoring.rs"]
mod restoring;
#[path = "integration/rights.rs"]
mod rights;
#[path = "integration/rules.rs"]
mod rules;
#[path = "integration/several.rs"]
mod several;
#[path = "integration/shapes.rs"]
mod shapes;
#[path = "integration/terminal.rs"]
mod terminal;
#[path = "integration/text.rs"]
mod text;
#[path = "integration/transport.rs"]
mod transport;
#[path = "integration/writing.rs"]
mod writing;
