//! Children by pidfd: signals that reach nobody else, waiting with resource use, see pidfd_open(2) and waitid(2).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use super::process::MAX_SIGNAL;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Exit status, or the signal that ended it.
    pub status: Status,
    /// User and system time of the child and of the children that it waited for.
    pub cpu: Duration,
    /// Its largest resident set, KiB.
    pub max_rss: u64,
}

/// Exit status or signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It called `_exit`.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
}

/// Sends `signal` (1 to 64) to the process of this pidfd.
///
/// # Errors
/// ESRCH when it has been reaped, EINVAL for another number, EPERM.
pub fn send_signal(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    if !(1..=MAX_SIGNAL).contains(&signal) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open for the length of the call; a null siginfo is allowed; the kernel keeps no pointer.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, no_info, 0_u32) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reaps the child of this pidfd where it has ended, whatever its exit signal; `None` while it runs. Does not block.
///
/// # Errors
/// ECHILD: it is no child, or it was reaped already.
pub fn reap(pidfd: BorrowedFd<'_>) -> io::Result<Option<Ended>> {
    wait(pidfd, libc::WNOHANG)
}

/// As [`reap`], but blocks until the child ends.
///
/// # Errors
/// ECHILD: it is no child, or it was reaped already.
pub fn reap_blocking(pidfd: BorrowedFd<'_>) -> io::Result<Option<Ended>> {
    loop {
        match wait(pidfd, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// As [`reap`], but leaves the child a zombie: its number cannot be used again.
///
/// # Errors
/// ECHILD: it is no child, or it was reaped already.
pub fn peek(pidfd: BorrowedFd<'_>) -> io::Result<Option<Ended>> {
    wait(pidfd, libc::WNOHANG | libc::WNOWAIT)
}

fn wait(pidfd: BorrowedFd<'_>, flags: i32) -> io::Result<Option<Ended>> {
    let id = libc::c_uint::try_from(pidfd.as_raw_fd()).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // glibc's waitid has no rusage. __WALL: a child that has not called exec has its parent's exit signal, which may be none.
    // SAFETY: both buffers live through the call and have the kernel's types; the descriptor is open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_PIDFD,
            id,
            info.as_mut_ptr(),
            libc::WEXITED | libc::__WALL | flags,
            usage.as_mut_ptr(),
        )
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were zeroed, a valid value of these plain C structures, before the kernel wrote to them; waitid(2) fills in the
    // fields of SIGCHLD, or leaves si_pid zero where no child has ended.
    let (info, usage, pid, status) = unsafe {
        let info = info.assume_init();
        (info, usage.assume_init(), info.si_pid(), info.si_status())
    };
    if pid == 0 {
        return Ok(None);
    }
    Ok(Some(Ended {
        status: if info.si_code == libc::CLD_EXITED {
            Status::Exited(status)
        } else {
            Status::Signaled(status)
        },
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        max_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    }))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0)) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::os::fd::{AsFd, OwnedFd};
    use std::process::Command;

    #[expect(clippy::zombie_processes, reason = "reaped by pidfd: that is what is tested")]
    fn spawn(script: &str) -> OwnedFd {
        let child = Command::new("/bin/sh").args(["-c", script]).spawn().unwrap();
        pidfd_open(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), PidfdFlags::empty()).unwrap()
    }

    #[test]
    fn an_exit_status_comes_once_and_then_the_child_is_gone() {
        let child = spawn("exit 7");
        let ended = reap_blocking(child.as_fd()).unwrap().unwrap();
        assert_eq!(ended.status, Status::Exited(7));
        assert!(ended.max_rss > 0);
        assert_eq!(reap(child.as_fd()).unwrap_err().raw_os_error(), Some(libc::ECHILD));
        assert_eq!(send_signal(child.as_fd(), 15).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn a_running_child_is_none_and_a_signal_ends_it() {
        let child = spawn("exec sleep 1000");
        assert_eq!(reap(child.as_fd()).unwrap(), None);
        send_signal(child.as_fd(), libc::SIGKILL).unwrap();
        assert_eq!(
            reap_blocking(child.as_fd()).unwrap().unwrap().status,
            Status::Signaled(libc::SIGKILL)
        );
    }

    #[test]
    fn numbers_that_are_no_signal_are_refused() {
        let child = spawn("exec sleep 1000");
        for number in [i32::MIN, -1, 0, 65, i32::MAX] {
            assert_eq!(send_signal(child.as_fd(), number).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        }
        send_signal(child.as_fd(), libc::SIGKILL).unwrap();
        reap_blocking(child.as_fd()).unwrap();
    }
}
