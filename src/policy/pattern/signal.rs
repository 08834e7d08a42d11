//! Filters that send one signal to one process: `args` ends in `pid_of`, and what is before it names the signal.
//!
//! kill(1) is never executed: the signal is sent by pidfd to the process that was verified. Callers may spell the signal as they
//! like: `-9`, `-KILL`, `-SIGKILL`, `-s KILL`, `-s 9` and `--signal KILL` are one signal.

use std::collections::BTreeSet;

use super::PidOf;
use super::compile::{Compiler, Reported};
use crate::policy::spec::{Element, ElementKind, FilterSpec};
use crate::policy::text::either;

pub(super) const MISPLACED: &str = "`pid_of` must be the last element of a filter for `kill`, after one signal";
pub(super) const HINT: &str = "for example: args = [{ one_of = [\"-HUP\", \"-TERM\"] }, { pid_of = [\"/usr/sbin/dnsmasq\"] }]";

/// Spellings of one filter that are read, at most.
const MAX_SPELLINGS: usize = 256;
/// Highest number of signal(7).
const LAST: i32 = 64;
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD",
    "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// A compiled filter of this kind.
#[derive(Debug)]
pub(in crate::policy) struct SignalFilter {
    signals: BTreeSet<i32>,
    process: PidOf,
}

impl SignalFilter {
    /// The signal and the process that these arguments name, where the filter allows the signal. Else what was expected at which
    /// argument.
    pub(in crate::policy) fn read(&self, args: &[Vec<u8>]) -> Result<(i32, u32, &PidOf), (usize, String)> {
        let Some((pid, words)) = args.split_last() else {
            return Err((0, self.expected()));
        };
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let signal = number(&words).filter(|signal| self.signals.contains(signal));
        let signal = signal.ok_or_else(|| (0, self.expected()))?;
        match PidOf::pid(pid) {
            Some(pid) => Ok((signal, pid, &self.process)),
            None => Err((words.len(), self.process.expected())),
        }
    }

    /// What was expected instead of this process.
    pub(in crate::policy) fn expected_process(&self) -> String {
        self.process.expected()
    }

    fn expected(&self) -> String {
        let signals: Vec<String> = self.signals.iter().map(|signal| format!("`-{}`", name(*signal))).collect();
        format!("the signal {}", either(&signals))
    }
}

/// Whether a filter is meant to send signals.
pub(super) fn is_wanted(args: &[Element]) -> bool {
    matches!(
        args.last(),
        Some(Element {
            kind: ElementKind::PidOf { .. },
            ..
        })
    )
}

/// Compiles such a filter.
pub(super) fn compile(compiler: &mut Compiler, filter: &FilterSpec) -> Result<Box<SignalFilter>, Reported> {
    let Some((
        Element {
            kind: ElementKind::PidOf { executables, same_unit },
            span,
            ..
        },
        before,
    )) = filter.args.split_last()
    else {
        return Err(Reported);
    };
    let is_kill = |path: &std::path::PathBuf| path.file_name().is_some_and(|name| name == "kill");
    if executables.is_empty() {
        return compiler.fail(*span, "`pid_of` names no executable", HINT);
    }
    if !filter.command.candidates.iter().all(is_kill) || filter.command.candidates.is_empty() {
        return compiler.fail(*span, MISPLACED, HINT);
    }
    let Some(spellings) = spellings(before) else {
        return compiler.fail(*span, "the signal before `pid_of` must be plain text or `one_of` plain texts", HINT);
    };
    let mut signals = BTreeSet::new();
    for words in &spellings {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        match number(&words) {
            Some(signal) => signals.insert(signal),
            None => return compiler.fail(*span, "exactly one signal must stand before `pid_of`", HINT),
        };
    }
    Ok(Box::new(SignalFilter {
        signals,
        process: PidOf {
            executables: executables.as_slice().into(),
            same_unit: *same_unit,
        },
    }))
}

/// All lists of words that these elements allow; `None` where they are not plain text.
fn spellings(elements: &[Element]) -> Option<Vec<Vec<Vec<u8>>>> {
    elements.iter().try_fold(vec![Vec::new()], |heads, element| {
        let tails = match &element.kind {
            ElementKind::Literal(text) => vec![vec![text.clone()]],
            ElementKind::Sequence(elements) => spellings(elements)?,
            ElementKind::OneOf(elements) => {
                let all: Option<Vec<_>> = elements.iter().map(|element| spellings(std::slice::from_ref(element))).collect();
                all?.concat()
            }
            _ => return None,
        };
        let lists: Vec<_> = heads
            .iter()
            .flat_map(|head: &Vec<Vec<u8>>| tails.iter().map(move |tail| [head.clone(), tail.clone()].concat()))
            .take(MAX_SPELLINGS + 1)
            .collect();
        (lists.len() <= MAX_SPELLINGS).then_some(lists)
    })
}

/// The signal that these words of a kill(1) command line name.
fn number(words: &[&[u8]]) -> Option<i32> {
    let signal = match words {
        [b"-s" | b"--signal" | b"-n", signal] => signal,
        [word] => word.strip_prefix(b"--signal=").or_else(|| word.strip_prefix(b"-"))?,
        _ => return None,
    };
    let signal = std::str::from_utf8(signal).ok()?;
    if let Some(number) = super::int::parse(signal.as_bytes()) {
        return i32::try_from(number).ok().filter(|number| (0..=LAST).contains(number));
    }
    let signal = signal.strip_prefix("SIG").unwrap_or(signal);
    let at = NAMES.iter().position(|name| *name == signal)?;
    i32::try_from(at + 1).ok()
}

/// The usual name of a signal, or its number.
pub(super) fn name(signal: i32) -> String {
    let at = usize::try_from(signal).unwrap_or(0).wrapping_sub(1);
    NAMES.get(at).map_or_else(|| signal.to_string(), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_signal_is_one_signal() {
        for words in [
            &["-9"][..],
            &["-KILL"],
            &["-SIGKILL"],
            &["-s", "KILL"],
            &["-s", "SIGKILL"],
            &["-s", "9"],
            &["--signal", "KILL"],
            &["--signal=KILL"],
            &["-n", "9"],
        ] {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(number(&words), Some(9), "{words:?}");
        }
    }

    #[test]
    fn what_names_no_signal_is_nothing() {
        for words in [
            &[][..],
            &["KILL"],
            &["9"],
            &["-"],
            &["-09"],
            &["--9"],
            &["-65"],
            &["-kill"],
            &["-NOPE"],
            &["-s"],
            &["-9", "-9"],
            &["-s", "-9"],
            &["-SIG"],
            &["-SIGSIGKILL"],
        ] {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(number(&words), None, "{words:?}");
        }
        assert_eq!((name(1), name(31), name(40)), ("HUP".to_owned(), "SYS".to_owned(), "40".to_owned()));
    }
}
