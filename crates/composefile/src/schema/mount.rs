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
    Key::newer(
        (2, 35, 0),
        "image",
        &Place::mapping(&[Key::newer((2, 35, 0), "subpath", &TEXT)]),
    ),
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
            Key::newer((2, 35, 0), "labels", &PAIRS),
            Key::new("nocopy", &FLAG),
            Key::newer((2, 25, 0), "subpath", &TEXT),
        ]),
    ),
]);

static BIND: Place = Place::mapping(&[
    Key::new("create_host_path", &FLAG),
    Key::new("propagation", &TEXT),
    Key::newer((2, 30, 0), "recursive", &TEXT),
    Key::new("selinux", &TEXT),
]);
