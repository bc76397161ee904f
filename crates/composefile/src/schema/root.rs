//! The top level of the file, and what it includes.

use super::{
    Holds, Key, Place,
    Type::{Date, List, Mapping, Null, Text},
    leaf::{ENV_FILE_PATH, TEXT},
    resource::{CONFIG, MODEL, NETWORK, SECRET, VOLUME},
    service::{JOB, SERVICE},
};

/// The whole file.
pub static ROOT: Place = Place::mapping(&[
    Key::new("configs", &Place::mapping_of(&CONFIG)),
    Key::newer((2, 19, 1), "include", &INCLUDES),
    Key::newer((5, 6, 1), "jobs", &Place::mapping_of(&JOB)),
    Key::newer((2, 38, 0), "models", &Place::mapping_of(&MODEL)),
    Key::new("name", &Place::new(&[Text, Date])),
    Key::new("networks", &Place::mapping_of(&NETWORK)),
    Key::new("secrets", &Place::mapping_of(&SECRET)),
    Key::new("services", &Place::mapping_of(&SERVICE)),
    Key::new("version", &TEXT),
    Key::new("volumes", &Place::mapping_of(&VOLUME)),
]);

static INCLUDES: Place = Place::new(&[Null, List]).listed(&INCLUDE);

/// An item of `include`.
pub static INCLUDE: Place = Place::new(&[Text, Mapping]).keyed(&[
    Key::new(
        "env_file",
        &Place::new(&[Text, List])
            .holding(Holds::EnvFile)
            .listed(&ENV_FILE_PATH),
    ),
    Key::new("path", &Place::new(&[Text, List]).listed(&TEXT)),
    Key::new("project_directory", &TEXT),
]);
