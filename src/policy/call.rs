//! A request made ready for judging: checked for what no command can have, `env NAME=VALUE...` in front taken apart.

use super::Request;
use super::decision::MAX_ARGUMENTS;
use super::environment::{Variable, assignment};

/// The names of env(1) that callers may say.
const ENV: [&[u8]; 2] = [b"env", b"/usr/bin/env"];

/// A request whose argv is one that could be executed.
pub(super) struct Call<'a> {
    /// The command.
    pub(super) command: &'a [u8],
    /// Its arguments.
    pub(super) args: &'a [Vec<u8>],
    /// The variables of the request, then those of `env`.
    pub(super) environment: Vec<Variable<'a>>,
    /// How many of these came with the request.
    pub(super) given: usize,
    /// Index of the command in the request's argv.
    pub(super) offset: usize,
}

impl<'a> Call<'a> {
    /// `None`: no command, a NUL byte, or too many arguments.
    pub(super) fn new(request: &Request<'a>) -> Option<Self> {
        let argv = request.argv;
        let bad = argv.len() > MAX_ARGUMENTS + 1 || argv.iter().any(|argument| argument.contains(&0));
        if bad || argv.first().is_none_or(Vec::is_empty) {
            return None;
        }
        let (moved, offset) = leading_assignments(argv);
        let (command, args) = argv.get(offset..)?.split_first()?;
        let given = request.environment.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
        Some(Self {
            command,
            args,
            environment: given.chain(moved).collect(),
            given: request.environment.len(),
            offset,
        })
    }
}

/// Whether a word names env(1).
pub(super) fn is_env(word: &[u8]) -> bool {
    ENV.contains(&word)
}

/// The variables of a leading `env NAME=VALUE...`, and the index of the command after them.
///
/// Only where at least one variable and then a command follow. Anything else (`env`, `env -i ...`, `env COMMAND`) is the command
/// `env` itself, which needs a filter of its own like any other.
pub(super) fn leading_assignments(argv: &[Vec<u8>]) -> (Vec<Variable<'_>>, usize) {
    let Some((first, words)) = argv.split_first() else {
        return (Vec::new(), 0);
    };
    if !is_env(first) {
        return (Vec::new(), 0);
    }
    let variables: Vec<_> = words.iter().map_while(|word| assignment(word)).collect();
    let command = words.get(variables.len());
    let is_command = command.is_some_and(|word| !word.is_empty() && !word.starts_with(b"-") && !word.contains(&b'='));
    if variables.is_empty() || !is_command {
        return (Vec::new(), 0);
    }
    let offset = variables.len() + 1;
    (variables, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(argv: &[&str]) -> Vec<Vec<u8>> {
        argv.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn assignments_before_a_command_are_moved() {
        let argv = words(&["env", "A=1", "B=", "lvs", "C=3"]);
        let (variables, offset) = leading_assignments(&argv);
        assert_eq!(variables, [(&b"A"[..], &b"1"[..]), (&b"B"[..], &b""[..])]);
        assert_eq!(offset, 3);
    }

    #[test]
    fn everything_else_is_left_alone() {
        for argv in [
            &["lvs", "A=1", "x"][..],
            &["env"],
            &["env", "A=1"],
            &["env", "lvs"],
            &["env", "-i", "A=1", "lvs"],
            &["env", "A=1", "-i", "lvs"],
            &["env", "A=1", "--", "lvs"],
            &["env", "A=1", "=x", "lvs"],
            &["env", "A=1", "B-C=2", "lvs"],
            &["/tmp/env", "A=1", "lvs"],
            &["env", "A=1", ""],
        ] {
            let argv = words(argv);
            assert_eq!(leading_assignments(&argv), (vec![], 0), "{argv:?}");
        }
    }
}
