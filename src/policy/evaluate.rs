//! One filter against one request: the function behind decisions and explanations.

use super::call::{Call, leading_assignments};
use super::environment::{self, Refused};
use super::facts::{Facts, Question};
use super::index::Filter;
use super::pattern::{Budget, Covered, Machine, Tracker};
use super::spec::{Cwd, Stdin};
use super::verdict::Verdict;
use super::{Policy, Request, Subject};

/// What came out.
pub(super) enum Fit {
    /// Everything matches, if the questions are answered with yes.
    Match(Box<Match>),
    /// The arguments do not; the tracker knows where.
    Arguments,
    /// The arguments do, a variable does not.
    Environment(Refused),
    /// The working directory does not; what was expected.
    Cwd(&'static str),
    /// Standard input does not.
    Stdin,
}

/// How a filter matches.
pub(super) struct Match {
    pub(super) verdict: Verdict,
    pub(super) covered: Vec<Covered>,
    pub(super) inner: Option<InnerMatch>,
    /// Signal, process, and the question about the process.
    pub(super) signal: Option<(i32, u32, Question)>,
    /// Without an answer so far.
    pub(super) open: Vec<Question>,
}

/// How the filter of an inner command matches.
pub(super) struct InnerMatch {
    /// Index into the policy's filters.
    pub(super) filter: u32,
    /// Index of the first word that belongs to it, counted in the outer arguments; `env` counts.
    pub(super) at: usize,
    /// How many words of a leading `env NAME=VALUE...` there are.
    pub(super) words: usize,
    pub(super) verdict: Verdict,
    pub(super) covered: Vec<Covered>,
    open: Vec<Question>,
}

/// What is judged.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) policy: &'a Policy,
    pub(super) call: &'a Call<'a>,
    pub(super) subject: &'a Subject,
    pub(super) facts: &'a Facts,
    pub(super) has_cwd: bool,
    pub(super) has_stdin: bool,
}

impl<'a> Case<'a> {
    pub(super) fn new(policy: &'a Policy, request: &Request<'a>, call: &'a Call<'a>, facts: &'a Facts) -> Self {
        Self {
            policy,
            call,
            subject: request.subject,
            facts,
            has_cwd: request.has_cwd,
            has_stdin: request.has_stdin,
        }
    }

    /// Judges the request by this filter.
    pub(super) fn evaluate(self, filter: &Filter, tracker: Option<&mut Tracker>) -> Fit {
        let result = if filter.compiled.signal.is_some() {
            self.signal(filter, tracker)
        } else {
            self.arguments(filter, tracker)
        };
        match result {
            Ok(found) => self.surroundings(filter, found),
            Err(fit) => fit,
        }
    }

    fn arguments(self, filter: &Filter, mut tracker: Option<&mut Tracker>) -> Result<Match, Fit> {
        let Self { policy, call, facts, .. } = self;
        let mut inner = None;
        let mut refused = None;
        let mut behind = tracker.is_some().then(Tracker::default);
        let budget = Budget::new();
        let mut machine = Machine::new(policy.arena(), call.args, facts, &budget, tracker.as_deref_mut());
        let covered = machine.divide(filter.compiled.program, &mut |element, at| {
            inner = self.inner(filter, (element, at), &budget, behind.as_mut(), &mut refused);
            inner.is_some()
        });
        let found = covered.map(|covered| (machine.verify(&covered), covered));
        if let (Some(tracker), Some(behind)) = (tracker, behind) {
            for expected in behind.expected {
                tracker.fail(behind.furthest, || expected);
            }
            tracker.secrets.extend(behind.secrets);
        }
        let Some(((verdict, mut open), covered)) = found else {
            return Err(refused.map_or(Fit::Arguments, Fit::Environment));
        };
        if inner.is_none() {
            open.extend(environment::judge(&call.environment, &[filter], policy.arena(), facts).map_err(Fit::Environment)?);
        }
        if let Some(inner) = &mut inner {
            open.append(&mut inner.open);
        }
        Ok(Match {
            verdict,
            covered,
            inner,
            signal: None,
            open,
        })
    }

