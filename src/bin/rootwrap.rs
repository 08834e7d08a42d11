//! See the library's `client::command`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    rootwrap::client::command::main()
}
