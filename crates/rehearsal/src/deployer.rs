//! Deployments on a real engine instead of the world.

use std::sync::{Arc, Mutex};

use super::world::{Kind, Record, Refused, Work};

/// Performs the creates, updates and deletes on a real engine.
///
/// The world then has Portainer's stacks, but not their containers.
pub trait Deploy: Send + Sync {
    /// Runs `compose up` for a stack.
    ///
    /// # Errors
    /// What Compose prints.
    fn up(&self, record: &Record) -> Result<(), String>;

    /// Runs `compose down` for a stack.
    ///
    /// # Errors
    /// What Compose prints.
    fn down(&self, record: &Record) -> Result<(), String>;
}

/// Deploys one stack at a time, as Portainer does (M21).
pub(super) struct Deployer {
    pub compose: Arc<dyn Deploy>,
    pub deploying: Mutex<()>,
}

impl Deployer {
    /// Performs a change on the engine and waits for its end. A failed deployment ends in `compose down` (M06).
    pub fn perform(&self, work: &Work) -> Result<(), Refused> {
        if work.kind == Kind::Delete {
            let down = self.compose.down(&work.record);
            return down.map_err(|reason| Refused::failed_down(&reason));
        }
        let _one_at_a_time = self.deploying.lock();
        self.compose.up(&work.record).map_err(|reason| {
            // Portainer reports the failure of `up`, even if `down` fails too.
            let _ = self.compose.down(&work.record);
            Refused::failed(&reason)
        })
    }

    /// Deploys in the background. A failure undoes nothing (N06). A stack in error is removed first (N07).
    pub fn deploy(&self, work: &Work, in_error: bool) -> Result<(), String> {
        let _one_at_a_time = self.deploying.lock();
        if in_error {
            self.compose.down(&work.record)?;
        }
        self.compose.up(&work.record)
    }
}