    /// The first filter that allows the inner command, which starts at this argument.
    fn inner(
        self,
        outer: &Filter,
        (element, at): (u32, usize),
        budget: &Budget,
        mut tracker: Option<&mut Tracker>,
        refused: &mut Option<Refused>,
    ) -> Option<InnerMatch> {
        let element = self.policy.arena().inner(element)?;
        let rest = self.call.args.get(at..)?;
        let (moved, words) = leading_assignments(rest);
        let (name, args) = rest.get(words..)?.split_first()?;
        let variables = [self.call.environment.as_slice(), &moved].concat();
        let run_as = &outer.spec.execution.run_as.ids;
        for (index, filter) in self.policy.likely_or_all(name, args, tracker.is_some()) {
            let usable = element.admits(index)
                && filter.admits(self.subject)
                && !filter.compiled.takes_command
                && filter.compiled.signal.is_none()
                && filter.spec.execution.run_as.ids == *run_as;
            if !usable {
                continue;
            }
            let mut notes = tracker.is_some().then(Tracker::default);
            let mut machine = Machine::new(self.policy.arena(), args, self.facts, budget, notes.as_mut());
            let found = machine
                .divide(filter.compiled.program, &mut |_, _| false)
                .map(|covered| (machine.verify(&covered), covered));
            if let (Some(tracker), Some(notes)) = (tracker.as_deref_mut(), notes) {
                let start = at + words + 1;
                tracker.secrets.extend(notes.secrets.iter().map(|at| start + at));
                for expected in notes.expected {
                    tracker.fail(start + notes.furthest, || expected);
                }
            }
            let Some(((verdict, mut open), covered)) = found.filter(|((verdict, _), _)| verdict.allows()) else {
                continue;
            };
            match environment::judge(&variables, &[outer, filter], self.policy.arena(), self.facts) {
                Ok(questions) => open.extend(questions),
                Err(problem) => {
                    refused.get_or_insert(problem);
                    continue;
                }
            }
            return Some(InnerMatch {
                filter: index,
                at,
                words,
                verdict,
                covered,
                open,
            });
        }
        None
    }

    fn signal(self, filter: &Filter, tracker: Option<&mut Tracker>) -> Result<Match, Fit> {
        let Some(signal) = &filter.compiled.signal else {
            return Err(Fit::Arguments);
        };
        let fail = |tracker: Option<&mut Tracker>, at, expected: String| {
            if let Some(tracker) = tracker {
                tracker.fail(at, || expected);
            }
            Fit::Arguments
        };
        let (number, pid, process) = match signal.read(self.call.args) {
            Ok(read) => read,
            Err((at, expected)) => return Err(fail(tracker, at, expected)),
        };
        let question = process.question(pid);
        let answer = self.facts.get(&question);
        if answer == Some(false) {
            return Err(fail(tracker, self.call.args.len().saturating_sub(1), signal.expected_process()));
        }
        let mut open = environment::judge(&self.call.environment, &[filter], self.policy.arena(), self.facts).map_err(Fit::Environment)?;
        if answer.is_none() {
            open.push(question.clone());
        }
        Ok(Match {
            verdict: Verdict::of(answer != Some(false)),
            covered: Vec::new(),
            inner: None,
            signal: Some((number, pid, question)),
            open,
        })
    }

    /// Working directory and standard input. With `cwd = "caller"` one must be passed: no other place is taken silently.
    fn surroundings(self, filter: &Filter, mut found: Match) -> Fit {
        let execution = &filter.spec.execution;
        match (&execution.cwd, self.has_cwd) {
            (Cwd::Path(_), true) => return Fit::Cwd("no working directory of the caller"),
            (Cwd::Caller, false) => return Fit::Cwd("a working directory of the caller"),
            _ => {}
        }
        let inner = found.inner.as_ref().and_then(|inner| self.policy.filter(inner.filter));
        let takes_stdin = |filter: &Filter| filter.spec.execution.stdin == Stdin::Caller;
        if self.has_stdin && !(takes_stdin(filter) && inner.is_none_or(takes_stdin)) {
            return Fit::Stdin;
        }
        let inner = found.inner.as_ref().map_or(Verdict::ALLOW, |inner| inner.verdict);
        // Asked once more here, so that no single bit decides who may.
        found.verdict = found.verdict.and(inner).and(Verdict::of(filter.admits(self.subject)));
        Fit::Match(Box::new(found))
    }
}
