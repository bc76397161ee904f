//! `build`, and keys that a build and a container share.

use super::{
    Holds, Key, Place,
    Type::{Bool, Date, Mapping, Number, Text},
    leaf::{EXTRA_HOSTS, FLAG, NUMBER, PAIRS, SIZE, TEXT, TEXT_OR_TEXTS, TEXTS},
};

pub(super) static BUILD: Place = Place::new(&[Text, Mapping]).holding(Holds::Build).keyed(&[
    Key::new("additional_contexts", &PAIRS),
    Key::new("args", &PAIRS),
    Key::new("cache_from", &TEXTS),
    Key::new("cache_to", &TEXTS),
    Key::new("context", &TEXT),
    Key::new("dockerfile", &TEXT),
    Key::new("dockerfile_inline", &TEXT),
    Key::newer((2, 27, 0), "entitlements", &TEXTS),
    Key::new("extra_hosts", &EXTRA_HOSTS),
    Key::new("isolation", &TEXT),
    Key::new("labels", &PAIRS),
    Key::new("network", &TEXT),
    Key::new("no_cache", &FLAG),
    Key::newer((5, 0, 0), "no_cache_filter", &TEXT_OR_TEXTS),
    Key::new("platforms", &TEXTS),
    Key::new("privileged", &FLAG),
    Key::newer((2, 39, 0), "provenance", &ATTESTATION),
    Key::new("pull", &FLAG),
    Key::newer((2, 39, 0), "sbom", &ATTESTATION),
    Key::new("secrets", &MOUNTED_FILES),
    Key::new("shm_size", &SIZE),
    Key::new("ssh", &PAIRS),
    Key::new("tags", &TEXTS),
    Key::new("target", &TEXT),
    Key::newer((2, 23, 1), "ulimits", &ULIMITS),
]);

static ATTESTATION: Place = Place::new(&[Bool, Text, Date]);

/// The secrets or configs of a container or build.
pub(super) static MOUNTED_FILES: Place = Place::list_of(&Place::new(&[Text, Mapping]).keyed(&[
    Key::new("gid", &TEXT),
    Key::new("mode", &NUMBER),
    Key::new("source", &TEXT),
    Key::new("target", &TEXT),
    Key::new("uid", &TEXT),
]));

pub(super) static ULIMITS: Place = Place::mapping_of(
    &Place::new(&[Number, Text, Mapping])
        .keyed(&[Key::new("hard", &NUMBER), Key::new("soft", &NUMBER)]),
);
