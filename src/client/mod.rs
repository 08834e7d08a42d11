//! Clients of the service: blocking, tokio, and the client command.
//!
//! ```no_run
//! # fn main() -> Result<(), rootwrap::client::Error> {
//! let mut client = rootwrap::client::Client::connect_default()?;
//! let output = client.command(["ip", "link", "set", "v0", "up"]).run()?;
//! assert!(output.status.success());
//! # Ok(()) }
//! ```
//!
//! A connection carries one command at a time; connect again for several at once. The service takes the caller's identity from
//! the connection and from every message, so a connection that another user is handed is of no use to them.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

#[cfg(feature = "tokio")]
mod asynchronous;
mod blocking;
/// The client command.
#[cfg(feature = "cli")]
pub mod command;
mod connection;
mod error;
mod request;
mod server;

#[cfg(feature = "tokio")]
pub use asynchronous::{AsyncClient, AsyncConnection};
pub use blocking::Client;
pub use connection::Connection;
pub use error::Error;
pub use request::{Command, Input, Output, Prepared, Running, Sink, Transport};
pub use server::Server;
