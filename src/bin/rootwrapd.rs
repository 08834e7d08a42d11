//! See the library's `daemon`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    rootwrap::daemon::main()
}
