//! Descriptors that somebody else opened and passed over a socket.
//!
//! close(2) of one may wait for as long as its owner likes: a file of a network file system or of fuse(8) for its server, a TCP
//! socket with SO_LINGER for its peer, a unix(7) socket for whatever is queued in it. Whoever must not wait says with a [`Closer`]
//! how such descriptors are closed, wherever they are dropped.

use std::fmt::Debug;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Closes descriptors that were passed.
pub trait Closer: Debug + Send + Sync {
    /// Closes one, without waiting.
    fn close(&self, descriptor: OwnedFd);
}

/// A descriptor that was passed. Dropping it closes it the way its [`Closer`] does, or at once where there is none.
#[derive(Debug)]
pub struct PassedFd {
    descriptor: ManuallyDrop<OwnedFd>,
    closer: Option<Arc<dyn Closer>>,
}

impl PassedFd {
    /// `closer`: how it is closed.
    #[must_use]
    pub fn new(descriptor: OwnedFd, closer: Option<Arc<dyn Closer>>) -> Self {
        Self {
            descriptor: ManuallyDrop::new(descriptor),
            closer,
        }
    }
}

impl From<OwnedFd> for PassedFd {
    fn from(descriptor: OwnedFd) -> Self {
        Self::new(descriptor, None)
    }
}

impl From<std::fs::File> for PassedFd {
    fn from(file: std::fs::File) -> Self {
        OwnedFd::from(file).into()
    }
}

/// For those who may wait.
impl From<PassedFd> for OwnedFd {
    fn from(mut passed: PassedFd) -> Self {
        // SAFETY: `forget` leaves no other owner: neither `drop` nor anybody else sees the field again.
        let descriptor = unsafe { ManuallyDrop::take(&mut passed.descriptor) };
        drop(passed.closer.take());
        std::mem::forget(passed);
        descriptor
    }
}

impl AsFd for PassedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for PassedFd {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and nobody sees the field afterwards.
        let descriptor = unsafe { ManuallyDrop::take(&mut self.descriptor) };
        match self.closer.take() {
            Some(closer) => closer.close(descriptor),
            None => drop(descriptor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<OwnedFd>>);

    impl Closer for Kept {
        fn close(&self, descriptor: OwnedFd) {
            self.0.lock().unwrap().push(descriptor);
        }
    }

    #[test]
    fn given_a_closer_then_it_gets_what_is_dropped_and_not_what_was_taken_out() {
        let kept = Arc::new(Kept::default());
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        drop(PassedFd::new(null(), Some(kept.clone())));
        assert_eq!(kept.0.lock().unwrap().len(), 1);
        let taken = OwnedFd::from(PassedFd::new(null(), Some(kept.clone())));
        rustix::io::fcntl_getfd(&taken).unwrap();
        assert_eq!((kept.0.lock().unwrap().len(), Arc::strong_count(&kept)), (1, 1));
    }
}
