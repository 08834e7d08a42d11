//! Stream sockets of unix(7): bytes with descriptors and credentials, and what the kernel says of the peer.
//!
//! Written on libc where rustix falls short: a peer in a foreign pid namespace has pid 0, which rustix's `UCred` cannot hold.
//! Every descriptor that the kernel installs is owned before anything else happens, so none can leak, whatever arrives.
//! Nothing here decides; nothing here blocks unless the socket does.

use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// SCM_MAX_FD of the kernel: descriptors in one message, at most.
pub const MAX_DESCRIPTORS: usize = 253;

/// Since Linux 6.5: control message with a pidfd, sent where SO_PASSPIDFD is set.
const SCM_PIDFD: libc::c_int = 4;

/// `struct ucred`: who sent a message, or who the peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// Process id in our pid namespace; 0 where the process has none there.
    pub pid: u32,
    /// User id; the effective one of the peer, or what a message's sender gave.
    pub uid: u32,
    /// Group id, alike.
    pub gid: u32,
}

impl Credentials {
    /// This process's id, effective uid and effective gid. The kernel sends *real* ids where a sender gives none.
    #[must_use]
    pub fn effective() -> Self {
        Self {
            pid: std::process::id(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    pub(super) fn from_raw(raw: libc::ucred) -> Self {
        Self {
            pid: u32::try_from(raw.pid).unwrap_or(0),
            uid: raw.uid,
            gid: raw.gid,
        }
    }
}

/// What one [`recv_with`] brought.
#[derive(Debug, Default)]
pub struct Received {
    /// Bytes put into the buffer; 0 at the end of the stream (for a buffer that is not empty).
    pub len: usize,
    /// All descriptors that came, close-on-exec.
    pub fds: Vec<OwnedFd>,
    /// The sender's, where SO_PASSCRED is set.
    pub credentials: Option<Credentials>,
    /// MSG_CTRUNC: there were more descriptors (or a security module refused some); those are gone.
    pub control_truncated: bool,
}

/// A control buffer, aligned for `struct cmsghdr`.
struct Control(Vec<u64>);

impl Control {
    fn with_room(bytes: usize) -> Self {
        Self(vec![0; bytes.div_ceil(size_of::<u64>())])
    }

    fn len(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

/// CMSG_SPACE for `bytes` of payload; payloads here are below 2 KiB.
fn cmsg_space(bytes: usize) -> usize {
    let bytes = libc::c_uint::try_from(bytes).unwrap_or(libc::c_uint::MAX / 2);
    // SAFETY: CMSG_SPACE only computes.
    unsafe { libc::CMSG_SPACE(bytes) as usize }
}

fn cmsg_len(bytes: usize) -> usize {
    let bytes = libc::c_uint::try_from(bytes).unwrap_or(libc::c_uint::MAX / 2);
    // SAFETY: CMSG_LEN only computes.
    unsafe { libc::CMSG_LEN(bytes) as usize }
}

fn message_header(iov: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: msghdr is plain data; all zero is a valid value (null pointers with zero lengths).
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = iov;
    header.msg_iovlen = 1;
    header
}

/// Calls until the result is not EINTR.
fn retry(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(n) => return Ok(n),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Sends bytes, descriptors with their first byte, and credentials; never raises SIGPIPE.
///
/// `bytes` must not be empty when descriptors are sent: a stream socket would drop them silently. May send fewer bytes than given: the descriptors
/// are gone with the first of them, the rest is to be sent without.
///
/// # Errors
/// EINVAL for descriptors without a byte or more than [`MAX_DESCRIPTORS`] of them; EPERM for credentials that are not this process's;
/// EAGAIN on a nonblocking socket that is full; others of sendmsg(2).
pub fn send_with(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>], credentials: Option<Credentials>) -> io::Result<usize> {
    if fds.len() > MAX_DESCRIPTORS || (bytes.is_empty() && !fds.is_empty()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = size_of_val(raw.as_slice());
    let space = if raw.is_empty() { 0 } else { cmsg_space(rights) } + credentials.map_or(0, |_| cmsg_space(size_of::<libc::ucred>()));
    let mut control = Control::with_room(space);
    let mut iov = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut header = message_header(&mut iov);
    if space > 0 {
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = space;
        // SAFETY: the header describes the zeroed, aligned buffer.
        let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
        if let Some(own) = credentials {
            let ucred = libc::ucred {
                pid: libc::pid_t::try_from(own.pid).unwrap_or(-1),
                uid: own.uid,
                gid: own.gid,
            };
            // SAFETY: `space` counts CMSG_SPACE of a ucred for this header, so it is not null and its data fits.
            unsafe {
                put_header(next, libc::SCM_CREDENTIALS, size_of::<libc::ucred>());
                ptr::write_unaligned(libc::CMSG_DATA(next).cast(), ucred);
                next = libc::CMSG_NXTHDR(&raw const header, next);
            }
        }
        if !raw.is_empty() {
            // SAFETY: `space` counts CMSG_SPACE of the descriptors after what was written above.
            unsafe {
                put_header(next, libc::SCM_RIGHTS, rights);
                ptr::copy_nonoverlapping(raw.as_ptr().cast(), libc::CMSG_DATA(next), rights);
            }
        }
    }
    // SAFETY: the header points to `bytes` (only read by sendmsg) and to `control`; both outlive the call.
    retry(|| unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) })
}

/// # Safety
/// `header` points to a control message header in a buffer with room for `payload` bytes of data.
unsafe fn put_header(header: *mut libc::cmsghdr, kind: libc::c_int, payload: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = cmsg_len(payload);
    }
}

/// Receives bytes, up to `max_fds` descriptors, and the sender's credentials where SO_PASSCRED is set.
///
/// Descriptors are close-on-exec from their birth; any beyond `max_fds` are closed. One call never returns bytes of two senders,
/// nor bytes from behind the piece that descriptors came with; it may put earlier pieces without descriptors before that one.
///
/// # Errors
/// EAGAIN on a nonblocking socket with nothing to read; others of recvmsg(2).
pub fn recv_with(socket: BorrowedFd<'_>, buffer: &mut [u8], max_fds: usize) -> io::Result<Received> {
    let rights = max_fds.min(MAX_DESCRIPTORS) * size_of::<RawFd>();
    let mut control = Control::with_room(cmsg_space(size_of::<libc::ucred>()) + cmsg_space(rights));
    let mut iov = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut header = message_header(&mut iov);
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.len();
    // SAFETY: the header points to `buffer` and `control` with their true lengths; both outlive the call. On EINTR nothing was received
    // and the kernel has left the header's lengths alone.
    let len = retry(|| unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC) })?;
    let mut received = Received {
        len,
        control_truncated: header.msg_flags & libc::MSG_CTRUNC != 0,
        ..Received::default()
    };
    // SAFETY: recvmsg has succeeded, so the first msg_controllen bytes of `control` are what the kernel wrote; nobody else has seen them.
    unsafe { take_control(&header, &mut received) };
    if received.fds.len() > max_fds {
        received.fds.truncate(max_fds);
        received.control_truncated = true;
    }
    Ok(received)
}

/// Takes ownership of every descriptor and copies the credentials.
///
/// # Safety
/// `header` is as recvmsg(2) has left it, its control buffer is still there, and this is the only call for it.
unsafe fn take_control(header: &libc::msghdr, received: &mut Received) {
    // SAFETY: the caller's promise; both macros stay within msg_controllen.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const *header) };
    while !next.is_null() {
        // SAFETY: not null, so a whole cmsghdr is there.
        let (level, kind, len) = unsafe { ((*next).cmsg_level, (*next).cmsg_type, (*next).cmsg_len) };
        let payload = len.saturating_sub(cmsg_len(0));
        // SAFETY: only computes.
        let data = unsafe { libc::CMSG_DATA(next) };
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_RIGHTS | SCM_PIDFD) => {
                for index in 0..payload / size_of::<RawFd>() {
                    // SAFETY: the kernel wrote `payload` bytes of descriptors, each newly made in this process and known to nobody else.
                    let fd = unsafe {
                        let raw = ptr::read_unaligned(data.cast::<RawFd>().add(index));
                        (raw >= 0).then(|| OwnedFd::from_raw_fd(raw))
                    };
                    if kind == libc::SCM_RIGHTS {
                        received.fds.extend(fd);
                    }
                }
            }
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if payload >= size_of::<libc::ucred>() => {
                // SAFETY: that many bytes are there; ucred is plain data.
                received.credentials = Some(Credentials::from_raw(unsafe { ptr::read_unaligned(data.cast()) }));
            }
            _ => {}
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(&raw const *header, next) };
    }
}

