//! The mounts of a container.

use super::{
    Holds, Key, Place,
    Type::{Mapping, Text},
    leaf::{FLAG, NUMBER, PAIRS, TEXT},
};

pub(super) static MOUNTS: Place = Place::list_of(&MOUNT).holding(Holds::Mount);

static MOUNT: Place = Place::new(&[Text, Mapping]).holding(Holds::Mount).keyed(&[
    Key::new("bind", &BIND),
    Key::new("consistency", &TEXT),
    Key::newer("image", &Place::mapping(&[Key::newer("subpath", &TEXT)])),
    Key::new("read_only", &FLAG),
    Key::new("source", &Place::new(&[Text]).holding(Holds::MountSource)),
    Key::new("target", &TEXT),
    Key::new(
        "tmpfs",
        &Place::mapping(&[Key::new("mode", &NUMBER), Key::new("size", &NUMBER)]),
    ),
    Key::new("type", &TEXT),
    Key::new(
        "volume",
        &Place::mapping(&[
            Key::newer("labels", &PAIRS),
            Key::new("nocopy", &FLAG),
            Key::new("subpath", &TEXT),
        ]),
    ),
]);

static BIND: Place = Place::mapping(&[
    Key::new("create_host_path", &FLAG),
    Key::new("propagation", &TEXT),
    Key::new("recursive", &TEXT),
    Key::new("selinux", &TEXT),
]);
