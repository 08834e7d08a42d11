//! What can go wrong for a client.

use std::io;
use std::path::PathBuf;

use crate::protocol;

/// Why a call has no answer, or which error it was answered with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens, or the socket may not be used.
    #[error("cannot reach rootwrapd at {}: {source}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// connect(2)'s.
        source: io::Error,
    },
    /// The socket, or who listens there, belongs to somebody who could be anybody.
    #[error("{} belongs to uid {uid}, who is not trusted to run commands as root: nothing was sent", path.display())]
    Untrusted {
        /// The socket.
        path: PathBuf,
        /// Its owner, or the server's user.
        uid: u32,
    },
    /// The service answered with an error.
    #[error(transparent)]
    Refused(#[from] protocol::Error),
    /// The connection broke while a call was under way: whether it had an effect is unknown.
    #[error("the connection to rootwrapd broke: {0}")]
    Broken(#[source] io::Error),
    /// The request cannot be sent as it is; nothing was sent.
    #[error("{0}")]
    Unsendable(String),
    /// The service sent something that is no reply to what it was asked.
    #[error("rootwrapd does not speak the protocol: {0}")]
    Protocol(#[from] protocol::Malformed),
}
