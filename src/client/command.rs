//! `rootwrap`: passes its own descriptors, mirrors the command's exit.

/// The client command's main function; returns its exit status.
#[must_use]
pub fn main() -> std::process::ExitCode {
    todo!()
}
