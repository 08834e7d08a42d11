//! rootwrapd: listener, callers, sessions, quotas, reload, life cycle.
//!
//! [`start`] prepares the process (sockets, cgroup, launcher, confinement); [`serve`] is its life; [`accept`] lets callers in,
//! [`peer`] says who they are, a [`session`] answers one of them; [`run`] carries out one command and `supervise` sees it to its end.
//! One thread runs all of it; loading a policy is the only work that is done in another one. Every limit is in [`quota`].
#![forbid(unsafe_code)]

pub mod accept;
pub mod capture;
pub mod cgroup;
pub mod confine;
pub mod connection;
pub mod decide;
pub mod descriptors;
pub mod diagnostics;
pub mod executables;
pub mod facts;
pub mod jobs;
pub mod listen;
mod not_started;
pub mod notify;
pub mod peer;
pub mod procfs;
pub mod quota;
pub mod reload;
pub mod run;
pub mod serve;
pub mod service;
pub mod session;
pub mod slow;
pub mod start;
mod supervise;
mod terminal;
pub mod verbs;

pub use start::main;
