//! The one decision function.

use std::path::PathBuf;
use std::sync::Arc;

use super::call::{Call, leading_assignments};
use super::evaluate::{Case, Fit, Match};
use super::facts::{Facts, Question};
use super::index::Filter;
use super::spec::{Execution, FilterSpec, OnDisconnect, Placement, Stdin};
use super::{Policy, Subject, denial, mask};

/// Most arguments after the command.
pub const MAX_ARGUMENTS: usize = 4096;

/// One request, as the caller made it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Who asks.
    pub subject: &'a Subject,
    /// The command and its arguments; never empty when it comes from the protocol.
    pub argv: &'a [Vec<u8>],
    /// Variables that the caller wants set.
    pub environment: &'a [(Vec<u8>, Vec<u8>)],
    /// Whether the caller passed a working directory.
    pub has_cwd: bool,
    /// Whether the caller passed standard input.
    pub has_stdin: bool,
    /// Only this filter may allow it.
    pub filter: Option<&'a str>,
    /// Only this profile is consulted.
    pub profile: Option<&'a str>,
}

/// The answer.
#[derive(Debug)]
pub enum Outcome {
    /// Allowed; nothing else can be launched.
    Allow(Box<Permit>),
    /// Refused.
    Deny(Denial),
    /// Ask again when these are answered.
    Ask(Vec<Question>),
}

/// Leave to run one command. Only [`decide`] makes it.
#[derive(Clone, Debug)]
pub struct Permit {
    // Private on purpose: nothing else makes one.
    filter: Arc<FilterSpec>,
    inner: Option<Arc<FilterSpec>>,
    action: Action,
    /// Arguments after argv\[0\]; argv\[0\] is the executable's path, which is chosen among the candidates at launch.
    args: Vec<Vec<u8>>,
    environment: Vec<(Vec<u8>, Vec<u8>)>,
    execution: Execution,
    masked_argv: Vec<Vec<u8>>,
    source: String,
}

/// What a permit allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run the first of these that exists (absolute paths); with an inner command, `inner` are its candidates and
    /// `inner_at` is the index in [`Permit::args`] that is replaced by the one that exists.
    Execute {
        /// The outer (or only) executable.
        candidates: Vec<PathBuf>,
        /// The inner one.
        inner: Option<(usize, Vec<PathBuf>)>,
    },
    /// Send this signal to this process, by pidfd; nothing is executed.
    Signal {
        /// The process, as verified by the answer to [`Question::PidOf`].
        pid: u32,
        /// The question that was answered: its pidfd is the one to signal.
        question: Question,
        /// Signal number of signal(7).
        signal: i32,
    },
}

impl Permit {
    /// The filter that allows it.
    #[must_use]
    pub fn filter(&self) -> &Arc<FilterSpec> {
        &self.filter
    }
    /// `file:line` of the filter: `ROOTWRAP_FILTER_SOURCE`.
    #[must_use]
    pub fn filter_source(&self) -> &str {
        &self.source
    }
    /// The filter of the inner command, where there is one.
    #[must_use]
    pub fn inner(&self) -> Option<&Arc<FilterSpec>> {
        self.inner.as_ref()
    }
    /// What to do.
    #[must_use]
    pub fn action(&self) -> &Action {
        &self.action
    }
    /// The arguments after argv\[0\].
    #[must_use]
    pub fn args(&self) -> &[Vec<u8>] {
        &self.args
    }
    /// The caller's variables that the filter lets through (each matched `env_allow`).
    #[must_use]
    pub fn environment(&self) -> &[(Vec<u8>, Vec<u8>)] {
        &self.environment
    }
    /// How it runs: the outer filter's, with both filters' capabilities.
    #[must_use]
    pub fn execution(&self) -> &Execution {
        &self.execution
    }
    /// The whole argv as asked for, with secrets as `***`: for the journal.
    #[must_use]
    pub fn masked_argv(&self) -> &[Vec<u8>] {
        &self.masked_argv
    }
}

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// For machines.
    pub reason: Reason,
    /// For the caller: no secrets of the caller's filters, nothing about other callers' filters.
    pub message: String,
    /// The same for the journal: no secrets of anybody's filters.
    pub detail: String,
    /// The whole argv as asked for, with secrets as `***`: for the journal.
    pub masked_argv: Vec<Vec<u8>>,
}

/// Reason codes, as in `ROOTWRAP_REASON` and in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No filter of this caller is for this command.
    NoFilter,
    /// Filters are for this command, none for these arguments.
    ArgumentsMismatch,
    /// The arguments fit, a variable does not.
    EnvironmentMismatch,
    /// The arguments fit, the working directory does not.
    CwdMismatch,
    /// The arguments fit, but standard input was given and the filter takes none.
    StdinMismatch,
    /// argv is empty, holds a NUL byte, or has more than 4,096 arguments.
    BadArguments,
    /// The named filter or profile is not there for this caller.
    NoSuchFilter,
}

