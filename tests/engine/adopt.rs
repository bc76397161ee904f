//! Adoptions on a real engine, by a Portainer that deploys as the real ones do: older versions run the Compose program
//! (M05–M07), newer versions use Compose as a library in the background (N01, N04–N07).

mod depends;
mod failing;
mod figures;
mod killed;
mod rm;
mod scenario;
mod scenarios;
mod watch;

use rehearsal::Era;

use crate::host::Compose;

/// Who started the stack, and which Portainer adopts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    origin: Origin,
    era: Era,
}

/// The Compose program that started the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// `STACKLIFT_TEST_COMPOSE`.
    Two,
    /// `STACKLIFT_TEST_COMPOSE_5`.
    Five,
}

const OLD: Case = Case {
    origin: Origin::Two,
    era: Era::Sync,
};
const NEWER: Case = Case {
    origin: Origin::Two,
    era: Era::Async,
};
const OLD_FROM_FIVE: Case = Case {
    origin: Origin::Five,
    era: Era::Sync,
};
const NEWER_FROM_FIVE: Case = Case {
    origin: Origin::Five,
    era: Era::Async,
};

impl Origin {
    fn compose(self) -> Compose {
        match self {
            Self::Two => Compose::new(),
            Self::Five => Compose::five(),
        }
    }
}

/// Runs a function as one test for each Portainer.
macro_rules! by_each_portainer {
    ($($name:ident)*) => { $(
        mod $name {
            #[test]
            #[ignore = "needs a container engine: run scripts/test"]
            fn by_old() {
                super::$name($crate::adopt::OLD);
            }
            #[test]
            #[ignore = "needs a container engine and STACKLIFT_TEST_NEWER: run scripts/test"]
            fn by_newer() {
                super::$name($crate::adopt::NEWER);
            }
        }
    )* };
}
use by_each_portainer;

/// Runs a function as one test for each Portainer and each Compose program that starts the stack.
macro_rules! by_each_portainer_and_origin {
    ($($name:ident)*) => { $(
        mod $name {
            #[test]
            #[ignore = "needs a container engine: run scripts/test"]
            fn by_old() {
                super::$name($crate::adopt::OLD);
            }
            #[test]
            #[ignore = "needs a container engine and STACKLIFT_TEST_NEWER: run scripts/test"]
            fn by_newer() {
                super::$name($crate::adopt::NEWER);
            }
            #[test]
            #[ignore = "needs a container engine and STACKLIFT_TEST_COMPOSE_5: run scripts/test"]
            fn by_old_from_five() {
                super::$name($crate::adopt::OLD_FROM_FIVE);
            }
            #[test]
            #[ignore = "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"]
            fn by_newer_from_five() {
                super::$name($crate::adopt::NEWER_FROM_FIVE);
            }
        }
    )* };
}
use by_each_portainer_and_origin;
