//! What was read for a command that plans several stacks: each thing is read once, and forgotten before anything changes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use crate::parallel::lock;

/// Keeps answers, but only during [`Self::during`].
#[derive(Debug)]
pub struct Memory<T>(Mutex<Option<BTreeMap<String, Answer<T>>>>);

/// Whoever needs it waits for whoever reads it.
type Answer<T> = Arc<Mutex<Option<T>>>;

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Memory<T> {
    /// Keeps every answer until `task` ends. The task must change nothing.
    pub fn during<R>(&self, task: impl FnOnce() -> R) -> R {
        *lock(&self.0) = Some(BTreeMap::new());
        let done = task();
        *lock(&self.0) = None;
        done
    }

    /// Forgets what is kept so far.
    pub fn clear(&self) {
        if let Some(all) = &mut *lock(&self.0) {
            all.clear();
        }
    }

    /// Whether answers are kept now.
    pub fn keeps(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// The answer to a question, read unless it is kept. An error is not kept.
    pub fn get<E>(&self, question: &str, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let answer = lock(&self.0)
            .as_mut()
            .map(|all| Arc::clone(all.entry(question.to_owned()).or_default()));
        let Some(answer) = answer else {
            return read();
        };
        let mut known = lock(&answer);
        match &*known {
            Some(known) => Ok(known.clone()),
            None => Ok(known.insert(read()?).clone()),
        }
    }
}
