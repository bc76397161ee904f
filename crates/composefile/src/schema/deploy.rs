//! `deploy`, and the devices and resources that other keys reserve in the same form.

use super::{
    Key, Place,
    Type::{Date, List, Mapping, Null, Text},
    leaf::{ANY, NUMBER, PAIRS, TEXT, TEXTS},
};

pub(super) static DEPLOY: Place = Place::new(&[Null, Mapping]).keyed(&[
    Key::new("endpoint_mode", &TEXT),
    Key::new("labels", &PAIRS),
    Key::new("mode", &TEXT),
    Key::new("placement", &PLACEMENT),
    Key::new("replicas", &NUMBER),
    Key::new("resources", &RESOURCES),
    Key::new("restart_policy", &RESTART_POLICY),
    Key::new("rollback_config", &UPDATE_CONFIG),
    Key::new("update_config", &UPDATE_CONFIG),
]);

static PLACEMENT: Place = Place::mapping(&[
    Key::new("constraints", &TEXTS),
    Key::new("max_replicas_per_node", &NUMBER),
    Key::new(
        "preferences",
        &Place::list_of(&Place::mapping(&[Key::new("spread", &TEXT)])),
    ),
]);

static RESOURCES: Place = Place::mapping(&[
    Key::new(
        "limits",
        &Place::mapping(&[
            Key::new("cpus", &NUMBER),
            Key::new("memory", &MEMORY),
            Key::new("pids", &NUMBER),
        ]),
    ),
    Key::new(
        "reservations",
        &Place::mapping(&[
            Key::new("cpus", &NUMBER),
            Key::new("devices", &Place::list_of(&Place::mapping(DEVICE))),
            Key::new("generic_resources", &Place::list_of(&GENERIC_RESOURCE)),
            Key::new("memory", &MEMORY),
        ]),
    ),
]);

static MEMORY: Place = Place::new(&[Text, Date]);

static GENERIC_RESOURCE: Place = Place::mapping(&[Key::new(
    "discrete_resource_spec",
    &Place::mapping(&[Key::new("kind", &TEXT), Key::new("value", &NUMBER)]),
)]);

const DEVICE: &[Key] = &[
    Key::new("capabilities", &TEXTS),
    Key::new("count", &NUMBER),
    Key::new("device_ids", &TEXTS),
    Key::new("driver", &TEXT),
    Key::new("options", &PAIRS),
];

pub(super) static GPUS: Place =
    Place::new(&[Text, List]).listed(&Place::mapping_of(&ANY).keyed(DEVICE));

static RESTART_POLICY: Place = Place::mapping(&[
    Key::new("condition", &TEXT),
    Key::new("delay", &TEXT),
    Key::new("max_attempts", &NUMBER),
    Key::new("window", &TEXT),
]);

static UPDATE_CONFIG: Place = Place::mapping(&[
    Key::new("delay", &TEXT),
    Key::new("failure_action", &TEXT),
    Key::new("max_failure_ratio", &NUMBER),
    Key::new("monitor", &TEXT),
    Key::new("order", &TEXT),
    Key::new("parallelism", &NUMBER),
]);
