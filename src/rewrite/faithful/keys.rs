//! Keys that compose does not know: it refuses the stack, but a newer one may know them. So they are said, and
//! no more.
#![deny(clippy::disallowed_methods)]

use std::collections::HashSet;

use super::{Notice, rewriter::Rewriter};
use composefile::document::Node;

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

impl<'d> Rewriter<'d, '_> {
    /// Says which keys of the file and of its services compose does not know.
    pub(super) fn unknown_keys(&mut self) {
        let root = self.document.root();
        self.notice_unknown(root.into_iter(), OF_THE_FILE);
        let services = self.services.clone().into_iter();
        self.notice_unknown(services.map(|service| service.node), OF_A_SERVICE);
    }

    fn notice_unknown(&mut self, mappings: impl Iterator<Item = Node<'d>>, known: &str) {
        let known: HashSet<&str> = known.split(' ').collect();
        for entry in mappings.flat_map(Node::entries) {
            let name = entry.name().unwrap_or_default();
            if !known.contains(name) && !name.starts_with("x-") {
                self.notices.push(Notice {
                    line: Some(entry.key.line()),
                    message: format!(
                        "compose 5.6 knows no key {name} here, and one that does not know it refuses the stack"
                    ),
                });
            }
        }
    }
}
