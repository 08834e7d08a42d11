//! See the library's `launch::launcher`.
#![forbid(unsafe_code)]

fn main() {
    std::process::exit(rootwrap::launch::launcher::main());
}
