//! `build`, and keys that a build and a container share.

use super::{
    Holds, Key, Place,
    Type::{Bool, Date, List, Mapping, Number, Text},
    leaf::{EXTRA_HOSTS, FLAG, NUMBER, PAIRS, SIZE, TEXT, TEXT_OR_TEXTS, TEXTS, VALUE},
};

pub(super) static BUILD: Place = Place::new(&[Text, Mapping]).holding(Holds::Build).keyed(&[
    Key::new(
        "additional_contexts",
        &Place::new(&[List, Mapping])
            .holding(Holds::BuildContext)
            .listed(&CONTEXT)
            .valued(&NAMED_CONTEXT),
    ),
    Key::new("args", &PAIRS),
    Key::new("cache_from", &TEXTS),
    Key::new("cache_to", &TEXTS),
    Key::new("context", &CONTEXT),
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
    Key::new("secrets", &SECRETS),
    Key::new("shm_size", &SIZE),
    Key::new("ssh", &SSH_KEYS),
    Key::new("tags", &TEXTS),
    Key::new("target", &TEXT),
    Key::newer((2, 23, 1), "ulimits", &ULIMITS),
]);

static ATTESTATION: Place = Place::new(&[Bool, Text, Date]);

static CONTEXT: Place = Place::new(&[Text]).holding(Holds::BuildContext);

static NAMED_CONTEXT: Place = Place::new(VALUE.types).holding(Holds::BuildContext);

static SSH_KEYS: Place = Place::new(&[List, Mapping])
    .holding(Holds::SshKey)
    .listed(&Place::new(&[Text]).holding(Holds::SshKey))
    .valued(&Place::new(VALUE.types).holding(Holds::SshKey));

pub(super) static SECRETS: Place = Place::list_of(
    &Place::new(&[Text, Mapping]).holding(Holds::Secret).keyed(&[
        Key::new("gid", &TEXT),
        Key::new("mode", &NUMBER),
        Key::new("source", &Place::new(&[Text]).holding(Holds::Secret)),
        Key::new("target", &TEXT),
        Key::new("uid", &TEXT),
    ]),
)
.holding(Holds::Secret);

pub(super) static CONFIGS: Place = Place::list_of(
    &Place::new(&[Text, Mapping]).holding(Holds::Config).keyed(&[
        Key::new("gid", &TEXT),
        Key::new("mode", &NUMBER),
        Key::new("source", &Place::new(&[Text]).holding(Holds::Config)),
        Key::new("target", &TEXT),
        Key::new("uid", &TEXT),
    ]),
)
.holding(Holds::Config);

pub(super) static ULIMITS: Place = Place::mapping_of(
    &Place::new(&[Number, Text, Mapping])
        .keyed(&[Key::new("hard", &NUMBER), Key::new("soft", &NUMBER)]),
);
