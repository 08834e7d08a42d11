//! The running commands, by their ids: who may signal which.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::peer::CallerIdentity;
use crate::launch::Signaller;

/// Names a connection in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId(u64);

/// Running commands. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Jobs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Differs from one start of the service to the next.
    prefix: u64,
    next: AtomicU64,
    running: Mutex<HashMap<String, Entry>>,
}

#[derive(Debug)]
struct Entry {
    caller: Arc<CallerIdentity>,
    connection: ConnectionId,
    signaller: Signaller,
}

impl Default for Jobs {
    fn default() -> Self {
        let mut random = [0_u8; 8];
        // Without random bytes the clock must do: an id is a name, not a secret.
        if rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()) != Ok(random.len()) {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
            random = (now.tv_sec ^ (now.tv_nsec << 32)).to_ne_bytes();
        }
        Self(Arc::new(Inner {
            prefix: u64::from_ne_bytes(random),
            next: AtomicU64::new(1),
            running: Mutex::default(),
        }))
    }
}

impl Jobs {
    /// A new id for a request: 128 bits in hexadecimal, unique among all starts of the service.
    #[must_use]
    pub fn new_id(&self) -> String {
        format!("{:016x}{:016x}", self.0.prefix, self.number())
    }

    /// A new id for a connection.
    #[must_use]
    pub fn new_connection(&self) -> ConnectionId {
        ConnectionId(self.number())
    }

    fn number(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Lists a running command until the guard is dropped.
    #[must_use]
    pub fn list(&self, id: &str, caller: Arc<CallerIdentity>, connection: ConnectionId, signaller: Signaller) -> Listed {
        let entry = Entry {
            caller,
            connection,
            signaller,
        };
        self.running().insert(id.to_owned(), entry);
        Listed {
            jobs: self.clone(),
            id: id.to_owned(),
        }
    }

    /// Signals a command and its process group, where it is this caller's: started by the same user, on the same connection or by the
    /// same process.
    ///
    /// # Errors
    /// Why not.
    pub fn signal(&self, id: &str, caller: &CallerIdentity, connection: ConnectionId, signal: i32) -> Result<(), NotSignalled> {
        let running = self.running();
        let entry = running.get(id).ok_or(NotSignalled::Unknown)?;
        let is_own = entry.caller.uid() == caller.uid() && (entry.connection == connection || entry.caller.is_same_process(caller));
        if !is_own {
            return Err(NotSignalled::Foreign);
        }
        // It may have ended a moment ago: the same as never having been there.
        entry.signaller.signal(signal, true).map_err(|_| NotSignalled::Unknown)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why no signal was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSignalled {
    /// No command of this id is running.
    Unknown,
    /// It is another caller's. The caller is told the same as for [`Unknown`](Self::Unknown).
    Foreign,
}

/// Keeps a command listed.
#[derive(Debug)]
pub struct Listed {
    jobs: Jobs,
    id: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.jobs.running().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_also_among_two_starts() {
        let (a, b) = (Jobs::default(), Jobs::default());
        let ids = [a.new_id(), a.new_id(), b.new_id(), b.new_id()];
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), 4);
        assert!(ids.iter().all(|id| id.len() == 32));
    }
}