impl Reason {
    /// `no-filter` and so on.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoFilter => "no-filter",
            Self::ArgumentsMismatch => "arguments-mismatch",
            Self::EnvironmentMismatch => "environment-mismatch",
            Self::CwdMismatch => "cwd-mismatch",
            Self::StdinMismatch => "stdin-mismatch",
            Self::BadArguments => "bad-arguments",
            Self::NoSuchFilter => "no-such-filter",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Decides one request. No I/O; linear in the filters of this command, not in all filters.
///
/// The first filter of the command, in order, that matches all of it allows it.
#[must_use]
pub fn decide(policy: &Policy, request: &Request<'_>, facts: &Facts) -> Outcome {
    let Some(call) = Call::new(request) else {
        return Outcome::Deny(denial::bad_arguments(policy, request));
    };
    if request.profile.is_some() {
        return Outcome::Deny(denial::no_such_filter(policy, request, &call));
    }
    let case = Case::new(policy, request, &call, facts);
    for (_, filter) in policy.likely_or_all(call.command, call.args, false) {
        if !is_usable(filter, request) {
            continue;
        }
        if let Fit::Match(found) = case.evaluate(filter, None) {
            if !found.verdict.allows() {
                continue;
            }
            if !found.open.is_empty() {
                return Outcome::Ask(found.open);
            }
            return Outcome::Allow(Box::new(Permit::new(&case, request, filter, &found)));
        }
    }
    Outcome::Deny(denial::explain(&case, request))
}

/// Whether this caller may use the filter on its own, in this request.
pub(super) fn is_usable(filter: &Filter, request: &Request<'_>) -> bool {
    !filter.spec.inner_only && request.filter.is_none_or(|name| name == filter.spec.name) && filter.admits(request.subject)
}

impl Permit {
    fn new(case: &Case<'_>, request: &Request<'_>, filter: &Filter, found: &Match) -> Self {
        let (policy, call) = (case.policy, case.call);
        let mut args = call.args.to_vec();
        let mut environment = call.environment.clone();
        let mut inner = None;
        let mut inner_action = None;
        if let Some(part) = &found.inner {
            let (moved, _) = leading_assignments(call.args.get(part.at..).unwrap_or_default());
            environment.extend(moved);
            args.drain(part.at..part.at + part.words);
            inner = policy.filter(part.filter).map(|filter| Arc::clone(&filter.spec));
            inner_action = inner.as_ref().map(|inner| (part.at, inner.command.candidates.clone()));
        }
        let action = match &found.signal {
            Some((signal, pid, question)) => Action::Signal {
                pid: *pid,
                question: question.clone(),
                signal: *signal,
            },
            None => Action::Execute {
                candidates: filter.spec.command.candidates.clone(),
                inner: inner_action,
            },
        };
        Self {
            execution: execution(&filter.spec, inner.as_deref()),
            filter: Arc::clone(&filter.spec),
            inner,
            action,
            args,
            environment: environment
                .into_iter()
                .map(|(name, value)| (name.to_vec(), value.to_vec()))
                .collect(),
            masked_argv: mask::allowed(case, request, found),
            source: policy.source(&filter.spec),
        }
    }
}

/// How a command runs: as the outer filter says, with both filters' capabilities, variables that are always set (the outer's win),
/// the smaller timeout, without input and with no_new_privs where either says so, and detached where either says so and the command
/// lives in the caller's cgroup.
fn execution(outer: &FilterSpec, inner: Option<&FilterSpec>) -> Execution {
    let mut execution = outer.execution.clone();
    if let Some(inner) = inner.map(|inner| &inner.execution) {
        execution.capabilities = execution.capabilities.union(inner.capabilities);
        execution.timeout = [execution.timeout, inner.timeout].into_iter().flatten().min();
        for (name, value) in &inner.env_set {
            if !execution.env_set.iter().any(|(set, _)| set == name) {
                execution.env_set.push((name.clone(), value.clone()));
            }
        }
        execution.no_new_privs |= inner.no_new_privs;
        if inner.stdin == Stdin::Null {
            execution.stdin = Stdin::Null;
        }
        if inner.on_disconnect == OnDisconnect::Detach {
            execution.on_disconnect = OnDisconnect::Detach;
        }
    }
    if execution.placement != Placement::Caller {
        execution.on_disconnect = OnDisconnect::Kill;
    }
    execution
}
