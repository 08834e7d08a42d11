//! Why a request was decided as it was: for every filter of the command, the first thing that did not match.

use super::call::Call;
use super::decision::is_usable;
use super::evaluate::{Case, Fit};
use super::facts::Facts;
use super::index::Filter;
use super::pattern::Tracker;
use super::text::either;
use super::{Outcome, Policy, Request, decide};

/// The decision, and every filter of that command that this caller may use, in order.
#[derive(Debug)]
pub struct Explanation {
    /// What [`decide`] said.
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

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.argument {
            Some(argument) => write!(f, "argument {argument}: expected {}", self.expected),
            None => write!(f, "expected {}", self.expected),
        }
    }
}

/// Explains one request: calls [`decide`], then looks at each filter once more.
#[must_use]
pub fn explain(policy: &Policy, request: &Request<'_>, facts: &Facts) -> Explanation {
    let outcome = decide(policy, request, facts);
    let mut tried = Vec::new();
    if let Some(call) = Call::new(request).filter(|_| request.profile.is_none()) {
        let case = Case::new(policy, request, &call, facts);
        let usable = policy.candidates(call.command).filter(|(_, filter)| is_usable(filter, request));
        tried.extend(usable.map(|(_, filter)| Tried {
            filter: filter.spec.name.clone(),
            source: policy.source(&filter.spec),
            mismatch: mismatch(&case, filter),
        }));
    }
    Explanation { outcome, tried }
}

fn mismatch(case: &Case<'_>, filter: &Filter) -> Option<Mismatch> {
    let mut tracker = Tracker::default();
    let (argument, expected) = match case.evaluate(filter, Some(&mut tracker)) {
        Fit::Match(found) if found.verdict.allows() => return None,
        Fit::Match(_) | Fit::Arguments => (Some(case.call.offset + 1 + tracker.furthest), either(&tracker.expected)),
        Fit::Environment(refused) => {
            // A variable of `env` in front is the word after it.
            let word = refused
                .at
                .checked_sub(case.call.given)
                .map(|at| at + 1)
                .filter(|at| *at < case.call.offset);
            (word, refused.expected)
        }
        Fit::Cwd(expected) => (None, expected.to_owned()),
        Fit::Stdin => (None, "no standard input".to_owned()),
    };
    Some(Mismatch { argument, expected })
}
