//! One accepted connection: whole messages in, replies out, each within its time, each message from the user who connected.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::time::{Instant, timeout_at};

use super::peer::CallerIdentity;
use super::quota::{Exceeded, Slot};
use super::slow::Slow;
use crate::config::Settings;
use crate::protocol::framing::{self, Decoder, Message, Outgoing, Receipt};
use crate::protocol::{Error, MAX_DESCRIPTORS, Reply};
use crate::sys::async_fd::AsyncOwnedFd;

/// Why a connection is of no more use.
#[derive(Debug)]
pub enum Ended {
    /// The caller closed it, or at least its sending side.
    Closed,
    /// A message was begun and not finished in time.
    HalfMessage,
    /// A reply was not taken in time, or too many are not taken.
    Unread,
    /// A message is longer than the limit in bytes.
    TooLong(usize),
    /// A message came from another user or group.
    Stranger,
    /// The caller has the service hold more than it may.
    OverQuota(Exceeded),
    /// Too much that the caller has passed cannot be closed yet.
    Unclosed,
    /// It was answered with an error after which nothing can be understood.
    Refused,
    /// The kernel.
    Io(io::Error),
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    socket: AsyncOwnedFd,
    caller: Arc<CallerIdentity>,
    decoder: Decoder,
    /// When the message that is not whole yet was begun.
    begun: Option<Instant>,
    /// There may be bytes that no event will tell about any more.
    look: bool,
    timeout: Duration,
    /// Bytes of the message that is not whole yet.
    partial: usize,
    /// Bytes of whole messages that wait or are being answered; who takes messages says how many.
    pending: usize,
    /// Bytes of the reply that is being sent.
    sending: usize,
    account: Slot,
    limit: usize,
    slow: Slow,
}

impl Connection {
    /// Takes an accepted socket, nonblocking.
    ///
    /// # Errors
    /// When the runtime does not take it.
    pub fn new(socket: OwnedFd, caller: Arc<CallerIdentity>, settings: &Settings, account: Slot, slow: Slow) -> io::Result<Self> {
        // What is sent out of band would be dropped by the kernel, with its descriptors, while we receive.
        rustix::net::sockopt::set_socket_oobinline(&socket, true)?;
        let limit = settings.message_size;
        Ok(Self {
            socket: AsyncOwnedFd::register(socket, Interest::READABLE | Interest::WRITABLE)?,
            decoder: Decoder::new(limit).closing_with(slow.closer(caller.uid())),
            caller,
            begun: None,
            look: true,
            timeout: settings.request_timeout,
            partial: 0,
            pending: 0,
            sending: 0,
            account,
            limit,
            slow,
        })
    }

    /// Gives the socket back, to be closed.
    #[must_use]
    pub fn into_socket(self) -> OwnedFd {
        self.socket.into_inner()
    }

    /// Who connected.
    #[must_use]
    pub fn caller(&self) -> &Arc<CallerIdentity> {
        &self.caller
    }

