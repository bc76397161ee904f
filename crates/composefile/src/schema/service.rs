//! Services, jobs and hooks.

use super::{
    Holds, Key, Place,
    Type::{Bool, Date, List, Mapping, Null, Number, Text},
    build::{BUILD, MOUNTED_FILES, ULIMITS},
    deploy::{DEPLOY, GPUS},
    leaf::{
        ANY, COMMAND, ENV_FILE_PATH, EXTRA_HOSTS, FLAG, NUMBER, OPTIONS, PAIRS, SIZE, STRICT_FLAG,
        STRICT_NUMBER, TEXT, TEXT_OR_TEXTS, TEXTS, VALUE,
    },
    mount::MOUNTS,
};

/// An entry of the top-level `services`.
pub static SERVICE: Place = Place::mapping(&[
    Key::newer((2, 20, 0), "attach", &FLAG),
    Key::new("container_name", &TEXT),
    Key::new("deploy", &DEPLOY),
    Key::newer((2, 22, 0), "develop", &DEVELOP),
    Key::new("extends", &EXTENDS),
    Key::new("external_links", &TEXTS),
    Key::new("links", &TEXTS),
    Key::newer((2, 30, 0), "post_start", &Place::list_of(&HOOK)),
    Key::newer((5, 3, 0), "pre_start", &Place::list_of(&PRE_START)),
    Key::newer((2, 30, 0), "pre_stop", &Place::list_of(&HOOK)),
    Key::new("profiles", &TEXTS),
    Key::newer((2, 35, 0), "provider", &PROVIDER),
    Key::new("restart", &TEXT),
    Key::new("scale", &NUMBER),
])
.sharing(&[CONTAINER, WORKLOAD]);

/// An entry of the top-level `jobs`.
pub(super) static JOB: Place = Place::mapping(&[
    Key::newer((5, 6, 1), "profiles", &TEXTS),
    Key::newer((5, 6, 1), "triggers", &TRIGGERS),
])
.sharing(&[CONTAINER, WORKLOAD]);

/// An item of `pre_start`: a container that runs first.
static PRE_START: Place =
    Place::mapping(&[Key::newer((5, 3, 0), "per_replica", &FLAG)]).sharing(&[CONTAINER]);

/// What services and jobs have and hooks do not.
static WORKLOAD: &[Key] = &[
    Key::new("build", &BUILD),
    Key::new("depends_on", &DEPENDS_ON),
    Key::new("expose", &NUMBERS),
    Key::new("healthcheck", &HEALTHCHECK),
    Key::new("ports", &PUBLISHED_PORTS),
    Key::new("stdin_open", &FLAG),
    Key::new("tty", &FLAG),
];

