//! Why a request was decided as it was: for every filter of the command, the first thing that did not match.

use super::facts::Facts;
use super::{Outcome, Policy, Request};

/// The decision, and every filter of that command that this caller may use, in order.
#[derive(Debug)]
pub struct Explanation {
    /// What [`decide`](super::decide) said.
    pub outcome: Outcome,
    /// The filters that were looked at.
    pub tried: Vec<Tried>,
}

/// One filter that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Its name.
    pub filter: String,
    /// `file:line`.
    pub source: String,
    /// `None`: it matches.
    pub mismatch: Option<Mismatch>,
}

/// The furthest point that a filter reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Index into argv of the first argument that nothing could take; argv.len() where more was expected. `None`: not about an argument.
    pub argument: Option<usize>,
    /// What was expected there, in words: "an integer from 68 to 65535".
    pub expected: String,
}

/// Explains one request: calls [`decide`](super::decide), then looks at each filter once more.
#[must_use]
pub fn explain(_policy: &Policy, _request: &Request<'_>, _facts: &Facts) -> Explanation {
    todo!()
}
