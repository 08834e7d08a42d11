//! The argv of a request for the journal, secrets as `***`.

use super::call::{Call, is_env, leading_assignments};
use super::environment::assignment;
use super::evaluate::{Case, Match};
use super::index::Filter;
use super::pattern::{Arena, By, Covered, Tracker, hide, mask_options, mask_positions};
use super::{Policy, Request};

/// Whose filters say what is a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// All: for records.
    Everybodys,
    /// The caller's own: for the caller, who must not learn from a mask what filters others have.
    Callers,
}

impl Whose {
    fn counts(self, filter: &Filter, request: &Request<'_>) -> bool {
        self == Self::Everybodys || filter.admits(request.subject)
    }
}

/// Of an allowed request: what the filter marks, what stands after an option that any filter of the command marks, and what
/// another filter of the command would have taken for a secret.
pub(super) fn allowed(case: &Case<'_>, request: &Request<'_>, found: &Match) -> Vec<Vec<u8>> {
    let mut masked = filters(case, request, Whose::Everybodys, false);
    let start = case.call.offset + 1;
    let arena = case.policy.arena();
    exact(arena, &found.covered, start, request.argv, &mut masked);
    if let Some(inner) = &found.inner {
        exact(arena, &inner.covered, start + inner.at + inner.words + 1, request.argv, &mut masked);
    }
    masked
}

/// Of a refused request: also every position where a filter of the command may have a secret.
pub(super) fn denied(case: &Case<'_>, request: &Request<'_>, whose: Whose) -> Vec<Vec<u8>> {
    filters(case, request, whose, true)
}

fn exact(arena: &Arena, covered: &[Covered], start: usize, argv: &[Vec<u8>], masked: &mut [Vec<u8>]) {
    let is_secret = |part: u32| arena.part(part).is_some_and(|part| part.secret);
    for cover in covered {
        let at = start + cover.at;
        match cover.by {
            By::Part(part) if is_secret(part) => (at..at + cover.count).for_each(|at| hide(at, masked)),
            By::Joined { part, skip } if is_secret(part) => {
                if let (Some(masked), Some(key)) = (masked.get_mut(at), argv.get(at).and_then(|argument| argument.get(..skip))) {
                    *masked = [key, b"***"].concat();
                }
            }
            _ => {}
        }
    }
}

/// What the filters of the command, and of commands behind it, mark, and where they were tried.
fn filters(case: &Case<'_>, request: &Request<'_>, whose: Whose, refused: bool) -> Vec<Vec<u8>> {
    let Case { policy, call, .. } = *case;
    let mut masked = marked(policy, request, call, whose, refused);
    let start = call.offset + 1;
    if policy
        .command(call.command)
        .is_some_and(|command| command.secrets || command.takes_command)
    {
        let tried = policy
            .likely_or_all(call.command, call.args, refused)
            .filter(|(_, filter)| whose.counts(filter, request));
        for (_, filter) in tried.filter(|(_, filter)| filter.compiled.secrets.is_some() || filter.compiled.takes_command) {
            let mut tracker = Tracker::default();
            case.evaluate(filter, Some(&mut tracker));
            tracker.secrets.iter().for_each(|at| hide(start + at, &mut masked));
        }
    }
    masked
}

/// What is marked by the spelling of a request alone.
fn marked(policy: &Policy, request: &Request<'_>, call: &Call<'_>, whose: Whose, refused: bool) -> Vec<Vec<u8>> {
    let argv = request.argv;
    let mut masked = argv.to_vec();
    let mut mark = |name: &[u8], from: usize| {
        for (_, filter) in policy.candidates(name).filter(|(_, filter)| whose.counts(filter, request)) {
            one(filter, call, from, argv, &mut masked, refused);
        }
    };
    mark(call.command, 0);
    if policy.command(call.command).is_some_and(|command| command.takes_command) {
        // Where the inner command starts is not known in a refused request: wherever a command with secrets is named.
        for (at, argument) in call.args.iter().enumerate() {
            if policy.command(argument).is_some_and(|command| command.secrets) {
                mark(argument, at + 1);
            }
        }
    }
    if argv.iter().any(|word| is_env(word)) {
        // Which command an `env` that cannot be taken apart is for is not known.
        for filter in policy.all().iter().filter(|filter| whose.counts(filter, request)) {
            variables(filter, argv, &mut masked);
        }
    }
    masked
}

/// What one filter marks in the arguments from an index on, and in all words that set a variable.
fn one(filter: &Filter, call: &Call<'_>, from: usize, argv: &[Vec<u8>], masked: &mut [Vec<u8>], refused: bool) {
    let Some(secrets) = &filter.compiled.secrets else {
        return;
    };
    let start = call.offset + 1 + from;
    if let (Some(args), Some(masked)) = (argv.get(start..), masked.get_mut(start..)) {
        mask_options(secrets, args, masked);
        if refused {
            mask_positions(secrets, args, masked);
        }
    }
    variables(filter, argv, masked);
}

/// What one filter marks in words that set a variable.
fn variables(filter: &Filter, argv: &[Vec<u8>], masked: &mut [Vec<u8>]) {
    let Some(secrets) = filter.compiled.secrets.as_ref().filter(|secrets| !secrets.environment.is_empty()) else {
        return;
    };
    for (word, masked) in argv.iter().zip(masked.iter_mut()) {
        if let Some((name, _)) = assignment(word).filter(|(name, _)| secrets.environment.iter().any(|secret| secret.as_bytes() == *name)) {
            *masked = [name, b"=***"].concat();
        }
    }
}

/// Of a request that is no call at all (no command, NUL bytes, too many arguments): what its command's filters mark.
pub(super) fn hopeless(policy: &Policy, request: &Request<'_>) -> Vec<Vec<u8>> {
    let argv = request.argv;
    let (_, offset) = leading_assignments(argv);
    let Some((command, args)) = argv.get(offset..).and_then(<[_]>::split_first) else {
        return argv.to_vec();
    };
    let call = Call {
        command,
        args,
        environment: Vec::new(),
        given: 0,
        offset,
    };
    marked(policy, request, &call, Whose::Everybodys, true)
}
