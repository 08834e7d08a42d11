//! rootwrapd: listener, callers, sessions, quotas, reload, life cycle.
#![forbid(unsafe_code)]

/// The daemon's main function; returns its exit status.
#[must_use]
pub fn main() -> std::process::ExitCode {
    todo!()
}
