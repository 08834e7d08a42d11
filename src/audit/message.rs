//! MESSAGE: each event in one line for people. Every part that a caller chose is made printable.

use super::event::{Caller, Command, Ended, Event, Lost};
use super::text::{command_line, printable};
use crate::policy::counted;

/// How much of a command line MESSAGE shows, in bytes.
const SHOWN: usize = 300;

impl Event {
    /// MESSAGE: what a person reads.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Allowed { caller, command, grant } => {
                format!("{caller} may run {} (filter {})", command.shown(), grant.filter)
            }
            Self::Denied {
                caller,
                command: Some(command),
                detail,
                ..
            } => format!("{caller} may not run {}: {}", command.shown(), printable(detail.as_bytes(), SHOWN)),
            Self::Denied { caller, detail, .. } => format!("{caller} was refused: {}", printable(detail.as_bytes(), SHOWN)),
            Self::Suppressed { kind, suppressed } => {
                format!(
                    "{} more {} records of {} in short succession",
                    suppressed.count,
                    kind.name(),
                    whose(suppressed.key)
                )
            }
            Self::Exited { command, ended, .. } => format!("{} {}", command.shown(), ended.shown()),
            Self::LaunchFailed {
                command, reason, errno, ..
            } => {
                let why = errno.map_or_else(String::new, |e| format!(": {}", std::io::Error::from_raw_os_error(e)));
                format!("{} did not start: {}{why}", command.shown(), printable(reason.as_bytes(), SHOWN))
            }
            Self::Reloaded { filters, warnings, .. } => {
                format!(
                    "New policy in force: {}, {}",
                    counted(filters, "filter"),
                    counted(warnings, "warning")
                )
            }
            Self::ReloadFailed {
                policy, errors, detail, ..
            } => {
                let first = printable(detail.lines().next().unwrap_or_default().as_bytes(), SHOWN);
                let then = match policy {
                    Some(_) => "the one in force stays",
                    None => "every request is refused until a reload succeeds",
                };
                format!("The policy has {}, {then}: {first}", counted(errors, "error"))
            }
            Self::LimitHit { uid, limit, value, count } => {
                // A filter's own limit counts commands.
                let of = if *limit == "filter" {
                    "commands of a filter at once"
                } else {
                    limit
                };
                format!("{} reached the limit of {value} {of}; {count} refused", whose(*uid))
            }
            Self::Started { policy: Some(_), filters } => format!("Ready with {}", counted(filters, "filter")),
            Self::Started { .. } => "Ready, but without a valid policy: every request is refused".to_owned(),
            Self::Stopped { reason } => format!("Stopped: {reason}"),
            Self::BadRequest { caller, detail, .. } => format!("{caller} sent a bad request: {}", printable(detail.as_bytes(), SHOWN)),
            Self::AuditLost(lost) => format!("{} records were lost while the journal took none:{lost}", lost.total()),
        }
    }
}

fn whose(uid: Option<u32>) -> String {
    uid.map_or_else(|| "several users".to_owned(), |uid| format!("uid {uid}"))
}

impl std::fmt::Display for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "uid {}", self.uid)?;
        match (&self.unit, &self.comm) {
            (Some(unit), _) => write!(f, " ({})", printable(unit.as_bytes(), 100)),
            (None, Some(comm)) => write!(f, " ({})", printable(comm, 100)),
            (None, None) => Ok(()),
        }
    }
}

impl Command {
    fn shown(&self) -> String {
        if self.masked_argv.is_empty() {
            return "an empty command".to_owned();
        }
        command_line(&self.masked_argv, SHOWN)
    }
}

impl Ended {
    fn shown(&self) -> String {
        let how = match (self.signal, self.code) {
            (Some(signal), _) => format!("was ended by signal {signal}"),
            (None, Some(code)) => format!("exited with status {code}"),
            (None, None) => "ended".to_owned(),
        };
        let why = self.reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        format!("{how}{why} after {} ms", self.duration.as_millis())
    }
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.by_kind
            .iter()
            .try_for_each(|(kind, count)| write!(f, " {} {count}", kind.name()))
    }
}
