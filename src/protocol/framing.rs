//! Messages on a stream: each ends with a NUL byte, and its descriptors come with its first byte.
//!
//! A descriptor belongs to the message with whose first byte it came, and to no other: what came late or was cut off by the kernel
//! is closed at once, and the message says so. [`receive`] takes no byte from behind the end of a message, so the kernel cannot
//! hand over the descriptors of the next one together with this one's last bytes.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::sys::passed::{Closer, PassedFd};
use crate::sys::socket::{self, Credentials};

/// Bytes that one [`receive`] takes, at most.
const PIECE: usize = 16 * 1024;

/// One whole message.
#[derive(Debug, Default)]
pub struct Message {
    /// Without the NUL.
    pub bytes: Vec<u8>,
    /// In the order in which they were sent.
    pub fds: Vec<PassedFd>,
    /// Something was wrong with its descriptors: the call must be refused.
    pub fault: Option<DescriptorFault>,
}

/// What was wrong with a message's descriptors. All that were received are in [`Message::fds`] or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorFault {
    /// They came with a later byte than the first.
    #[error("descriptors must come with the first byte of a message")]
    Late,
    /// There were more than the receiver takes, or a security module withheld some.
    #[error("more descriptors were sent than a message may carry")]
    Truncated,
}

/// The message is longer than the receiver allows; nothing after this can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message is longer than {limit} bytes")]
pub struct TooLong {
    /// The limit, in bytes.
    pub limit: usize,
}

/// Cuts a stream into messages.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    /// The message that is not whole yet.
    partial: Message,
    whole: VecDeque<Message>,
    closer: Option<Arc<dyn Closer>>,
}

impl Decoder {
    /// A decoder that takes messages of `limit` bytes, the NUL not counted.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            partial: Message::default(),
            whole: VecDeque::new(),
            closer: None,
        }
    }

    /// Has all descriptors that come closed by this.
    #[must_use]
    pub fn closing_with(self, closer: Arc<dyn Closer>) -> Self {
        Self {
            closer: Some(closer),
            ..self
        }
    }

    fn passed(&self, fds: Vec<OwnedFd>) -> Vec<PassedFd> {
        fds.into_iter().map(|fd| PassedFd::new(fd, self.closer.clone())).collect()
    }

    /// Takes the bytes of one receive and the descriptors that came with them.
    ///
    /// The descriptors go to the message that the first of these bytes belongs to. `truncated`: some of them were dropped.
    ///
    /// # Errors
    /// [`TooLong`]; the connection is of no more use then. Memory never exceeds the limit by more than one piece.
    pub fn feed(&mut self, bytes: &[u8], fds: Vec<PassedFd>, truncated: bool) -> Result<(), TooLong> {
        if !fds.is_empty() || truncated {
            if self.is_idle() {
                self.partial.fds = fds;
            } else {
                self.partial.fault = Some(DescriptorFault::Late);
            }
            if truncated {
                self.partial.fault = Some(DescriptorFault::Truncated);
            }
        }
        for piece in bytes.split_inclusive(|byte| *byte == 0) {
            let (text, ended) = match piece.split_last() {
                Some((0, text)) => (text, true),
                _ => (piece, false),
            };
            if self.partial.bytes.len() + text.len() > self.limit {
                return Err(TooLong { limit: self.limit });
            }
            self.partial.bytes.extend_from_slice(text);
            if ended {
                self.whole.push_back(std::mem::take(&mut self.partial));
            }
        }
        Ok(())
    }

    /// The next whole message. (Not an iterator: it may have more after `None`.)
    pub fn take(&mut self) -> Option<Message> {
        self.whole.pop_front()
    }

    /// Whether no message is begun: the stream may end here, and no deadline runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.partial.bytes.is_empty() && self.partial.fds.is_empty() && self.partial.fault.is_none()
    }
}

/// What one [`receive`] brought besides what the decoder took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Bytes taken; 0: the peer will send no more.
    pub len: usize,
    /// The sender's, where SO_PASSCRED is set. They hold for all of the bytes.
    pub credentials: Option<Credentials>,
}

/// Receives once, no further than the end of one message, and feeds the decoder.
///
/// # Errors
/// EAGAIN on a nonblocking socket with nothing to read; InvalidData (holding a [`TooLong`]) for a message that is too long; others of recvmsg(2).
pub fn receive(socket: BorrowedFd<'_>, decoder: &mut Decoder, max_fds: usize) -> io::Result<Receipt> {
    let mut buffer = [0_u8; PIECE];
    let waiting = socket::peek(socket, &mut buffer)?;
    let to_take = match buffer.iter().take(waiting).position(|byte| *byte == 0) {
        Some(end) => end + 1,
        None => waiting,
    };
    let piece = buffer.get_mut(..to_take).unwrap_or_default();
    if piece.is_empty() {
        return Ok(Receipt { len: 0, credentials: None });
    }
    // Room for all that can come: what the kernel has to drop it closes before this call comes back, however long that takes.
    let received = socket::recv_with(socket, piece, socket::MAX_DESCRIPTORS)?;
    let truncated = received.control_truncated || received.fds.len() > max_fds;
    let mut fds = decoder.passed(received.fds);
    fds.truncate(max_fds);
    decoder
        .feed(piece.get(..received.len).unwrap_or_default(), fds, truncated)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Receipt {
        len: received.len,
        credentials: received.credentials,
    })
}

