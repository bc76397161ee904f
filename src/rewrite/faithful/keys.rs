//! Keys that compose does not know: it refuses the stack, but a newer one may know them. So they are said, and
//! no more.
#![deny(clippy::disallowed_methods)]

use std::collections::HashSet;

use super::findings::Findings;
use composefile::{document::Node, reader::Reader};

/// The keys of a compose file (5.6).
const OF_THE_FILE: &str = "configs include models name networks secrets services version volumes";

/// The keys of a service (5.6).
const OF_A_SERVICE: &str = "\
    annotations attach blkio_config build cap_add cap_drop cgroup cgroup_parent command configs \
    container_name cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares cpus \
    cpuset credential_spec depends_on deploy develop device_cgroup_rules devices dns dns_opt dns_search \
    domainname entrypoint env_file environment expose extends external_links extra_hosts gpus group_add \
    healthcheck hostname image init ipc isolation label_file labels links logging mac_address mem_limit \
    mem_reservation mem_swappiness memswap_limit models network_mode networks oom_kill_disable oom_score_adj \
    pid pids_limit platform ports post_start pre_start pre_stop privileged profiles provider pull_policy \
    pull_refresh_after read_only restart runtime scale secrets security_opt shm_size stdin_open \
    stop_grace_period stop_signal storage_opt sysctls tmpfs tty ulimits use_api_socket user userns_mode uts \
    volumes volumes_from working_dir";

/// Reports the keys of the file and of its services that Compose 5.6 does not have.
pub(super) fn unknown_keys<'d>(reader: &Reader<'d, '_>) -> Findings<'d> {
    let mut found = Findings::default();
    let root = reader.document.root();
    report(root.into_iter(), OF_THE_FILE, &mut found);
    let services = reader.services.iter();
    report(
        services.map(|service| service.node),
        OF_A_SERVICE,
        &mut found,
    );
    found
}

fn report<'d>(mappings: impl Iterator<Item = Node<'d>>, known: &str, found: &mut Findings<'_>) {
    let known: HashSet<&str> = known.split(' ').collect();
    for entry in mappings.flat_map(Node::entries) {
        let name = entry.name().unwrap_or_default();
        if !known.contains(name) && !name.starts_with("x-") {
            found.notice(
                entry.key.line(),
                format!("unknown key `{name}`: some Compose versions reject it"),
            );
        }
    }
}
