//! The launcher with real processes: what a command has, and what it has not; how it ends, and what is left of it.
//!
//! The test process plays rootwrapd: jobs are made from permits, permits come from the policy. Needs root, cgroup2 and the tools of
//! `tests/run`; without them it fails and says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends so when what it needs is missing"
)]

mod descriptors;
mod failures;
mod life;
mod matrix;
mod privileges;
mod probes;
mod support;