    /// Whether a message is begun.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.decoder.is_idle()
    }

    /// How many bytes of messages are held besides the one that is being received.
    ///
    /// # Errors
    /// [`Ended::OverQuota`].
    pub fn set_pending(&mut self, bytes: usize) -> Result<(), Ended> {
        self.pending = bytes;
        self.settle()
    }

    fn settle(&mut self) -> Result<(), Ended> {
        self.account
            .set_bytes(self.partial.saturating_add(self.pending).saturating_add(self.sending))
            .map_err(Ended::OverQuota)
    }

    /// The next whole message. Cancel safe: nothing that was received gets lost.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn next(&mut self) -> Result<Message, Ended> {
        loop {
            if let Some(message) = self.decoder.take() {
                return Ok(message);
            }
            if self.slow.is_full(self.caller.uid()) {
                return Err(Ended::Unclosed);
            }
            let received = if self.look {
                let received = framing::receive(self.socket.as_fd(), &mut self.decoder, MAX_DESCRIPTORS);
                self.look = !would_block(&received);
                received
            } else {
                let ready = self.socket.readable();
                let ready = match self.begun {
                    Some(begun) => timeout_at(begun + self.timeout, ready).await.map_err(|_| Ended::HalfMessage)?,
                    None => ready.await,
                };
                let mut guard = ready.map_err(Ended::Io)?;
                let received = framing::receive(self.socket.as_fd(), &mut self.decoder, MAX_DESCRIPTORS);
                if would_block(&received) {
                    guard.clear_ready();
                }
                received
            };
            self.take_in(received)?;
            // The runtime has one thread, and a caller can send as fast as we receive: the others' turn comes first.
            tokio::task::yield_now().await;
        }
    }

    fn take_in(&mut self, received: io::Result<Receipt>) -> Result<(), Ended> {
        match received {
            Ok(receipt) if receipt.len == 0 => Err(Ended::Closed),
            Ok(receipt) if !self.caller.sent(receipt.credentials) => Err(Ended::Stranger),
            Ok(receipt) => self.received(receipt.len),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Ok(()),
                io::ErrorKind::InvalidData => Err(Ended::TooLong(self.limit)),
                io::ErrorKind::ConnectionReset => Err(Ended::Closed),
                _ => Err(Ended::Io(error)),
            },
        }
    }

    fn received(&mut self, length: usize) -> Result<(), Ended> {
        if self.decoder.is_idle() {
            self.begun = None;
            self.partial = 0;
        } else {
            let begun = *self.begun.get_or_insert_with(Instant::now);
            if begun.elapsed() >= self.timeout {
                return Err(Ended::HalfMessage);
            }
            self.partial = self.partial.saturating_add(length);
        }
        self.settle()
    }

    /// As [`next`](Self::next), or with no room for another message only the end of the connection. Cancel safe.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn next_or_closed(&mut self, has_room: bool) -> Result<Message, Ended> {
        if has_room {
            return self.next().await;
        }
        self.closed().await;
        Err(Ended::Closed)
    }

    /// Resolves when the caller has closed the connection, without taking what it has sent. Cancel safe.
    async fn closed(&mut self) {
        loop {
            match self.socket.readable().await {
                Ok(mut guard) if !guard.ready().is_read_closed() => guard.clear_ready(),
                _ => return,
            }
            // The event is spent, the bytes are still there.
            self.look = true;
        }
    }

    /// Sends a reply.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn send(&mut self, reply: Reply) -> Result<(), Ended> {
        let bytes = reply.encode().map_err(|error| Ended::Io(io::Error::other(error)))?;
        drop(reply);
        self.sending = bytes.len();
        // Not "busy": what is replied to may have been done.
        self.settle().map_err(|_| Ended::Unread)?;
        let sent = self.send_all(bytes).await;
        self.sending = 0;
        self.settle().and(sent)
    }

    async fn send_all(&mut self, bytes: Vec<u8>) -> Result<(), Ended> {
        let mut outgoing = Outgoing::new(bytes, Vec::new(), None);
        let deadline = Instant::now() + self.timeout;
        loop {
            match outgoing.send(self.socket.as_fd()) {
                Ok(()) if outgoing.is_done() => return Ok(()),
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let ready = timeout_at(deadline, self.socket.writable()).await;
                    let mut guard = ready.map_err(|_| Ended::Unread)?.map_err(Ended::Io)?;
                    if outgoing
                        .send(self.socket.as_fd())
                        .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
                    {
                        guard.clear_ready();
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                    return Err(Ended::Closed);
                }
                Err(error) => return Err(Ended::Io(error)),
            }
        }
    }

    /// Sends an error as the reply to a call.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn send_error(&mut self, error: &Error) -> Result<(), Ended> {
        self.send(Reply::from(error)).await
    }
}

fn would_block<T>(result: &io::Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
