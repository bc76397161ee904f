//! Runs tasks that wait for something at the same time.

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

/// The most concurrent requests. A removal takes the engine a while: thirty of them took 1.3 s with 32 concurrent
/// requests, 1.7 s with 16 and 2.0 s with 4.
pub const MAX_CONCURRENT: usize = 32;

/// Runs `task` for each of `items`, up to [`MAX_CONCURRENT`] at the same time. Returns the results in the order of `items`.
pub fn in_parallel<I: Sync, T: Send>(items: &[I], task: impl Fn(&I) -> T + Sync) -> Vec<T> {
    in_parallel_of(MAX_CONCURRENT, items, task)
}

/// The same, up to `most` at the same time.
pub fn in_parallel_of<I: Sync, T: Send>(
    most: usize,
    items: &[I],
    task: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    if let [one] = items {
        return vec![task(one)];
    }
    let queue = Mutex::new(items.iter().enumerate());
    let results = Mutex::new(BTreeMap::new());
    let worker = || {
        loop {
            let Some((at, item)) = lock(&queue).next() else {
                break;
            };
            let result = task(item);
            lock(&results).insert(at, result);
        }
    };
    thread::scope(|scope| {
        for _ in 0..most.min(items.len()) {
            scope.spawn(worker);
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_values().collect()
}

/// Runs two tasks at the same time. Returns both results.
pub fn side_by_side<A: Send, B>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B,
) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        // A panic in the thread is a bug: pass it on.
        let one = one
            .join()
            .unwrap_or_else(|cause| panic::resume_unwind(cause));
        (one, other)
    })
}

/// Runs a task whose panic is an error, so that it ends only what it belongs to (B43).
pub fn caught<T>(task: impl FnOnce() -> T) -> Result<T, Panicked> {
    panic::catch_unwind(AssertUnwindSafe(task)).map_err(|_| Panicked)
}

/// A bug of this program, whose message is on standard error.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("stacklift failed here: this is a bug, and its message is above")]
pub struct Panicked;

/// Locks it, also if a thread panicked meanwhile.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b43_a_panic_ends_only_its_own_task() {
        let done = in_parallel(&[1, 2, 3], |&number| {
            caught(|| {
                assert!(number != 2, "a bug");
                number
            })
            .ok()
        });
        assert_eq!(done, [Some(1), None, Some(3)]);
    }
}
