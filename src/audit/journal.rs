//! The datagram socket of systemd-journald: one attempt at a time, never blocking.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::sys::memfd;

/// Where journald listens for records in its native protocol.
pub const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";

/// Records above this size travel in a memfd, so that one of them does not take the room of hundreds in the socket's buffer.
const DATAGRAM_LIMIT: usize = 128 * 1024;
/// Room for records that journald has not read yet, in bytes; what systemd's own clients ask for.
const SEND_BUFFER: usize = 8 * 1024 * 1024;

/// Why a record was not handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// journald's queue is full; wait until the socket is writable.
    Full,
    /// Nobody listens; try again later.
    Unreachable(Errno),
}

/// Opens an unconnected socket. Done before capabilities are dropped: the large send buffer needs CAP_NET_ADMIN, without it the
/// system's default must do.
///
/// # Errors
/// socket(2).
pub fn open() -> std::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    // Not vital: with the default buffer fewer records fit before senders have to wait.
    let _ = nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::SndBufForce, &SEND_BUFFER);
    Ok(socket)
}

/// The journal's address and whether the socket is connected to it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    connected: bool,
}

impl Journal {
    /// Not connected yet.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            connected: false,
        }
    }

    /// Hands one record over, connecting (again) where that is needed: after a restart of the journal's socket the old
    /// address is dead and the path leads to a new one.
    pub fn send(&mut self, socket: BorrowedFd<'_>, record: &[u8]) -> Result<(), SendError> {
        let mut fresh = false;
        loop {
            if !self.connected {
                self.connect(socket)?;
                fresh = true;
            }
            match send_once(socket, record) {
                Ok(()) => return Ok(()),
                // ENOBUFS, ENOMEM, ETOOMANYREFS: short of memory or of descriptors in flight; that passes as well.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::TOOMANYREFS | Errno::INTR) => return Err(SendError::Full),
                Err(errno) => {
                    self.connected = false;
                    if fresh {
                        return Err(SendError::Unreachable(errno));
                    }
                }
            }
        }
    }

    fn connect(&mut self, socket: BorrowedFd<'_>) -> Result<(), SendError> {
        let address = SocketAddrUnix::new(&self.path).map_err(SendError::Unreachable)?;
        rustix::net::connect(socket, &address).map_err(SendError::Unreachable)?;
        self.connected = true;
        Ok(())
    }
}

fn send_once(socket: BorrowedFd<'_>, record: &[u8]) -> Result<(), Errno> {
    if record.len() <= DATAGRAM_LIMIT {
        match rustix::net::send(socket, record, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::MSGSIZE) => {}
            Err(errno) => return Err(errno),
        }
    }
    // journald takes the contents of a file that nobody can change as they are.
    let file = memfd::sealed("rootwrap-record", record).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    send_memfd(socket, &file)
}

fn send_memfd(socket: BorrowedFd<'_>, file: &OwnedFd) -> Result<(), Errno> {
    let descriptors = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    rustix::net::sendmsg(socket, &[] as &[IoSlice<'_>], &mut control, SendFlags::NOSIGNAL).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn given_no_journal_then_it_is_unreachable_and_later_reached() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (socket, mut journal) = (open().unwrap(), Journal::new(&path));
        assert_eq!(journal.send(socket.as_fd(), b"A=1\n"), Err(SendError::Unreachable(Errno::NOENT)));
        let server = UnixDatagram::bind(&path).unwrap();
        assert_eq!(journal.send(socket.as_fd(), b"A=1\n"), Ok(()));
        let mut buffer = [0; 64];
        assert_eq!(server.recv(&mut buffer).unwrap(), 4);
    }

    #[test]
    fn given_a_replaced_socket_then_the_next_record_goes_to_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (socket, mut journal) = (open().unwrap(), Journal::new(&path));
        let old = UnixDatagram::bind(&path).unwrap();
        journal.send(socket.as_fd(), b"A=1\n").unwrap();
        drop(old);
        std::fs::remove_file(&path).unwrap();
        let new = UnixDatagram::bind(&path).unwrap();
        journal.send(socket.as_fd(), b"A=2\n").unwrap();
        let mut buffer = [0; 64];
        let length = new.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"A=2\n");
    }

    #[test]
    fn given_a_full_queue_then_it_says_so_and_does_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (socket, mut journal) = (open().unwrap(), Journal::new(&path));
        let _server = UnixDatagram::bind(&path).unwrap();
        let refused = (0..100_000).find_map(|_| journal.send(socket.as_fd(), b"A=1\n").err());
        assert_eq!(refused, Some(SendError::Full));
    }

    #[test]
    fn a_large_record_arrives_in_a_sealed_memfd() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (socket, mut journal) = (open().unwrap(), Journal::new(&path));
        let server = UnixDatagram::bind(&path).unwrap();
        let record = vec![b'x'; DATAGRAM_LIMIT + 1];
        journal.send(socket.as_fd(), &record).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::RecvAncillaryBuffer::new(&mut space);
        let got = rustix::net::recvmsg(&server, &mut [], &mut control, rustix::net::RecvFlags::empty()).unwrap();
        assert_eq!(got.bytes, 0);
        let file = control.drain().find_map(|message| match message {
            rustix::net::RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let file = file.unwrap();
        use rustix::fs::SealFlags;
        let seals = rustix::fs::fcntl_get_seals(&file).unwrap();
        assert!(seals.contains(SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW));
        let mut contents = vec![0; record.len() + 1];
        assert_eq!(rustix::io::pread(&file, &mut contents, 0).unwrap(), record.len());
        assert_eq!(&contents[..record.len()], &record[..]);
    }
}
