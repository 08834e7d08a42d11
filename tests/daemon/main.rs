//! The real rootwrapd and rootwrap-launcher, started by the tests with a socket, a policy and a journal of their own. They need root;
//! no systemd. What needs a booted systemd is in `tests/integration`.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub
)]

mod activation;
mod bad_input;
mod commands;
mod identity;
mod journal_trouble;
mod life;
mod limits;
mod policy_life;
mod slow_descriptors;
mod support;
