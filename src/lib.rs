//! `rootwrap`: unprivileged programs run the few privileged commands that an administrator allowed them.
//!
//! The map of the crate. Arrows are the only directions in which modules may depend on each other:
//!
//! | module | what lives there | may use |
//! |---|---|---|
//! | [`sys`] | every system call that needs `unsafe`; descriptors in and out are owned or borrowed | - |
//! | [`protocol`] | Varlink framing, the messages, the interface definition | `sys` |
//! | [`client`] | blocking and tokio clients, the client command | `protocol` |
//! | `policy` | pure: elements, matching, index, decision, explanation; no input or output | - |
//! | `config` | TOML files, directories, owner checks, diagnostics | `policy`, `sys` |
//! | `launch` | jobs, the launcher, parked children, the ordered steps before exec | `policy`, `config::trusted`, `sys` |
//! | `explained` | an explanation as `io.rootwrap` says it | `policy`, `protocol` |
//! | `audit` | the events and the journal sink | `policy`, `sys` |
//! | `daemon` | listener, callers, sessions, quotas, reload, life cycle | all of the above but `client` |
//! | `ctl` | the verbs of `rootwrapctl`, a file each | `client`, `config`, `policy`, `explained` |
//! | `cli` | the command-line definitions: help, man pages and completions come from here | - |
//!
//! With `default-features = false` the library is the blocking client alone; the feature `tokio` adds the asynchronous one.

#[cfg(feature = "cli")]
pub mod cli;
pub mod client;
pub mod protocol;
pub mod sys;

#[cfg(feature = "daemon")]
pub mod audit;
#[cfg(feature = "daemon")]
pub mod config;
#[cfg(feature = "daemon")]
pub mod ctl;
#[cfg(feature = "daemon")]
pub mod daemon;
#[cfg(feature = "daemon")]
mod explained;
#[cfg(feature = "daemon")]
pub mod launch;
#[cfg(feature = "daemon")]
pub mod policy;
