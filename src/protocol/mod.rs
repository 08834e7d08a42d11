//! Varlink: framing on a stream socket, the messages of `io.rootwrap`, the interface definition.
//!
//! No I/O policy here (no deadlines, no quotas): those are the daemon's and the clients'. `rootwrap-protocol(7)` documents what
//! goes over the wire, `io.rootwrap.varlink` defines it; a test holds the types here against that file.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

pub mod error;
pub mod fields;
pub mod framing;
pub mod io_rootwrap;
pub mod json;
pub mod message;
pub mod method;
pub mod org_varlink_service;
pub mod run;

pub use error::Error;
pub use framing::{Decoder, Message};
pub use message::{Call, Malformed, Reply};
pub use method::Method;

/// Where the service listens.
pub const SOCKET_PATH: &str = "/run/rootwrap.sock";

/// Descriptors that a call can carry: standard input, output, error and a working directory.
pub const MAX_DESCRIPTORS: usize = 4;

/// Bytes of one message without its NUL, unless a setting says otherwise.
pub const MESSAGE_SIZE: usize = 256 * 1024;

/// Arguments of one command, at most.
pub const MAX_ARGUMENTS: usize = 4096;