/// A message being sent: bytes with the NUL, and descriptors that go with the first of them.
#[derive(Debug)]
pub struct Outgoing<'fd> {
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<BorrowedFd<'fd>>,
    credentials: Option<Credentials>,
}

impl<'fd> Outgoing<'fd> {
    /// `text` must hold no NUL (JSON never does); `credentials` are sent with every piece.
    #[must_use]
    pub fn new(mut text: Vec<u8>, fds: Vec<BorrowedFd<'fd>>, credentials: Option<Credentials>) -> Self {
        debug_assert!(!text.contains(&0));
        text.push(0);
        Self {
            bytes: text,
            sent: 0,
            fds,
            credentials,
        }
    }

    /// Whether all has been sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.sent >= self.bytes.len()
    }

    /// Sends as much as one call takes; call until [`is_done`](Self::is_done).
    ///
    /// # Errors
    /// EAGAIN on a nonblocking socket that is full; others of sendmsg(2).
    pub fn send(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let rest = self.bytes.get(self.sent..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        let fds: &[BorrowedFd<'_>] = if self.sent == 0 { &self.fds } else { &[] };
        self.sent += match socket::send_with(socket, rest, fds, self.credentials) {
            // A user namespace without our ids has no number to send for them (user_namespaces(7)): the kernel knows better.
            Err(error) if self.credentials.is_some() && error.kind() == io::ErrorKind::InvalidInput => {
                self.credentials = None;
                socket::send_with(socket, rest, fds, None)?
            }
            sent => sent?,
        };
        Ok(())
    }

    /// Sends all on a blocking socket.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn send_all(mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        while !self.is_done() {
            self.send(socket)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::socket::pair;
    use std::os::fd::AsFd;

    fn null() -> PassedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    fn all(decoder: &mut Decoder) -> Vec<(Vec<u8>, usize, Option<DescriptorFault>)> {
        std::iter::from_fn(|| decoder.take())
            .map(|m| (m.bytes, m.fds.len(), m.fault))
            .collect()
    }

    #[test]
    fn given_descriptors_with_the_first_byte_then_they_are_that_messages_only() {
        let mut decoder = Decoder::new(64);
        decoder.feed(b"{", vec![null(), null()], false).unwrap();
        decoder.feed(b"}\0{}\0", vec![], false).unwrap();
        assert_eq!(all(&mut decoder), [(b"{}".to_vec(), 2, None), (b"{}".to_vec(), 0, None)]);
        assert!(decoder.is_idle());
    }

    #[test]
    fn given_descriptors_in_the_middle_then_the_message_is_at_fault_and_the_next_is_not() {
        let mut decoder = Decoder::new(64);
        decoder.feed(b"{", vec![], false).unwrap();
        decoder.feed(b"}\0{}\0", vec![null()], false).unwrap();
        assert_eq!(
            all(&mut decoder),
            [(b"{}".to_vec(), 0, Some(DescriptorFault::Late)), (b"{}".to_vec(), 0, None)]
        );
    }

    #[test]
    fn given_the_limit_then_exactly_that_many_bytes_pass() {
        let mut decoder = Decoder::new(4);
        decoder.feed(b"1234\0", vec![], false).unwrap();
        assert_eq!(decoder.feed(b"12345", vec![], false), Err(TooLong { limit: 4 }));
        let mut decoder = Decoder::new(4);
        decoder.feed(b"123", vec![], false).unwrap();
        assert_eq!(decoder.feed(b"45\0", vec![], false), Err(TooLong { limit: 4 }));
    }

    #[test]
    fn given_two_pipelined_messages_then_descriptors_stay_with_the_second() {
        let (a, b) = pair().unwrap();
        let first = Outgoing::new(b"{}".to_vec(), vec![], None);
        let second = Outgoing::new(b"[]".to_vec(), vec![a.as_fd()], None);
        first.send_all(a.as_fd()).unwrap();
        second.send_all(a.as_fd()).unwrap();
        let mut decoder = Decoder::new(64);
        assert_eq!(receive(b.as_fd(), &mut decoder, 4).unwrap().len, 3);
        assert_eq!(receive(b.as_fd(), &mut decoder, 4).unwrap().len, 3);
        assert_eq!(all(&mut decoder), [(b"{}".to_vec(), 0, None), (b"[]".to_vec(), 1, None)]);
        drop(a);
        assert_eq!(receive(b.as_fd(), &mut decoder, 4).unwrap().len, 0);
    }

    #[test]
    fn given_too_many_descriptors_then_the_message_is_at_fault() {
        let (a, b) = pair().unwrap();
        Outgoing::new(b"{}".to_vec(), vec![a.as_fd(); 5], None).send_all(a.as_fd()).unwrap();
        let mut decoder = Decoder::new(64);
        receive(b.as_fd(), &mut decoder, 4).unwrap();
        assert_eq!(all(&mut decoder), [(b"{}".to_vec(), 4, Some(DescriptorFault::Truncated))]);
    }
}