/// Copies what is waiting into `buffer` and leaves it there, descriptors too; 0 at the end of the stream.
///
/// # Errors
/// EAGAIN on a nonblocking socket with nothing to read; others of recv(2).
pub fn peek(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is writable and as long as said.
    retry(|| unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_PEEK) })
}

/// Two connected stream sockets, close-on-exec, blocking.
///
/// # Errors
/// EMFILE and others of socketpair(2).
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// SO_PASSCRED: from now on every receive brings the sender's credentials. Accepted sockets have it from their listener.
///
/// # Errors
/// Those of setsockopt(2).
pub fn set_pass_credentials(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_passcred(socket, on)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn open_descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    /// One at a time: with several at 253 descriptors each the limit would be near.
    fn alone(test: impl FnOnce()) {
        static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _guard = LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        test();
    }

    #[test]
    fn given_bytes_and_credentials_then_both_arrive() {
        let (a, b) = pair().unwrap();
        set_pass_credentials(b.as_fd(), true).unwrap();
        let own = Credentials::effective();
        assert_eq!(send_with(a.as_fd(), b"hello", &[], Some(own)).unwrap(), 5);
        let mut buffer = [0; 16];
        let received = recv_with(b.as_fd(), &mut buffer, 0).unwrap();
        assert_eq!(&buffer[..received.len], b"hello");
        assert_eq!(received.credentials, Some(own));
        assert!(received.fds.is_empty() && !received.control_truncated);
    }

    #[test]
    fn given_a_receiver_that_wants_no_descriptors_then_they_are_closed_and_it_is_told() {
        alone(|| {
            for (sent, wanted) in [(1, 0), (4, 0), (5, 4), (253, 4), (253, 0)] {
                let (a, b) = pair().unwrap();
                let fds = vec![a.as_fd(); sent];
                send_with(a.as_fd(), b"x", &fds, None).unwrap();
                let received = recv_with(b.as_fd(), &mut [0; 4], wanted).unwrap();
                assert!(received.control_truncated, "{sent} sent, {wanted} wanted");
                assert_eq!(received.fds.len(), wanted);
            }
        });
    }

    #[test]
    fn given_253_descriptors_then_all_are_owned_and_close_on_exec() {
        alone(|| {
            let (a, b) = pair().unwrap();
            set_pass_credentials(b.as_fd(), true).unwrap();
            send_with(a.as_fd(), b"x", &vec![a.as_fd(); 253], Some(Credentials::effective())).unwrap();
            let received = recv_with(b.as_fd(), &mut [0; 4], MAX_DESCRIPTORS).unwrap();
            assert_eq!(received.fds.len(), 253);
            assert!(!received.control_truncated && received.credentials.is_some());
            let flags = rustix::io::fcntl_getfd(&received.fds[252]).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            let before = open_descriptors();
            drop(received);
            assert!(open_descriptors() + 200 < before);
        });
    }

    #[test]
    fn given_descriptors_without_a_byte_then_refused() {
        let (a, _b) = pair().unwrap();
        assert!(send_with(a.as_fd(), b"", &[a.as_fd()], None).is_err());
    }

    #[test]
    fn given_a_closed_peer_then_an_error_and_no_signal() {
        let (a, b) = pair().unwrap();
        drop(b);
        assert_eq!(send_with(a.as_fd(), b"x", &[], None).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn given_a_peek_then_bytes_and_descriptors_stay() {
        let (a, b) = pair().unwrap();
        send_with(a.as_fd(), b"abc", &[a.as_fd()], None).unwrap();
        let mut buffer = [0; 8];
        assert_eq!(peek(b.as_fd(), &mut buffer).unwrap(), 3);
        let received = recv_with(b.as_fd(), &mut buffer, 4).unwrap();
        assert_eq!((received.len, received.fds.len()), (3, 1));
    }
}
