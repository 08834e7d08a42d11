//! `rootwrapctl` as a process on policies in temporary directories; the documents agree with the programs.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends so when what it needs is missing"
)]

mod check;
mod docs;
mod explain;
mod man;
mod workspace;
