//! Clients of the service: blocking, tokio, and the client command.
#![forbid(unsafe_code)]

/// The client command.
#[cfg(feature = "cli")]
pub mod command;
