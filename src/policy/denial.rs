//! Why a request is refused, in words for its caller.
//!
//! Speaks of this caller's filters only: a command that other callers may run looks like one that nobody may run.

use super::call::Call;
use super::decision::is_usable;
use super::evaluate::{Case, Fit};
use super::index::Filter;
use super::mask::{self, Whose};
use super::pattern::Tracker;
use super::text::{either, printable, quoted};
use super::{Denial, Policy, Reason, Request};

/// Filters of a command that a message looks at.
const LOOKED_AT: usize = 256;
/// Expectations that a message names.
const NAMED: usize = 4;

/// No command, a NUL byte, or too many arguments.
pub(super) fn bad_arguments(policy: &Policy, request: &Request<'_>) -> Denial {
    let message = format!(
        "a command needs a name and at most {} arguments, none of them with a NUL byte",
        super::decision::MAX_ARGUMENTS
    );
    Denial {
        reason: Reason::BadArguments,
        detail: message.clone(),
        message,
        masked_argv: mask::hopeless(policy, request),
    }
}

/// The request wants one filter or profile, which is not there for this caller.
pub(super) fn no_such_filter(policy: &Policy, request: &Request<'_>, call: &Call<'_>) -> Denial {
    let facts = super::facts::Facts::lexical();
    let case = Case::new(policy, request, call, &facts);
    let message = match (request.profile, request.filter) {
        (Some(profile), _) => format!("you have no profile {}", quoted(profile.as_bytes())),
        (None, Some(filter)) => format!("you have no filter {}; see: rootwrap --list", quoted(filter.as_bytes())),
        (None, None) => "you have no such filter; see: rootwrap --list".to_owned(),
    };
    Denial {
        reason: Reason::NoSuchFilter,
        detail: message.clone(),
        message,
        masked_argv: mask::denied(&case, request, Whose::Everybodys),
    }
}

/// How far one filter came.
struct Attempt<'a> {
    filter: &'a Filter,
    fit: Fit,
    tracker: Tracker,
}

/// No filter matched: finds the reason to give.
pub(super) fn explain(case: &Case<'_>, request: &Request<'_>) -> Denial {
    let (policy, call) = (case.policy, case.call);
    if let Some(name) = request.filter {
        let there = policy
            .all()
            .iter()
            .any(|filter| filter.spec.name == name && is_usable(filter, request));
        if !there {
            return no_such_filter(policy, request, call);
        }
    }
    let command = quoted(call.command);
    let attempts: Vec<Attempt<'_>> = policy
        .candidates(call.command)
        .filter(|(_, filter)| is_usable(filter, request))
        .take(LOOKED_AT)
        .map(|(_, filter)| {
            let mut tracker = Tracker::default();
            let fit = case.evaluate(filter, Some(&mut tracker));
            Attempt { filter, fit, tracker }
        })
        .collect();
    let masked_argv = mask::denied(case, request, Whose::Everybodys);
    let own = own_message(&attempts).map_or_else(String::new, |own| format!("\n{own}"));
    let options = explain_options(request);
    let words = |masked: &[Vec<u8>]| {
        let (reason, what) = reason(case, &attempts, &command, masked);
        let see = command_line(masked);
        (reason, format!("{what}; see: rootwrapctl explain{options} -- {see}{own}"))
    };
    let (reason, detail) = words(&masked_argv);
    Denial {
        reason,
        message: words(&mask::denied(case, request, Whose::Callers)).1,
        detail,
        masked_argv,
    }
}

fn reason(case: &Case<'_>, attempts: &[Attempt<'_>], command: &str, masked: &[Vec<u8>]) -> (Reason, String) {
    if attempts.is_empty() {
        return (Reason::NoFilter, format!("no filter for {command} allows you"));
    }
    let surroundings = attempts.iter().find_map(|attempt| match &attempt.fit {
        Fit::Environment(refused) => Some((
            Reason::EnvironmentMismatch,
            format!("the environment for {command} is not allowed: expected {}", refused.expected),
        )),
        Fit::Cwd(expected) => Some((
            Reason::CwdMismatch,
            format!("the working directory for {command} is not allowed: expected {expected} (rootwrap --chdir DIR passes one)"),
        )),
        Fit::Stdin => Some((
            Reason::StdinMismatch,
            format!("{command} takes no standard input here: pass none (/dev/null)"),
        )),
        Fit::Match(_) | Fit::Arguments => None,
    });
    surroundings.unwrap_or_else(|| (Reason::ArgumentsMismatch, arguments(case, attempts, command, masked)))
}

/// What the filters that came furthest expected.
fn arguments(case: &Case<'_>, attempts: &[Attempt<'_>], command: &str, masked: &[Vec<u8>]) -> String {
    let furthest = attempts.iter().map(|attempt| attempt.tracker.furthest).max().unwrap_or(0);
    let mut expected: Vec<String> = Vec::new();
    for attempt in attempts.iter().filter(|attempt| attempt.tracker.furthest == furthest) {
        for words in &attempt.tracker.expected {
            if !expected.contains(words) {
                expected.push(words.clone());
            }
        }
    }
    let at = case.call.offset + 1 + furthest;
    let place = match masked.get(at) {
        Some(argument) => format!("argument {at}, {}", quoted(argument)),
        None => "the end".to_owned(),
    };
    let words = if expected.is_empty() || expected.len() > NAMED {
        String::new()
    } else {
        format!(": expected {}", either(&expected))
    };
    format!("no filter for {command} allows you these arguments; they fit up to {place}{words}")
}

/// `message` of the filter that came furthest.
fn own_message<'a>(attempts: &'a [Attempt<'_>]) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for attempt in attempts {
        let Some(message) = &attempt.filter.spec.message else {
            continue;
        };
        let reached = match attempt.fit {
            Fit::Arguments => attempt.tracker.furthest,
            _ => usize::MAX,
        };
        if best.is_none_or(|(best, _)| reached > best) {
            best = Some((reached, message));
        }
    }
    best.map(|(_, message)| message)
}

/// What `rootwrapctl explain` must be told beside the command to give the same answer. Values of variables may be secrets.
fn explain_options(request: &Request<'_>) -> String {
    let mut options = String::new();
    if let Some(filter) = request.filter {
        options.push_str(" --filter ");
        options.push_str(&command_line(&[filter.as_bytes().to_vec()]));
    }
    if request.has_cwd {
        options.push_str(" --chdir .");
    }
    for (name, _) in request.environment.iter().take(NAMED) {
        options.push_str(" --env ");
        options.push_str(&command_line(&[[name, &b"=***"[..]].concat()]));
    }
    options
}

/// For a shell; shortened where it is long.
fn command_line(argv: &[Vec<u8>]) -> String {
    let mut line = String::new();
    for argument in argv {
        let plain = !argument.is_empty()
            && argument
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-./=:,@%+".contains(byte));
        let printable = printable(argument);
        let word = if plain {
            printable
        } else {
            format!("'{}'", printable.replace('\'', "'\\''"))
        };
        if line.len() + word.len() > 200 {
            line.push_str(" ...");
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    line
}
