//! Adoptions on a real engine, by a Portainer that deploys as the real ones do: older versions run the Compose program
//! (M05–M07), newer versions use Compose as a library in the background (N01, N04–N07).

mod binds;
mod depends;
mod edited;
mod failing;
mod figures;
mod git;
mod lost_file;
mod lost_portainer;
mod networks;
mod rm;
mod scenario;
mod scenarios;
mod states;
mod versions;

use testbed::Era;

use crate::host::Compose;

/// Who started the stack, what the host has now, and which Portainer adopts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    origin: Origin,
    host: Origin,
    era: Era,
}

/// A Compose program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// `STACKLIFT_TEST_COMPOSE`.
    Two,
    /// `STACKLIFT_TEST_COMPOSE_5`.
    Five,
}

const OLD: Case = Case::new(Origin::Two, Origin::Two, Era::Sync);
const NEWER: Case = Case::new(Origin::Two, Origin::Two, Era::Async);
const OLD_FROM_FIVE: Case = Case::new(Origin::Five, Origin::Five, Era::Sync);
const NEWER_FROM_FIVE: Case = Case::new(Origin::Five, Origin::Five, Era::Async);
const NEWER_ON_FIVE: Case = Case::new(Origin::Two, Origin::Five, Era::Async);
const NEWER_FROM_FIVE_ON_TWO: Case = Case::new(Origin::Five, Origin::Two, Era::Async);

impl Case {
    const fn new(origin: Origin, host: Origin, era: Era) -> Self {
        Self { origin, host, era }
    }

    /// `services`, if the Compose that started them is of another generation than that of Portainer, and has another hash
    /// for them (N05).
    fn by_another_version(self, services: &'static [&'static str]) -> &'static [&'static str] {
        match (self.origin, self.era) {
            (Origin::Two, Era::Async) | (Origin::Five, Era::Sync) => services,
            _ => &[],
        }
    }
}

impl Origin {
    fn compose(self) -> Compose {
        match self {
            Self::Two => Compose::new(),
            Self::Five => Compose::five(),
        }
    }
}

/// Runs a function as a test for each of these cases.
macro_rules! by {
    ($name:ident: $($test:ident $case:ident $needs:literal)*) => {
        mod $name { $(
            #[test]
            #[ignore = $needs]
            fn $test() {
                super::$name($crate::adopt::$case);
            }
        )* }
    };
}
use by;

/// Runs functions as one test each: what they test does not depend on the Portainer.
macro_rules! by_old_portainer {
    ($($name:ident)*) => { $( $crate::adopt::by! { $name:
        by_old OLD "needs a container engine: run scripts/test"
    } )* };
}
use by_old_portainer;

/// Runs functions as one test for each Portainer.
macro_rules! by_each_portainer {
    ($($name:ident)*) => { $( $crate::adopt::by! { $name:
        by_old OLD "needs a container engine: run scripts/test"
        by_newer NEWER "needs a container engine and STACKLIFT_TEST_NEWER: run scripts/test"
    } )* };
}
use by_each_portainer;

/// The same. What they test hardly depends on the Portainer, so the newer one's run with `scripts/test --all` only.
macro_rules! by_old_portainer_first {
    ($($name:ident)*) => { $( $crate::adopt::by! { $name:
        by_old OLD "needs a container engine: run scripts/test"
        by_newer_too NEWER "needs a container engine and STACKLIFT_TEST_NEWER: run scripts/test --all"
    } )* };
}
use by_old_portainer_first;

/// Runs functions as one test for each Portainer and each Compose program that starts the stack.
macro_rules! by_each_portainer_and_origin {
    ($($name:ident)*) => { $( $crate::adopt::by! { $name:
        by_old OLD "needs a container engine: run scripts/test"
        by_newer NEWER "needs a container engine and STACKLIFT_TEST_NEWER: run scripts/test"
        by_old_from_five OLD_FROM_FIVE "needs a container engine and STACKLIFT_TEST_COMPOSE_5: run scripts/test"
        by_newer_from_five NEWER_FROM_FIVE "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"
    } )* };
}
use by_each_portainer_and_origin;
