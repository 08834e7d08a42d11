//! `rootwrap-launcher`: single-threaded, asked over a socketpair (its standard input) for "a child in this cgroup".
//!
//! It holds no policy, sees no job and parses nothing that comes from callers. A request is one datagram of `REQUEST` bytes, with
//! the cgroup's descriptor where there is one; the reply is a `Reply`, with the child's pidfd and the other end of its socket.
//! It ends with rootwrapd: when the socket closes, and by the parent's death signal.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{DumpableBehavior, Signal};

use super::fork;
use crate::sys::socket::{recv_with, send_with};
use crate::sys::{descriptors, process};

/// The only request: fork a child.
pub(super) const REQUEST: [u8; 1] = [b'f'];

/// What the launcher answers: the child's number, or errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reply(pub Result<u32, i32>);

impl Reply {
    /// Bytes of a reply.
    pub const SIZE: usize = 8;

    fn encode(self) -> [u8; Self::SIZE] {
        let (pid, errno) = match self.0 {
            Ok(pid) => (pid, 0),
            Err(errno) => (0, errno),
        };
        let mut bytes = [0; Self::SIZE];
        let (first, second) = bytes.split_at_mut(4);
        first.copy_from_slice(&pid.to_le_bytes());
        second.copy_from_slice(&errno.to_le_bytes());
        bytes
    }

    /// `None`: no reply of the launcher.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (pid, errno) = bytes.split_at_checked(4)?;
        let pid = u32::from_le_bytes(pid.try_into().ok()?);
        match (pid, i32::from_le_bytes(errno.try_into().ok()?)) {
            (pid, 0) if pid > 1 => Some(Self(Ok(pid))),
            (0, errno) if errno > 0 => Some(Self(Err(errno))),
            _ => None,
        }
    }
}

/// Facts of the running kernel, read once: children have them in their copy of the launcher's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    /// The highest capability of this kernel, see capabilities(7).
    pub last_capability: u32,
    /// kernel.threads-max: half of it is the first process's limit of processes.
    pub threads_max: u64,
}

impl Host {
    fn read() -> io::Result<Self> {
        Ok(Self {
            last_capability: sysctl("cap_last_cap")?.try_into().unwrap_or(u32::MAX).min(63),
            threads_max: sysctl("threads-max")?,
        })
    }
}

fn sysctl(name: &str) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}"))?;
    text.trim().parse().map_err(|_| io::Error::from_raw_os_error(libc::EBADMSG))
}

/// The launcher's main function; comes back, with its exit status, only when it cannot start.
#[must_use]
pub fn main() -> i32 {
    let started = prepare().and_then(|socket| Ok((socket, Host::read()?)));
    match started {
        Ok((socket, host)) => descriptors::run_with_only(socket, host, serve),
        Err(error) => {
            eprintln!("rootwrap-launcher: {error}; it is started by rootwrapd, with a socket as its standard input");
            1
        }
    }
}

/// Ties this process to rootwrapd and shuts it off from everybody else.
fn prepare() -> io::Result<OwnedFd> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // A socketpair's peer is who made it. Where it is not the parent (any more), the signal above may never come.
    let rootwrapd = rustix::net::sockopt::socket_peercred(&socket)?.pid;
    if rustix::process::getppid() != Some(rootwrapd) {
        return Err(io::Error::other("the parent is not the process behind the socket"));
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Signals that a terminal sends to rootwrapd's group are for rootwrapd, which ends its commands in order.
    rustix::process::setsid()?;
    process::reset_signals()?;
    rustix::process::chdir("/")?;
    Ok(socket)
}

/// Serves requests until rootwrapd is gone. `socket` is the only descriptor.
fn serve(socket: OwnedFd, host: Host) -> Infallible {
    // 0, 1 and 2 stay taken, so that no descriptor of ours can be mistaken for one of them.
    let null = || rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let _standard = [null(), null(), null()];
    loop {
        let mut request = [0; 4];
        let Ok(received) = recv_with(socket.as_fd(), &mut request, 1) else {
            std::process::exit(1)
        };
        if received.len == 0 {
            std::process::exit(0)
        }
        let valid = request.get(..received.len) == Some(&REQUEST[..]) && !received.control_truncated;
        let forked = if valid {
            fork_child(received.fds.first().map(AsFd::as_fd), host)
        } else {
            Err(io::Error::from_raw_os_error(libc::EBADMSG))
        };
        if answer(socket.as_fd(), forked).is_err() {
            std::process::exit(1)
        }
    }
}

/// Forks a child; returns its number, its pidfd and rootwrapd's end of its socket.
fn fork_child(cgroup: Option<BorrowedFd<'_>>, host: Host) -> io::Result<(u32, OwnedFd, OwnedFd)> {
    let (ours, childs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let (pid, pidfd) = fork::child_of_parent(cgroup, childs, host)?;
    Ok((pid, pidfd, ours))
}

fn answer(socket: BorrowedFd<'_>, forked: io::Result<(u32, OwnedFd, OwnedFd)>) -> io::Result<()> {
    let sent = match &forked {
        Ok((pid, pidfd, ours)) => send_with(socket, &Reply(Ok(*pid)).encode(), &[pidfd.as_fd(), ours.as_fd()], None),
        Err(error) => send_with(socket, &Reply(Err(error.raw_os_error().unwrap_or(libc::EIO))).encode(), &[], None),
    };
    sent.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_come_back_as_they_were() {
        for reply in [Reply(Ok(2)), Reply(Ok(4_194_304)), Reply(Err(libc::EAGAIN))] {
            assert_eq!(Reply::decode(&reply.encode()), Some(reply));
        }
    }

    #[test]
    fn replies_that_name_no_child_are_refused() {
        for bytes in [
            &[0; 8][..],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[5, 0, 0, 0, 1, 0, 0, 0],
            &[5, 0, 0, 0],
            &[0; 9],
        ] {
            assert_eq!(Reply::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn the_kernel_names_its_last_capability() {
        let host = Host::read().unwrap();
        assert!((20..64).contains(&host.last_capability) && host.threads_max > 0);
    }
}
