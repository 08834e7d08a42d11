//! `{ pid_of = ["/usr/sbin/dnsmasq"] }`: the number of a process that runs one of these executables.
//!
//! Only in a filter that sends one signal to one process (see [`super::signal`]): by the time that a number reached another
//! program, it could belong to somebody else. Whether the process runs it is a [`Question::PidOf`].

use std::path::PathBuf;

use crate::policy::facts::Question;
use crate::policy::text::either;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct PidOf {
    pub(super) executables: Box<[PathBuf]>,
    pub(super) same_unit: bool,
}

impl PidOf {
    /// The process number in this text.
    pub(in crate::policy) fn pid(text: &[u8]) -> Option<u32> {
        super::int::parse(text)
            .and_then(|number| i32::try_from(number).ok())
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| *number > 0)
    }

    /// What to find out about this process.
    pub(in crate::policy) fn question(&self, pid: u32) -> Question {
        Question::PidOf {
            pid,
            executables: self.executables.to_vec(),
            same_unit: self.same_unit,
        }
    }

    /// In words.
    pub(super) fn expected(&self) -> String {
        let executables: Vec<String> = self.executables.iter().map(|path| path.display().to_string()).collect();
        let unit = if self.same_unit { " in your unit" } else { "" };
        format!("the pid of a process{unit} that runs {}", either(&executables))
    }
}

#[cfg(test)]
mod tests {
    use super::PidOf;

    #[test]
    fn pids_are_positive_and_plain() {
        assert_eq!(PidOf::pid(b"1234"), Some(1234));
        assert_eq!(PidOf::pid(b"2147483647"), Some(2_147_483_647));
        for no in ["", "0", "-1", "+1", "01", "2147483648", "4294967297", "1 ", "%1"] {
            assert_eq!(PidOf::pid(no.as_bytes()), None, "{no:?}");
        }
    }
}
