//! The verbs of `rootwrapctl`, a file each.
#![forbid(unsafe_code)]

/// The command's main function; returns its exit status.
#[must_use]
pub fn main() -> std::process::ExitCode {
    todo!()
}
