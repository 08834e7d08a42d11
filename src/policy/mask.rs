//! The argv of a request for the journal, secrets as `***`.

use super::Request;
use super::call::{Call, leading_assignments};
use super::environment::assignment;
use super::evaluate::{Case, Match};
use super::index::Filter;
use super::pattern::{Arena, By, Covered, Tracker, hide, mask_options, mask_positions};

/// Of an allowed request: what the filter marks, what stands after an option that any filter of the command marks, and what
/// another filter of the command would have taken for a secret.
pub(super) fn allowed(case: &Case<'_>, request: &Request<'_>, found: &Match) -> Vec<Vec<u8>> {
    let mut masked = filters(case, request, false);
    let start = case.call.offset + 1;
    let arena = case.policy.arena();
    exact(arena, &found.covered, start, request.argv, &mut masked);
    if let Some(inner) = &found.inner {
        exact(arena, &inner.covered, start + inner.at + inner.words + 1, request.argv, &mut masked);
    }
    masked
}

/// Of a refused request: also every position where a filter of the command may have a secret.
pub(super) fn denied(case: &Case<'_>, request: &Request<'_>) -> Vec<Vec<u8>> {
    filters(case, request, true)
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

/// What the filters of the command, and of commands behind it, mark.
fn filters(case: &Case<'_>, request: &Request<'_>, refused: bool) -> Vec<Vec<u8>> {
    let Case { policy, call, .. } = *case;
    let mut masked = request.argv.to_vec();
    let Some(command) = policy.command(call.command) else {
        return masked;
    };
    let start = call.offset + 1;
    if command.secrets || command.takes_command {
        for (_, filter) in policy.candidates(call.command) {
            if filter.compiled.secrets.is_none() && !filter.compiled.takes_command {
                continue;
            }
            one(filter, call, 0, request.argv, &mut masked, refused);
            let mut tracker = Tracker::default();
            case.evaluate(filter, Some(&mut tracker));
            tracker.secrets.iter().for_each(|at| hide(start + at, &mut masked));
        }
    }
    if command.takes_command {
        // Where the inner command starts is not known in a refused request: wherever a command with secrets is named.
        for (at, argument) in call.args.iter().enumerate() {
            if policy.command(argument).is_some_and(|command| command.secrets) {
                for (_, filter) in policy.candidates(argument) {
                    one(filter, call, at + 1, request.argv, &mut masked, refused);
                }
            }
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
    for (word, masked) in argv.iter().zip(masked.iter_mut()) {
        if let Some((name, _)) = assignment(word).filter(|(name, _)| secrets.environment.iter().any(|secret| secret.as_bytes() == *name)) {
            *masked = [name, b"=***"].concat();
        }
    }
}

/// Of a request that is no call at all (no command, NUL bytes, too many arguments): what its command's filters mark.
pub(super) fn hopeless(policy: &super::Policy, request: &Request<'_>) -> Vec<Vec<u8>> {
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
    let mut masked = argv.to_vec();
    for (_, filter) in policy.candidates(command) {
        one(filter, &call, 0, argv, &mut masked, true);
    }
    masked
}
