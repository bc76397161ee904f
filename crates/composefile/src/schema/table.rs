//! The keys of each place, and what their values hold.
//!
//! The keys of a mapping are listed if one of its values holds something, if one of them is newer than the mapping, or if people
//! often write it. Other mappings are [`PLAIN`].

use super::{Holds, SchemaNode};

/// The whole file.
pub static ROOT: SchemaNode = SchemaNode::plain("models@2.38.0 name version").and(&[
    ("configs", &SchemaNode::each(&CONFIG)),
    ("include@2.19.1", &SchemaNode::list(&INCLUDE)),
    ("jobs@5.6.1", &SchemaNode::each(&JOB)),
    ("networks", &SchemaNode::each(&NETWORK)),
    ("secrets", &SchemaNode::each(&SECRET)),
    ("services", &SchemaNode::each(&SERVICE)),
    ("volumes", &SchemaNode::each(&VOLUME)),
]);

/// An item of `include`.
pub static INCLUDE: SchemaNode = SchemaNode::plain("path project_directory").and(&[(
    "env_file",
    &SchemaNode::list(&ENV_PATH).holding(Holds::EnvFile),
)]);

/// An entry of the top-level `services`.
pub static SERVICE: SchemaNode = SchemaNode::plain(
    "attach@2.20.0 container_name extends external_links links post_start@2.30.0 pre_stop@2.30.0 profiles provider@2.35.0 \
    restart scale",
)
.and(&[
    ("deploy", &DEPLOY),
    ("develop@2.22.0", &DEVELOP),
    ("pre_start@5.3.0", &SchemaNode::list(&PRE_START)),
])
.sharing(&[&CONTAINER, &WORKLOAD]);

/// An entry of the top-level `jobs`.
static JOB: SchemaNode =
    SchemaNode::plain("profiles@5.6.1 triggers@5.6.1").sharing(&[&CONTAINER, &WORKLOAD]);

/// An item of `pre_start`: a container that runs first.
static PRE_START: SchemaNode = SchemaNode::plain("per_replica@5.3.0").sharing(&[&CONTAINER]);

/// What services and jobs have and hooks do not.
static WORKLOAD: SchemaNode = SchemaNode::plain("expose stdin_open tty").and(&[
    ("build", &BUILD),
    ("depends_on", &SchemaNode::each(&DEPENDENCY)),
    ("healthcheck", &HEALTHCHECK),
    ("ports", &SchemaNode::list(&PORT)),
]);

/// What every container has.
static CONTAINER: SchemaNode = SchemaNode::plain(
    "annotations@2.18.0 blkio_config cap_add cap_drop cgroup cgroup_parent command configs cpu_count cpu_percent cpu_period \
    cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares cpus cpuset credential_spec device_cgroup_rules dns dns_opt dns_search \
    domainname entrypoint extra_hosts gpus@2.30.0 group_add hostname image init ipc isolation label_file@2.32.0 labels logging \
    mac_address mem_limit mem_reservation mem_swappiness memswap_limit models@2.38.0 network_mode oom_kill_disable \
    oom_score_adj pid pids_limit platform privileged pull_policy pull_refresh_after@2.34.0 read_only runtime secrets \
    security_opt shm_size stop_grace_period stop_signal storage_opt sysctls tmpfs ulimits umask@5.7.0 use_api_socket@2.37.2 \
    user userns_mode uts volumes_from working_dir",
)
.and(&[
    ("devices", &SchemaNode::list(&DEVICE)),
    ("env_file", &SchemaNode::list(&ENV_FILE).holding(Holds::EnvFile)),
    ("environment", &PLAIN),
    ("networks", &SchemaNode::each(&ENDPOINT)),
    ("volumes", &SchemaNode::list(&MOUNT).holding(Holds::Mount)),
]);

/// A value that holds nothing and whose keys, if it has any, are not checked.
pub(super) static PLAIN: SchemaNode = SchemaNode::new(Holds::Plain);

pub(super) static EXTENSION: SchemaNode = SchemaNode {
    any_key: Some(&EXTENSION),
    item: Some(&EXTENSION),
    ..SchemaNode::new(Holds::Extension)
};

static ENV_PATH: SchemaNode = SchemaNode::new(Holds::EnvFile);

static ENV_FILE: SchemaNode = SchemaNode::plain("format@2.30.0 required@2.24.0")
    .and(&[("path@2.24.0", &ENV_PATH)])
    .holding(Holds::EnvFile);

static DEPENDENCY: SchemaNode = SchemaNode::plain("condition required@2.20.0 restart");

static ENDPOINT: SchemaNode = SchemaNode::plain(
    "aliases driver_opts@2.27.1 gw_priority@2.33.0 interface_name@2.36.0 ipv4_address ipv6_address link_local_ips \
    mac_address@2.23.2 priority use_service_name_alias@5.7.0",
);

static PORT: SchemaNode =
    SchemaNode::plain("app_protocol@2.25.0 host_ip mode name@2.25.0 protocol published target");

static HEALTHCHECK: SchemaNode =
    SchemaNode::plain("disable interval retries start_interval@2.20.2 start_period test timeout");

static DEVICE: SchemaNode = SchemaNode::plain("permissions@2.29.3 source@2.29.3 target@2.29.3");

static DEVELOP: SchemaNode =
    SchemaNode::new(Holds::Plain).and(&[("watch", &SchemaNode::list(&WATCH))]);

static WATCH: SchemaNode =
    SchemaNode::plain("action exec@2.32.0 ignore include@2.34.0 initial_sync@2.39.4 target")
        .and(&[("path", &SchemaNode::new(Holds::LocalPath))]);

static BUILD: SchemaNode = SchemaNode::plain(
    "additional_contexts args cache_from cache_to context dockerfile dockerfile_inline entitlements@2.27.0 extra_hosts \
    isolation labels network no_cache no_cache_filter@5.0.0 platforms privileged provenance@2.39.0 pull sbom@2.39.0 secrets \
    shm_size ssh tags target ulimits@2.23.1",
);

static DEPLOY: SchemaNode = SchemaNode::plain(
    "endpoint_mode labels mode placement replicas resources restart_policy rollback_config update_config",
);

static MOUNT: SchemaNode =
    SchemaNode::plain("consistency image@2.35.0 read_only target tmpfs type")
        .and(&[
            ("bind", &BIND),
            ("source", &SchemaNode::new(Holds::MountSource)),
            ("volume", &MOUNTED_VOLUME),
        ])
        .holding(Holds::Mount);

static BIND: SchemaNode =
    SchemaNode::plain("create_host_path propagation recursive@2.30.0 selinux");

static MOUNTED_VOLUME: SchemaNode = SchemaNode::plain("labels@2.35.0 nocopy subpath@2.25.0");

static VOLUME: SchemaNode =
    SchemaNode::plain("driver external labels name").and(&[("driver_opts", &VOLUME_OPTIONS)]);

static VOLUME_OPTIONS: SchemaNode =
    SchemaNode::each(&PLAIN).and(&[("device", &SchemaNode::new(Holds::Device))]);

static NETWORK: SchemaNode = SchemaNode::plain(
    "attachable driver driver_opts enable_ipv4@2.33.0 enable_ipv6 external internal ipam labels name",
);

static SECRET: SchemaNode =
    SchemaNode::plain("driver driver_opts environment external labels name template_driver")
        .and(&[("file", &SchemaNode::new(Holds::HostPath))]);

static CONFIG: SchemaNode =
    SchemaNode::plain("content@2.23.1 environment@2.23.1 external labels name template_driver")
        .and(&[("file", &SchemaNode::new(Holds::HostPath))]);
