//! What comes with a command's standard input: the name of its terminal.

use super::descriptors;
use crate::protocol::run::{Run, RunDescriptors, is_terminal_kind};

/// TERM goes to commands that have a terminal, whatever the filter says; it is taken out of the variables where it looks like the name
/// of one (terminfo(5)): letters, digits, `+`, `-`, `.` and `_`.
pub fn take_term(run: &mut Run, fds: &RunDescriptors) -> Option<Vec<u8>> {
    if !fds.stdin.as_ref().is_some_and(descriptors::is_terminal) {
        return None;
    }
    let environment = &mut run.wanted.environment;
    let at = environment
        .iter()
        .position(|(name, value)| name == b"TERM" && is_terminal_kind(value))?;
    Some(environment.remove(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_no_terminal_then_term_is_a_variable_like_any_other() {
        let mut run = Run::default();
        run.wanted.environment = vec![(b"TERM".to_vec(), b"xterm".to_vec())];
        let fds = RunDescriptors {
            stdin: Some(std::fs::File::open("/dev/null").unwrap().into()),
            ..RunDescriptors::default()
        };
        assert_eq!(take_term(&mut run, &fds), None);
        assert_eq!(run.wanted.environment.len(), 1);
    }
}
