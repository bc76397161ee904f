//! The passes of the faithful rewrite. Each reads the original text, and adds the edits that it needs and the problems that
//! block it.
//!
//! Invariant: no pass knows another, except that a later one may edit what an earlier one has inlined.

mod anonymous_volumes;
mod bare_variables;
mod bind_mounts;
mod builds;
mod env_files;
mod host;
mod paths;
mod scalars;
mod several_files;
mod shell_options;
mod shell_variables;

use composefile::{
    document::{Document, Node, NodeKind},
    reader::Reader,
};

use super::{findings::Findings, runs::Runs};

type Pass = for<'d> fn(&Reader<'d, '_>, &mut Findings<'d>);

const PASSES: [Pass; 8] = [
    // Blocks on, or reports, what no edit can carry over.
    several_files::other_files,
    host::files_of_this_host,
    shell_options::shell_options,
    // Edits the values that mean something else in Portainer.
    scalars::scalars,
    shell_variables::shell_variables,
    bare_variables::bare_variables,
    paths::relative_paths,
    builds::builds,
];

/// Runs every pass.
pub(super) fn run<'d>(reader: &Reader<'d, '_>, runs: &Runs) -> Findings<'d> {
    let mut found = Findings::new(reader);
    for pass in PASSES {
        pass(reader, &mut found);
    }
    env_files::env_files(reader, runs, &mut found);
    anonymous_volumes::anonymous_volumes(reader, runs, &mut found);
    bind_mounts::long_binds(reader, runs, &mut found);
    found
}

/// The scalars that are values, where they are written.
pub(in crate::rewrite) fn values<'d>(document: &'d Document<'d>) -> impl Iterator<Item = Node<'d>> {
    let mut is_key = vec![false; document.nodes().len()];
    for entry in document.nodes().flat_map(Node::own_entries) {
        is_key[entry.key.id().index()] = true;
    }
    let scalars = document.nodes();
    let scalars = scalars.filter(|node| matches!(node.kind(), NodeKind::Scalar(_)));
    scalars.filter(move |node| !is_key[node.id().index()])
}
