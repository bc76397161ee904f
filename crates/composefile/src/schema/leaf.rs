//! Places that many keys share.

use super::{
    Holds, Place,
    Type::{Bool, Date, List, Mapping, Null, Number, Text},
};

pub(super) static TEXT: Place = Place::new(&[Text]);
pub(super) static FLAG: Place = Place::new(&[Bool, Text]);
pub(super) static STRICT_FLAG: Place = Place::new(&[Bool]);
pub(super) static NUMBER: Place = Place::new(&[Number, Text]);
pub(super) static STRICT_NUMBER: Place = Place::new(&[Number]);

pub(super) static TEXTS: Place = Place::list_of(&TEXT);
pub(super) static TEXT_OR_TEXTS: Place = Place::new(&[Text, List]).listed(&TEXT);
pub(super) static COMMAND: Place = Place::new(&[Null, Text, Date, List]).listed(&TEXT);
/// A size, or a rate.
pub(super) static SIZE: Place = Place::new(&[Number, Text, Date]);

/// `NAME=value` items, or a mapping.
pub(super) static PAIRS: Place = Place::new(&[List, Mapping]).listed(&TEXT).valued(&VALUE);
pub(super) static VALUE: Place = Place::new(&[Null, Text, Bool, Number, Date]);

/// Options of a driver.
pub(super) static OPTIONS: Place = Place::mapping_of(&OPTION);
pub(super) static OPTION: Place = Place::new(&[Text, Number, Date]);

/// `HOST=address` items, or a mapping.
pub(super) static EXTRA_HOSTS: Place = Place::new(&[List, Mapping])
    .listed(&TEXT)
    .valued(&TEXT_OR_TEXTS);

/// Values that Compose does not check.
pub(super) static ANY: Place = Place::unchecked(&ANY, Holds::Plain);

pub(super) static EXTENSION: Place = Place::unchecked(&EXTENSION, Holds::Extension);

pub(super) static ENV_FILE_PATH: Place = Place::new(&[Text]).holding(Holds::EnvFile);
