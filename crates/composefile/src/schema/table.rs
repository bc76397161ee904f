//! The keys of each place, and what their values hold.

use super::{Holds, Place};

/// The whole file.
pub static ROOT: Place = Place::plain("name version").and(&[
    ("configs", &Place::each(&CONFIG)),
    ("include@2.19.1", &Place::list(&INCLUDE)),
    ("jobs@5.6.1", &Place::each(&JOB)),
    ("models@2.38.0", &Place::each(&MODEL)),
    ("networks", &Place::each(&NETWORK)),
    ("secrets", &Place::each(&SECRET)),
    ("services", &Place::each(&SERVICE)),
    ("volumes", &Place::each(&VOLUME)),
]);

/// An item of `include`.
pub static INCLUDE: Place = Place::plain("path project_directory")
    .and(&[("env_file", &Place::list(&ENV_PATH).holding(Holds::EnvFile))]);

/// An entry of the top-level `services`.
pub static SERVICE: Place =
    Place::plain("attach@2.20.0 container_name external_links links profiles restart scale")
        .and(&[
            ("deploy", &DEPLOY),
            ("develop@2.22.0", &DEVELOP),
            ("extends", &Place::plain("file service")),
            ("post_start@2.30.0", &Place::list(&HOOK)),
            ("pre_start@5.3.0", &Place::list(&PRE_START)),
            ("pre_stop@2.30.0", &Place::list(&HOOK)),
            (
                "provider@2.35.0",
                &Place::plain("options@2.35.0 type@2.35.0"),
            ),
        ])
        .sharing(&[&CONTAINER, &WORKLOAD]);

/// An entry of the top-level `jobs`.
static JOB: Place = Place::plain("profiles@5.6.1")
    .and(&[("triggers@5.6.1", &TRIGGERS)])
    .sharing(&[&CONTAINER, &WORKLOAD]);

/// An item of `pre_start`: a container that runs first.
static PRE_START: Place = Place::plain("per_replica@5.3.0").sharing(&[&CONTAINER]);

/// What services and jobs have and hooks do not.
static WORKLOAD: Place = Place::plain("expose stdin_open tty").and(&[
    ("build", &BUILD),
    (
        "depends_on",
        &Place::each(&Place::plain("condition required@2.20.0 restart")),
    ),
    ("healthcheck", &HEALTHCHECK),
    ("ports", &Place::list(&PORT)),
]);

/// What every container has.
static CONTAINER: Place = Place::plain(
    "annotations@2.18.0 cap_add cap_drop cgroup cgroup_parent command cpu_count cpu_percent cpu_period cpu_quota \
    cpu_rt_period cpu_rt_runtime cpu_shares cpus cpuset device_cgroup_rules dns dns_opt dns_search domainname entrypoint \
    extra_hosts gpus@2.30.0 group_add hostname image init ipc isolation label_file@2.32.0 labels mac_address mem_limit \
    mem_reservation mem_swappiness memswap_limit network_mode oom_kill_disable oom_score_adj pid pids_limit platform \
    privileged pull_policy pull_refresh_after@2.34.0 read_only runtime security_opt shm_size stop_grace_period stop_signal \
    storage_opt sysctls tmpfs use_api_socket@2.37.2 user userns_mode uts volumes_from working_dir",
)
.and(&[
    ("blkio_config", &BLKIO_CONFIG),
    ("configs", &Place::list(&MOUNTED_FILE)),
    ("credential_spec", &Place::plain("config file registry")),
    ("devices", &Place::list(&DEVICE)),
    ("env_file", &Place::list(&ENV_FILE).holding(Holds::EnvFile)),
    ("environment", &Place::new(Holds::Environment)),
    ("logging", &Place::plain("driver options")),
    ("models@2.38.0", &Place::each(&USED_MODEL)),
    ("networks", &Place::each(&ENDPOINT)),
    ("secrets", &Place::list(&MOUNTED_FILE)),
    ("ulimits", &ULIMITS),
    ("volumes", &Place::list(&MOUNT).holding(Holds::Mount)),
]);

/// A value that holds nothing and whose keys, if it has any, are not checked.
pub(super) static PLAIN: Place = Place::new(Holds::Plain);

pub(super) static EXTENSION: Place = Place {
    any_key: Some(&EXTENSION),
    item: Some(&EXTENSION),
    ..Place::new(Holds::Extension)
};

static ENV_PATH: Place = Place::new(Holds::EnvFile);

static ENV_FILE: Place = Place::plain("format@2.30.0 required@2.24.0")
    .and(&[("path@2.24.0", &ENV_PATH)])
    .holding(Holds::EnvFile);

static ENDPOINT: Place = Place::plain(
    "aliases driver_opts@2.27.1 gw_priority@2.33.0 interface_name@2.36.0 ipv4_address ipv6_address link_local_ips \
    mac_address@2.23.2 priority",
);

static USED_MODEL: Place = Place::plain("endpoint_var@2.38.0 model_var@2.38.1");

static PORT: Place =
    Place::plain("app_protocol@2.25.0 host_ip mode name@2.25.0 protocol published target");

