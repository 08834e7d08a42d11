//! See the library's `ctl`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    rootwrap::ctl::main()
}
