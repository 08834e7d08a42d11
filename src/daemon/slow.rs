//! What may take as long as a caller likes, done in a thread of that caller's own: whoever passes descriptors of a file system that
//! does not answer waits for it alone.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags};

use crate::sys::impatient::impatiently;
use crate::sys::passed::Closer;

/// Work of one user that may wait behind what does not come to an end.
pub const WAITING: u32 = 256;
/// Users with work at the same time; those beyond share their threads with others.
const USERS: u32 = 256;

const MOST: usize = WAITING as usize;

type Work = Box<dyn FnOnce() + Send>;

/// The work of all users. Cheap to clone.
#[derive(Clone, Default)]
pub struct Slow(Arc<Mutex<HashMap<u32, VecDeque<Work>>>>);

impl std::fmt::Debug for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slow").finish_non_exhaustive()
    }
}

impl Slow {
    /// Whether nothing more should be taken from this user until its work gets on.
    #[must_use]
    pub fn is_full(&self, uid: u32) -> bool {
        let queues = self.lock();
        queues.get(&key(&queues, uid)).is_some_and(|queue| queue.len() >= MOST)
    }

    /// Has this done, in its turn.
    ///
    /// # Errors
    /// The work: there is no thread for it.
    pub fn run(&self, uid: u32, work: impl FnOnce() + Send + 'static) -> Result<(), Work> {
        let work: Work = Box::new(work);
        let mut queues = self.lock();
        let key = key(&queues, uid);
        if let Some(queue) = queues.get_mut(&key) {
            if queue.len() >= MOST * 4 {
                return Err(work);
            }
            queue.push_back(work);
            return Ok(());
        }
        let slow = self.clone();
        let spawned = std::thread::Builder::new().name("slow".into()).spawn(move || slow.work_off(key));
        if spawned.is_err() {
            return Err(work);
        }
        queues.insert(key, VecDeque::from([work]));
        Ok(())
    }

    fn work_off(&self, key: u32) {
        while let Some(work) = self.next(key) {
            work();
        }
    }

    /// `None`: there is no more, and the next work needs a new thread.
    fn next(&self, key: u32) -> Option<Work> {
        let mut queues = self.lock();
        let work = queues.get_mut(&key).and_then(VecDeque::pop_front);
        if work.is_none() {
            queues.remove(&key);
        }
        work
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, VecDeque<Work>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How descriptors that this user passes are closed.
    #[must_use]
    pub fn closer(&self, uid: u32) -> Arc<dyn Closer> {
        Arc::new(UsersCloser { slow: self.clone(), uid })
    }

    /// Whether there is nothing to be done for anybody.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    /// Closes a connection of this user, with whatever is queued in it.
    pub fn close_connection(&self, uid: u32, socket: OwnedFd) {
        // From here on nothing can be put into its queue.
        let shut = rustix::net::shutdown(&socket, rustix::net::Shutdown::Both);
        if shut.is_ok() && rustix::io::ioctl_fionread(&socket) == Ok(0) {
            return;
        }
        self.close(uid, move || drop(socket));
    }

    fn close(&self, uid: u32, close: impl FnOnce() + Send + 'static) {
        if let Err(close) = self.run(uid, close) {
            impatiently(close);
        }
    }
}

fn key(queues: &HashMap<u32, VecDeque<Work>>, uid: u32) -> u32 {
    let crowded = queues.len() >= usize::try_from(USERS).unwrap_or(usize::MAX);
    if crowded && uid != 0 && !queues.contains_key(&uid) {
        // Numbers that no user has.
        u32::MAX - uid % USERS
    } else {
        uid
    }
}

#[derive(Debug)]
struct UsersCloser {
    slow: Slow,
    uid: u32,
}

impl Closer for UsersCloser {
    fn close(&self, descriptor: OwnedFd) {
        if !closes_at_once(&descriptor) {
            self.slow.close(self.uid, move || drop(descriptor));
        }
    }
}

/// Pipes, pseudo terminals, /dev/null and its like.
fn closes_at_once(descriptor: &OwnedFd) -> bool {
    let Ok(stat) = stat(descriptor) else {
        return false;
    };
    match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::Fifo => true,
        FileType::CharacterDevice => matches!(stat.stx_rdev_major, 1 | 136..=143),
        _ => false,
    }
}

/// What is known of a file without asking a server.
///
/// # Errors
/// Those of statx(2).
pub fn stat(descriptor: impl AsFd) -> rustix::io::Result<Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(descriptor, c"", flags, StatxFlags::TYPE | StatxFlags::MODE)
}