/// What every container has.
static CONTAINER: &[Key] = &[
    Key::newer((2, 18, 0), "annotations", &PAIRS),
    Key::new("blkio_config", &BLKIO_CONFIG),
    Key::new("cap_add", &TEXTS),
    Key::new("cap_drop", &TEXTS),
    Key::new("cgroup", &TEXT),
    Key::new("cgroup_parent", &TEXT),
    Key::new("command", &COMMAND),
    Key::new("configs", &MOUNTED_FILES),
    Key::new("cpu_count", &NUMBER),
    Key::new("cpu_percent", &NUMBER),
    Key::new("cpu_period", &NUMBER),
    Key::new("cpu_quota", &NUMBER),
    Key::new("cpu_rt_period", &NUMBER),
    Key::new("cpu_rt_runtime", &NUMBER),
    Key::new("cpu_shares", &NUMBER),
    Key::new("cpus", &NUMBER),
    Key::new("cpuset", &TEXT),
    Key::new("credential_spec", &CREDENTIAL_SPEC),
    Key::new("device_cgroup_rules", &TEXTS),
    Key::new("devices", &DEVICES),
    Key::new("dns", &TEXT_OR_TEXTS),
    Key::new("dns_opt", &TEXTS),
    Key::new("dns_search", &TEXT_OR_TEXTS),
    Key::new("domainname", &TEXT),
    Key::new("entrypoint", &COMMAND),
    Key::new("env_file", &ENV_FILES),
    Key::new("environment", &ENVIRONMENT),
    Key::new("extra_hosts", &EXTRA_HOSTS),
    Key::newer((2, 30, 0), "gpus", &GPUS),
    Key::new("group_add", &NUMBERS),
    Key::new("hostname", &TEXT),
    Key::new("image", &TEXT),
    Key::new("init", &FLAG),
    Key::new("ipc", &TEXT),
    Key::new("isolation", &TEXT),
    Key::newer((2, 32, 0), "label_file", &TEXT_OR_TEXTS),
    Key::new("labels", &PAIRS),
    Key::new("logging", &LOGGING),
    Key::new("mac_address", &TEXT),
    Key::new("mem_limit", &SIZE),
    Key::new("mem_reservation", &SIZE),
    Key::new("mem_swappiness", &SIZE),
    Key::new("memswap_limit", &SIZE),
    Key::newer((2, 38, 0), "models", &MODELS),
    Key::new("network_mode", &TEXT),
    Key::new("networks", &NETWORKS),
    Key::new("oom_kill_disable", &FLAG),
    Key::new("oom_score_adj", &NUMBER),
    Key::new("pid", &TEXT),
    Key::new("pids_limit", &NUMBER),
    Key::new("platform", &TEXT),
    Key::new("privileged", &FLAG),
    Key::new("pull_policy", &TEXT),
    Key::newer((2, 34, 0), "pull_refresh_after", &TEXT),
    Key::new("read_only", &FLAG),
    Key::new("runtime", &TEXT),
    Key::new("secrets", &MOUNTED_FILES),
    Key::new("security_opt", &TEXTS),
    Key::new("shm_size", &SIZE),
    Key::new("stop_grace_period", &TEXT),
    Key::new("stop_signal", &TEXT),
    Key::new("storage_opt", &ANY_MAPPING),
    Key::new("sysctls", &PAIRS),
    Key::new("tmpfs", &TEXT_OR_TEXTS),
    Key::new("ulimits", &ULIMITS),
    Key::newer((2, 37, 2), "use_api_socket", &STRICT_FLAG),
    Key::new("user", &TEXT),
    Key::new("userns_mode", &TEXT),
    Key::new("uts", &TEXT),
    Key::new("volumes", &MOUNTS),
    Key::new("volumes_from", &TEXTS),
    Key::new("working_dir", &TEXT),
];

static NUMBERS: Place = Place::list_of(&NUMBER);

static ANY_MAPPING: Place = Place::mapping_of(&ANY);

static ENVIRONMENT: Place = Place::new(&[List, Mapping])
    .holding(Holds::Environment)
    .listed(&TEXT)
    .valued(&VALUE);

static ENV_FILES: Place = Place::new(&[Text, List])
    .holding(Holds::EnvFile)
    .listed(&ENV_FILE);

static ENV_FILE: Place = Place::new(&[Text, Date, Mapping])
    .holding(Holds::EnvFile)
    .keyed(&[
        Key::newer((2, 30, 0), "format", &TEXT),
        Key::newer((2, 24, 0), "path", &ENV_FILE_PATH),
        Key::newer((2, 24, 0), "required", &Place::new(&[Text, Bool])),
    ]);

static EXTENDS: Place = Place::new(&[Text, Mapping]).keyed(&[
    Key::new("file", &Place::new(&[Null, Text])),
    Key::new("service", &TEXT),
]);

static DEPENDS_ON: Place = Place::new(&[List, Mapping])
    .listed(&TEXT)
    .valued(&Place::mapping(&[
        Key::new("condition", &TEXT),
        Key::newer((2, 20, 0), "required", &FLAG),
        Key::new("restart", &FLAG),
    ]));

static NETWORKS: Place =
    Place::new(&[List, Mapping])
        .listed(&TEXT)
        .valued(&Place::new(&[Null, Mapping]).keyed(&[
            Key::new("aliases", &TEXTS),
            Key::newer((2, 27, 1), "driver_opts", &OPTIONS),
            Key::newer((2, 33, 0), "gw_priority", &STRICT_NUMBER),
            Key::newer((2, 36, 0), "interface_name", &TEXT),
            Key::new("ipv4_address", &TEXT),
            Key::new("ipv6_address", &TEXT),
            Key::new("link_local_ips", &TEXTS),
            Key::newer((2, 23, 2), "mac_address", &TEXT),
            Key::new("priority", &STRICT_NUMBER),
        ]));

static MODELS: Place =
    Place::new(&[List, Mapping])
        .listed(&TEXT)
        .valued(&Place::new(&[Null, Mapping]).keyed(&[
            Key::newer((2, 38, 0), "endpoint_var", &TEXT),
            Key::newer((2, 38, 1), "model_var", &TEXT),
        ]));

