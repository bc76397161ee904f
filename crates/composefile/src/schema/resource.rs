//! The entries of the top-level `volumes`, `networks`, `secrets`, `configs` and `models`.

use super::{
    Holds, Key, Place,
    Type::{Bool, Date, Mapping, Null, Number, Text},
    leaf::{ANY, FLAG, OPTION, OPTIONS, PAIRS, STRICT_NUMBER, TEXT, TEXTS},
};

pub(super) static VOLUME: Place = Place::new(&[Null, Mapping]).keyed(&[
    Key::new("driver", &TEXT),
    Key::new(
        "driver_opts",
        &Place::mapping_of(&OPTION).keyed(&[Key::new("device", &DEVICE)]),
    ),
    Key::new("external", &EXTERNAL),
    Key::new("labels", &PAIRS),
    Key::new("name", &TEXT),
]);

static DEVICE: Place = Place::new(&[Text, Number, Date]).holding(Holds::Device);

pub(super) static NETWORK: Place = Place::new(&[Null, Mapping]).keyed(&[
    Key::new("attachable", &FLAG),
    Key::new("driver", &TEXT),
    Key::new("driver_opts", &OPTIONS),
    Key::newer((2, 33, 0), "enable_ipv4", &FLAG),
    Key::new("enable_ipv6", &FLAG),
    Key::new("external", &EXTERNAL),
    Key::new("internal", &FLAG),
    Key::new("ipam", &IPAM),
    Key::new("labels", &PAIRS),
    Key::new("name", &TEXT),
]);

static IPAM: Place = Place::mapping(&[
    Key::new("config", &Place::list_of(&SUBNET)),
    Key::new("driver", &TEXT),
    Key::new("options", &Place::mapping_of(&TEXT_OR_DATE)),
]);

static TEXT_OR_DATE: Place = Place::new(&[Text, Date]);

static SUBNET: Place = Place::mapping(&[
    Key::new("aux_addresses", &Place::mapping_of(&TEXT_OR_DATE)),
    Key::new("gateway", &TEXT),
    Key::new("ip_range", &TEXT),
    Key::new("subnet", &TEXT),
]);

pub(super) static SECRET: Place = Place::mapping(&[
    Key::new("driver", &TEXT),
    Key::new("driver_opts", &OPTIONS),
    Key::new("environment", &TEXT),
    Key::new("external", &OPEN_EXTERNAL),
    Key::new("file", &FILE),
    Key::new("labels", &PAIRS),
    Key::new("name", &TEXT),
    Key::new("template_driver", &TEXT),
]);

pub(super) static CONFIG: Place = Place::mapping(&[
    Key::newer((2, 23, 1), "content", &TEXT),
    Key::newer((2, 23, 1), "environment", &TEXT),
    Key::new("external", &OPEN_EXTERNAL),
    Key::new("file", &FILE),
    Key::new("labels", &PAIRS),
    Key::new("name", &TEXT),
    Key::new("template_driver", &TEXT),
]);

static FILE: Place = Place::new(&[Text]).holding(Holds::HostPath);

static EXTERNAL: Place = Place::new(&[Bool, Text, Mapping]).keyed(&[Key::new("name", &TEXT)]);

static OPEN_EXTERNAL: Place = Place::new(&[Bool, Text, Mapping])
    .keyed(&[Key::new("name", &TEXT)])
    .valued(&ANY);

pub(super) static MODEL: Place = Place::mapping(&[
    Key::newer((2, 38, 0), "context_size", &STRICT_NUMBER),
    Key::newer((2, 38, 0), "model", &TEXT),
    Key::newer((2, 38, 0), "name", &TEXT),
    Key::newer((2, 38, 0), "runtime_flags", &TEXTS),
]);
