//! The policy: who may run what, with which arguments and which privileges.
//!
//! Pure: nothing here reads a file, asks the kernel or looks up a name. `config` turns files into [`spec`]s, [`Policy::build`]
//! compiles them, [`decide`] answers one request and [`explain()`] says why. What only the system can answer (where a path
//! leads, whose executable a process runs) is asked for as [`facts::Question`]s and comes back as [`facts::Facts`].
//!
//! There is one decision function: the daemon, `rootwrapctl explain`, `check` and `list` all call [`decide`].
#![forbid(unsafe_code)]

mod call;
pub mod capability;
pub mod decision;
mod denial;
pub mod environment;
mod evaluate;
pub mod explain;
pub mod facts;
mod hash;
mod index;
mod link;
pub mod list;
mod mask;
mod pattern;
pub mod spec;
pub mod subject;
#[cfg(test)]
mod testing;
mod text;
mod tree;
mod verdict;

pub use decision::{Action, Denial, Outcome, Permit, Reason, Request, decide};
pub use explain::{Explanation, explain};
pub use index::{BuildError, Policy};
pub use list::{Listed, list};
pub use subject::Subject;
pub use text::counted;