static HEALTHCHECK: Place =
    Place::plain("disable interval retries start_interval@2.20.2 start_period test timeout");

static DEVICE: Place = Place::plain("permissions@2.29.3 source@2.29.3 target@2.29.3");

static BLKIO_CONFIG: Place = Place::plain("weight").and(&[
    ("device_read_bps", &RATES),
    ("device_read_iops", &RATES),
    ("device_write_bps", &RATES),
    ("device_write_iops", &RATES),
    ("weight_device", &Place::list(&Place::plain("path weight"))),
]);

static RATES: Place = Place::list(&Place::plain("path rate"));

static DEVELOP: Place = Place::new(Holds::Plain).and(&[("watch", &Place::list(&WATCH))]);

static WATCH: Place =
    Place::plain("action ignore include@2.34.0 initial_sync@2.39.4 target").and(&[
        ("exec@2.32.0", &HOOK),
        ("path", &Place::new(Holds::LocalPath)),
    ]);

/// A command to run in a container that exists.
static HOOK: Place = Place::plain("command environment privileged user working_dir");

static TRIGGERS: Place =
    Place::plain("manual@5.6.1").and(&[("schedule@5.6.1", &Place::list(&SCHEDULE))]);

static SCHEDULE: Place =
    Place::plain("concurrency@5.6.1 cron@5.6.1 missed_fires@5.6.1 timezone@5.6.1");

static BUILD: Place = Place::plain(
    "additional_contexts args cache_from cache_to context dockerfile dockerfile_inline entitlements@2.27.0 extra_hosts \
    isolation labels network no_cache no_cache_filter@5.0.0 platforms privileged provenance@2.39.0 pull sbom@2.39.0 \
    shm_size ssh tags target",
)
.and(&[("secrets", &Place::list(&MOUNTED_FILE)), ("ulimits@2.23.1", &ULIMITS)])
.holding(Holds::Build);

/// A secret or config of a container or build.
static MOUNTED_FILE: Place = Place::plain("gid mode source target uid");

static ULIMITS: Place = Place::each(&Place::plain("hard soft"));

static DEPLOY: Place = Place::plain("endpoint_mode labels mode replicas").and(&[
    ("placement", &PLACEMENT),
    ("resources", &RESOURCES),
    (
        "restart_policy",
        &Place::plain("condition delay max_attempts window"),
    ),
    ("rollback_config", &UPDATE_CONFIG),
    ("update_config", &UPDATE_CONFIG),
]);

static PLACEMENT: Place = Place::plain("constraints max_replicas_per_node")
    .and(&[("preferences", &Place::list(&Place::plain("spread")))]);

static RESOURCES: Place = Place::new(Holds::Plain).and(&[
    ("limits", &Place::plain("cpus memory pids")),
    ("reservations", &RESERVATIONS),
]);

static RESERVATIONS: Place = Place::plain("cpus memory").and(&[
    ("devices", &Place::list(&RESERVED_DEVICE)),
    ("generic_resources", &Place::list(&GENERIC_RESOURCE)),
]);

static RESERVED_DEVICE: Place = Place::plain("capabilities count device_ids driver options");

static GENERIC_RESOURCE: Place =
    Place::new(Holds::Plain).and(&[("discrete_resource_spec", &Place::plain("kind value"))]);

static UPDATE_CONFIG: Place =
    Place::plain("delay failure_action max_failure_ratio monitor order parallelism");

static MOUNT: Place = Place::plain("consistency read_only target type")
    .and(&[
        (
            "bind",
            &Place::plain("create_host_path propagation recursive@2.30.0 selinux"),
        ),
        ("image@2.35.0", &Place::plain("subpath@2.35.0")),
        ("source", &Place::new(Holds::MountSource)),
        ("tmpfs", &Place::plain("mode size")),
        (
            "volume",
            &Place::plain("labels@2.35.0 nocopy subpath@2.25.0"),
        ),
    ])
    .holding(Holds::Mount);

static VOLUME: Place = Place::plain("driver external labels name").and(&[(
    "driver_opts",
    &Place::each(&PLAIN).and(&[("device", &Place::new(Holds::Device))]),
)]);

static NETWORK: Place = Place::plain(
    "attachable driver driver_opts enable_ipv4@2.33.0 enable_ipv6 external internal labels name",
)
.and(&[("ipam", &IPAM)]);

static IPAM: Place = Place::plain("driver options").and(&[("config", &Place::list(&SUBNET))]);

static SUBNET: Place = Place::plain("aux_addresses gateway ip_range subnet");

static SECRET: Place =
    Place::plain("driver driver_opts environment external labels name template_driver")
        .and(&[("file", &Place::new(Holds::HostPath))]);

static CONFIG: Place =
    Place::plain("content@2.23.1 environment@2.23.1 external labels name template_driver")
        .and(&[("file", &Place::new(Holds::HostPath))]);

static MODEL: Place =
    Place::plain("context_size@2.38.0 model@2.38.0 name@2.38.0 runtime_flags@2.38.0");
