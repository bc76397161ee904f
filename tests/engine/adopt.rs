//! Adoptions on a real engine, by a Portainer that deploys as the real ones do: older versions run the Compose program
//! (M05–M07), newer versions use Compose as a library in the background (N01, N04–N07).

mod binds;
mod depends;
mod edited;
mod failing;
mod figures;
mod git;
mod lost;
mod networks;
mod rm;
mod scenario;
mod scenarios;
mod states;
mod versions;

/// Makes one test of each scenario for each case.
macro_rules! cases {
    ($cases:tt $($scenario:ident)*) => { $(
        mod $scenario { $crate::adopt::tests! { $scenario $cases } }
    )* };
}
use cases;

/// Who starts the stack, what the host has then, and which Portainer adopts it. Names decide what runs: `scripts/test` skips
/// `_with_5` and `_from_five` without Compose 5, and runs `_from_five` and `by_newer_too` with `--all` only, because they repeat
/// what hardly depends on the versions.
macro_rules! tests {
    ($scenario:ident [$($test:ident)*]) => { $( $crate::adopt::tests! { $scenario $test } )* };
    ($scenario:ident by_old) => { $crate::adopt::tests! { $scenario by_old Two Two Sync
        "needs a container engine: run scripts/test" } };
    ($scenario:ident by_newer) => { $crate::adopt::tests! { $scenario by_newer Two Two Async
        "needs a container engine and STACKLIFT_TEST_NEWER: run scripts/test" } };
    ($scenario:ident by_newer_too) => { $crate::adopt::tests! { $scenario by_newer_too Two Two Async
        "needs a container engine and STACKLIFT_TEST_NEWER: run scripts/test --all" } };
    ($scenario:ident by_old_from_five) => { $crate::adopt::tests! { $scenario by_old_from_five Five Five Sync
        "needs a container engine and STACKLIFT_TEST_COMPOSE_5: run scripts/test --all" } };
    ($scenario:ident by_old_with_5) => { $crate::adopt::tests! { $scenario by_old_with_5 Five Five Sync
        "needs a container engine and STACKLIFT_TEST_COMPOSE_5: run scripts/test" } };
    ($scenario:ident by_newer_from_five) => { $crate::adopt::tests! { $scenario by_newer_from_five Five Five Async
        "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test --all" } };
    ($scenario:ident by_newer_with_5) => { $crate::adopt::tests! { $scenario by_newer_with_5 Five Five Async
        "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test" } };
    ($scenario:ident from_two_on_five_with_5) => { $crate::adopt::tests! { $scenario from_two_on_five_with_5 Two Five Async
        "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test" } };
    ($scenario:ident from_five_on_two_with_5) => { $crate::adopt::tests! { $scenario from_five_on_two_with_5 Five Two Async
        "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test" } };
    ($scenario:ident $test:ident $origin:ident $host:ident $era:ident $needs:literal) => {
        #[test]
        #[ignore = $needs]
        fn $test() {
            super::$scenario($crate::bench::Case {
                origin: $crate::host::Compose::$origin,
                host: $crate::host::Compose::$host,
                era: testbed::Era::$era,
            });
        }
    };
}
use tests;
