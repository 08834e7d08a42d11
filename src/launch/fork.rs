//! The one place that forks: clone3(2) in the single-threaded launcher.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::child;
use super::launcher::Host;
use crate::sys::descriptors;

/// Forks a child of the launcher's parent (CLONE_PARENT), born in `cgroup` where one is given; it keeps `socket` and nothing else.
/// Returns its number and a pidfd.
///
/// # Errors
/// Those of clone3(2): EAGAIN (a limit of processes), ENODEV or ENOENT (the cgroup is gone), EBUSY, EOPNOTSUPP, EACCES (not this cgroup).
pub(super) fn child_of_parent(cgroup: Option<BorrowedFd<'_>>, socket: OwnedFd, host: Host) -> io::Result<(u32, OwnedFd)> {
    let mut pidfd: RawFd = -1;
    // SAFETY: zero is a valid value of this plain C structure: no flag, no stack, no TLS, no signal.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    let flags = libc::CLONE_PARENT | libc::CLONE_PIDFD;
    arguments.flags = u64::try_from(flags).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    arguments.pidfd = (&raw mut pidfd) as u64;
    if let Some(cgroup) = cgroup {
        const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = u64::try_from(cgroup.as_raw_fd()).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    }
    // SAFETY: the structure has the size that is given and outlives the call; the kernel writes one descriptor to `pidfd`. Without
    // CLONE_VM the child has a copy of all memory, so this is fork(2) without glibc's handlers: those only matter where another
    // thread may hold a lock, and the launcher never has a second thread. The child uses no cached thread id and never returns from
    // here: `run_with_only` ends the process, also when it panics.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => descriptors::run_with_only(socket, host, child::main),
        pid => {
            // SAFETY: clone3 succeeded with CLONE_PIDFD, so this is a new descriptor that nobody else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = u32::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))?;
            Ok((pid, pidfd))
        }
    }
}
