//! A blocking connection: calls out, replies in.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::error::Error;
use super::request::Transport;
use super::server::Server;
use crate::protocol::framing::{Outgoing, receive};
use crate::protocol::{Call, Decoder, Reply};
use crate::sys::socket::Credentials;

/// Bytes of a reply: captured output, in base64, of whatever limit the service has.
const REPLY_SIZE: usize = 256 * 1024 * 1024;

pub(super) fn decoder() -> Decoder {
    Decoder::new(REPLY_SIZE)
}

/// A call ready to be sent: with the effective ids of this process, which the kernel would not fill in by itself.
pub(super) fn outgoing<'fd>(call: &Call, fds: &'fd [OwnedFd]) -> Result<Outgoing<'fd>, Error> {
    let fds = fds.iter().map(AsFd::as_fd).collect();
    Ok(Outgoing::new(call.encode()?, fds, Some(Credentials::effective())))
}

/// A server that refuses before it reads (too many connections) has closed by now, but its reply is waiting: it says why.
pub(super) fn sent(result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Error::Broken),
    }
}

pub(super) fn end_of_stream() -> Error {
    Error::Broken(io::ErrorKind::UnexpectedEof.into())
}

/// A connection with nothing above the protocol's calls and replies; [`Client`](super::Client) is easier to use.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    decoder: Decoder,
}

impl Connection {
    /// Connects to a server that is trusted.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Untrusted`].
    pub fn open(server: &Server) -> Result<Self, Error> {
        Ok(Self::over(server.connect()?))
    }

    /// Speaks over a connected, blocking socket; who is at its other end was checked before.
    #[must_use]
    pub fn over(socket: OwnedFd) -> Self {
        Self {
            socket,
            decoder: decoder(),
        }
    }

    /// Sends a call and descriptors. A peer that takes no more is no error here: the reply, or the end of the stream, says what happened.
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub fn send(&self, call: &Call, fds: &[OwnedFd]) -> Result<(), Error> {
        sent(outgoing(call, fds)?.send_all(self.socket.as_fd()))
    }

    /// Receives once: call it when the socket is readable. `None`: the reply is not whole yet.
    ///
    /// # Errors
    /// [`Error::Broken`] also at the end of the stream; [`Error::Protocol`].
    pub fn try_reply(&mut self) -> Result<Option<Reply>, Error> {
        if let Some(message) = self.decoder.take() {
            return Ok(Some(Reply::parse(&message.bytes)?));
        }
        match receive(self.socket.as_fd(), &mut self.decoder, 0).map_err(Error::Broken)?.len {
            0 => Err(end_of_stream()),
            _ => self.decoder.take().map(|message| Ok(Reply::parse(&message.bytes)?)).transpose(),
        }
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// As [`try_reply`](Self::try_reply).
    pub fn reply(&mut self) -> Result<Reply, Error> {
        loop {
            if let Some(reply) = self.try_reply()? {
                return Ok(reply);
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Transport for Connection {
    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
