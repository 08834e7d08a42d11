//! A descriptor that tokio watches.
//!
//! [`tokio::io::unix::AsyncFd::register`] is unsafe because the descriptor must stay the same open file for as long as it is
//! registered. Here it is an [`OwnedFd`] that nobody can take out, replace or close in between, so the call is safe.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// An owned descriptor registered with the runtime. It should be non-blocking where it is read or written.
#[derive(Debug)]
pub struct AsyncOwnedFd(AsyncFd<OwnedFd>);

impl AsyncOwnedFd {
    /// Registers `descriptor` with the runtime that runs the current task; epoll(7), edge-triggered.
    ///
    /// # Errors
    /// Outside a runtime with I/O, or where epoll_ctl(2) refuses it (regular files and directories: EPERM). The descriptor is then closed.
    pub fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<Self> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(io::Error::other("a descriptor can be registered only inside the runtime"));
        }
        // SAFETY: the descriptor is owned, hence open and the same open file, until it is dropped; `AsyncFd` owns it and drops
        // its registration first. This type hands out `&AsyncFd` only, so safe code cannot replace the inner `OwnedFd`, and
        // `OwnedFd::as_raw_fd` always gives the same number.
        let registered = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
        registered.map(Self).map_err(|refused| refused.into_parts().1)
    }

    /// Takes the descriptor back, no longer registered.
    #[must_use]
    pub fn into_inner(self) -> OwnedFd {
        self.0.into_inner()
    }
}

impl Deref for AsyncOwnedFd {
    type Target = AsyncFd<OwnedFd>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl AsFd for AsyncOwnedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_a_runtime_registering_is_an_error_not_a_panic() {
        let (read, _write) = rustix::pipe::pipe().unwrap();
        assert!(AsyncOwnedFd::register(read, Interest::READABLE).is_err());
    }

    #[test]
    fn a_written_pipe_becomes_readable_and_comes_back_out() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let (read, write) = rustix::pipe::pipe().unwrap();
            let read = AsyncOwnedFd::register(read, Interest::READABLE).unwrap();
            rustix::io::write(&write, b"x").unwrap();
            let mut guard = read.readable().await.unwrap();
            guard.clear_ready();
            drop(guard);
            let mut byte = [0];
            assert_eq!(rustix::io::read(read.into_inner(), &mut byte).unwrap(), 1);
        });
    }
}