static PUBLISHED_PORTS: Place = Place::list_of(&Place::new(&[Number, Text, Mapping]).keyed(&[
    Key::newer((2, 25, 0), "app_protocol", &TEXT),
    Key::new("host_ip", &TEXT),
    Key::new("mode", &TEXT),
    Key::newer((2, 25, 0), "name", &TEXT),
    Key::new("protocol", &TEXT),
    Key::new("published", &NUMBER),
    Key::new("target", &NUMBER),
]));

static HEALTHCHECK: Place = Place::mapping(&[
    Key::new("disable", &FLAG),
    Key::new("interval", &TEXT),
    Key::new("retries", &NUMBER),
    Key::newer((2, 20, 2), "start_interval", &TEXT),
    Key::new("start_period", &TEXT),
    Key::new("test", &TEXT_OR_TEXTS),
    Key::new("timeout", &TEXT),
]);

static LOGGING: Place = Place::mapping(&[
    Key::new("driver", &TEXT),
    Key::new(
        "options",
        &Place::mapping_of(&Place::new(&[Null, Text, Number, Date])),
    ),
]);

static CREDENTIAL_SPEC: Place = Place::mapping(&[
    Key::new("config", &TEXT),
    Key::new("file", &TEXT),
    Key::new("registry", &TEXT),
]);

static DEVICES: Place = Place::list_of(&Place::new(&[Text, Mapping]).keyed(&[
    Key::newer((2, 29, 3), "permissions", &TEXT),
    Key::newer((2, 29, 3), "source", &TEXT),
    Key::newer((2, 29, 3), "target", &TEXT),
]));

static BLKIO_CONFIG: Place = Place::mapping(&[
    Key::new("device_read_bps", &DEVICE_RATES),
    Key::new("device_read_iops", &DEVICE_RATES),
    Key::new("device_write_bps", &DEVICE_RATES),
    Key::new("device_write_iops", &DEVICE_RATES),
    Key::new("weight", &NUMBER),
    Key::new(
        "weight_device",
        &Place::list_of(&Place::mapping(&[
            Key::new("path", &TEXT),
            Key::new("weight", &NUMBER),
        ])),
    ),
]);

static DEVICE_RATES: Place = Place::list_of(&Place::mapping(&[
    Key::new("path", &TEXT),
    Key::new("rate", &SIZE),
]));

static DEVELOP: Place =
    Place::new(&[Null, Mapping]).keyed(&[Key::new("watch", &Place::list_of(&WATCH))]);

static WATCH: Place = Place::mapping(&[
    Key::new("action", &TEXT),
    Key::newer((2, 32, 0), "exec", &HOOK),
    Key::new("ignore", &TEXT_OR_TEXTS),
    Key::newer((2, 34, 0), "include", &TEXT_OR_TEXTS),
    Key::newer((2, 39, 4), "initial_sync", &STRICT_FLAG),
    Key::new("path", &Place::new(&[Text]).holding(Holds::LocalPath)),
    Key::new("target", &TEXT),
]);

/// A command to run in a container that exists.
static HOOK: Place = Place::mapping(&[
    Key::new("command", &COMMAND),
    Key::new("environment", &PAIRS),
    Key::new("privileged", &FLAG),
    Key::new("user", &TEXT),
    Key::new("working_dir", &TEXT),
]);

static PROVIDER: Place = Place::mapping(&[
    Key::newer(
        (2, 35, 0),
        "options",
        &Place::mapping_of(
            &Place::new(&[Text, Bool, Number, List]).listed(&Place::new(&[Text, Bool, Number])),
        ),
    ),
    Key::newer((2, 35, 0), "type", &TEXT),
]);

static TRIGGERS: Place = Place::mapping(&[
    Key::newer((5, 6, 1), "manual", &FLAG),
    Key::newer(
        (5, 6, 1),
        "schedule",
        &Place::list_of(&Place::new(&[Text, Mapping]).keyed(&[
            Key::newer((5, 6, 1), "concurrency", &TEXT),
            Key::newer((5, 6, 1), "cron", &TEXT),
            Key::newer((5, 6, 1), "missed_fires", &TEXT),
            Key::newer((5, 6, 1), "timezone", &TEXT),
        ])),
    ),
]);
