//! Varlink: framing on a stream socket, the messages of `io.rootwrap`, the interface definition.
//!
//! No I/O policy here (no deadlines, no quotas): those are the daemon's and the clients'.
#![forbid(unsafe_code)]
