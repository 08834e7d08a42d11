//! What the kernel says of a connected unix(7) peer: taken at connect(2), never from a message.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::socket::Credentials;

/// Since Linux 6.5; not in every libc.
const SO_PEERPIDFD: libc::c_int = 77;
/// Supplementary groups that fit without asking twice.
const USUAL_GROUPS: usize = 64;
/// NGROUPS_MAX of the kernel.
const MAX_GROUPS: usize = 65_536;
/// Bytes of a security label that are believed.
const MAX_LABEL: usize = 64 * 1024;

/// getsockopt(2) at SOL_SOCKET into `values`; returns the bytes that the kernel says there are (on ERANGE too, hence the pair).
fn get<T: Copy>(socket: BorrowedFd<'_>, option: libc::c_int, values: &mut [MaybeUninit<T>]) -> (usize, io::Result<()>) {
    let mut len = libc::socklen_t::try_from(std::mem::size_of_val(values)).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `len` bytes, which `values` has.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            values.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let result = if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    (len as usize, result)
}

/// An option of fixed size.
///
/// # Safety
/// Every bit pattern is a valid `T`.
unsafe fn get_one<T: Copy>(socket: BorrowedFd<'_>, option: libc::c_int) -> io::Result<T> {
    let mut value = [MaybeUninit::<T>::uninit()];
    let (len, result) = get(socket, option, &mut value);
    result?;
    if len != size_of::<T>() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let [value] = value;
    // SAFETY: the kernel wrote size_of::<T>() bytes, and the caller says that any will do.
    Ok(unsafe { value.assume_init() })
}

/// A list option, grown as long as the kernel answers ERANGE, up to `most` elements.
///
/// # Safety
/// Every bit pattern is a valid `T`.
unsafe fn get_list<T: Copy>(socket: BorrowedFd<'_>, option: libc::c_int, first: usize, most: usize) -> io::Result<Vec<T>> {
    let mut room = first;
    loop {
        let mut values: Vec<T> = Vec::with_capacity(room);
        let spare = values.spare_capacity_mut();
        let (len, result) = get(socket, option, spare);
        let count = len / size_of::<T>();
        match result {
            Ok(()) if count <= spare.len() => {
                // SAFETY: the kernel wrote `count` elements, and the caller says that any bytes will do.
                unsafe { values.set_len(count) };
                return Ok(values);
            }
            Err(error) if error.raw_os_error() == Some(libc::ERANGE) && room < most => room = count.max(room * 2).min(most),
            Ok(()) => return Err(io::ErrorKind::InvalidData.into()),
            Err(error) => return Err(error),
        }
    }
}

/// SO_PEERCRED: pid, effective uid and effective gid at connect(2) (for a client: at the server's listen(2)).
///
/// # Errors
/// Those of getsockopt(2); never a made-up answer.
pub fn credentials(socket: BorrowedFd<'_>) -> io::Result<Credentials> {
    // SAFETY: ucred is three integers.
    Ok(Credentials::from_raw(unsafe { get_one::<libc::ucred>(socket, libc::SO_PEERCRED)? }))
}

/// SO_PEERGROUPS: supplementary groups at connect(2), in the kernel's order, all of them.
///
/// # Errors
/// Those of getsockopt(2).
pub fn groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    // SAFETY: gid_t is an integer.
    unsafe { get_list::<libc::gid_t>(socket, libc::SO_PEERGROUPS, USUAL_GROUPS, MAX_GROUPS) }
}

/// SO_PEERSEC: the security label without a NUL at its end; `None` where no security module gives one.
///
/// # Errors
/// Those of getsockopt(2) but ENOPROTOOPT.
pub fn security_label(socket: BorrowedFd<'_>) -> io::Result<Option<Vec<u8>>> {
    // SAFETY: bytes.
    match unsafe { get_list::<u8>(socket, libc::SO_PEERSEC, 256, MAX_LABEL) } {
        Ok(mut label) => {
            while label.last() == Some(&0) {
                label.pop();
            }
            Ok((!label.is_empty()).then_some(label))
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A pidfd of the process that called connect(2), close-on-exec. It may have ended: see [`alive`].
///
/// SO_PEERPIDFD where the kernel has it (6.5). Before, pidfd_open(2) on SO_PEERCRED's pid, which may be another process's by now:
/// then the process must still be there and have the peer's effective uid, which leaves only processes of the same user to be taken for it.
///
/// # Errors
/// ESRCH when the process is gone or has no id in our pid namespace; others of getsockopt(2) and pidfd_open(2).
pub fn pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: an integer.
    match unsafe { get_one::<RawFd>(socket, SO_PEERPIDFD) } {
        // SAFETY: the kernel has just made this descriptor for us, close-on-exec.
        Ok(raw) if raw >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(raw) }),
        Ok(_) => Err(io::ErrorKind::InvalidData.into()),
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => pidfd_by_number(credentials(socket)?),
        Err(error) => Err(error),
    }
}

fn gone() -> io::Error {
    io::Error::from_raw_os_error(libc::ESRCH)
}

fn pidfd_by_number(peer: Credentials) -> io::Result<OwnedFd> {
    let pid = i32::try_from(peer.pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", peer.pid)).map_err(|_| gone())?;
    // Read first, then looked at: a process that is alive now was the one that was read.
    if alive(pidfd.as_fd())? && effective_uid(&status) == Some(peer.uid) {
        Ok(pidfd)
    } else {
        Err(gone())
    }
}

/// The second number of `Uid:` in /proc/PID/status, proc(5).
fn effective_uid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Whether the process behind a pidfd has not ended (a zombie has).
///
/// # Errors
/// Those of poll(2).
pub fn alive(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(poll(&mut fds, Some(&now))? == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::socket::pair;

    #[test]
    fn given_a_pair_then_the_peer_is_this_process() {
        let (a, _b) = pair().unwrap();
        let peer = credentials(a.as_fd()).unwrap();
        assert_eq!(peer, Credentials::effective());
        assert!(alive(pidfd(a.as_fd()).unwrap().as_fd()).unwrap());
        let mut groups = groups(a.as_fd()).unwrap();
        let mut own: Vec<u32> = rustix::process::getgroups().unwrap().iter().map(|g| g.as_raw()).collect();
        groups.sort_unstable();
        own.sort_unstable();
        assert_eq!(groups, own);
        security_label(a.as_fd()).unwrap();
    }

    #[test]
    fn given_an_old_kernel_then_the_number_and_the_uid_are_enough() {
        let own = Credentials::effective();
        assert!(alive(pidfd_by_number(own).unwrap().as_fd()).unwrap());
        let stranger = Credentials { uid: own.uid + 1, ..own };
        assert_eq!(pidfd_by_number(stranger).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        let foreign = Credentials { pid: 0, ..own };
        assert_eq!(pidfd_by_number(foreign).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn given_a_process_that_ended_then_it_is_not_alive() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        child.wait().unwrap();
        assert!(!alive(pidfd.as_fd()).unwrap());
    }

    #[test]
    fn given_a_regular_file_then_no_credentials_are_made_up() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(credentials(file.as_fd()).is_err());
        assert!(groups(file.as_fd()).is_err());
        assert!(pidfd(file.as_fd()).is_err());
    }

    #[test]
    fn given_the_uid_line_then_the_effective_one_is_read() {
        assert_eq!(effective_uid("Name:\tx\nUid:\t1\t2\t3\t4\n"), Some(2));
        assert_eq!(effective_uid("Name:\tx\n"), None);
    }
}
