//! `rootwrap-launcher`: single-threaded, asked over a socketpair (its standard input) for "a child in this cgroup".

/// The launcher's main loop; returns its exit status when rootwrapd is gone.
#[must_use]
pub fn main() -> i32 {
    todo!()
}
