//! `/etc/rootwrap/rootwrap.toml` and `rootwrap.toml.d/*.toml`: the service's own settings, all optional.

use std::path::PathBuf;
use std::time::Duration;

use super::Diagnostic;

/// Whether a command may run without its record in the journal's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// No.
    Required,
    /// Yes.
    BestEffort,
}

/// The settings, defaults filled in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `filter_dirs`.
    pub filter_dirs: Vec<PathBuf>,
    /// `exec_dirs`: where bare names are looked up; absolute.
    pub exec_dirs: Vec<PathBuf>,
    /// `audit`.
    pub audit: Audit,
    /// `audit_timeout`: how long a command waits for its record to be queued.
    pub audit_timeout: Duration,
    /// `message_size`: bytes of one protocol message, at most.
    pub message_size: usize,
    /// `capture_size`: bytes of captured output per stream, at most.
    pub capture_size: usize,
    /// `request_timeout`: from a message's first byte to its last, and for a reply to be taken.
    pub request_timeout: Duration,
    /// `max_connections`: all callers.
    pub max_connections: u32,
    /// `max_connections_per_uid`.
    pub max_connections_per_uid: u32,
    /// `max_commands`: all callers.
    pub max_commands: u32,
    /// `max_commands_per_uid`.
    pub max_commands_per_uid: u32,
    /// `drain_timeout`.
    pub drain_timeout: Duration,
    /// `idle_timeout`; zero: never.
    pub idle_timeout: Duration,
    /// `parked_children`.
    pub parked_children: u32,
    /// `denials_per_second`: single records of denials per uid; more are aggregated.
    pub denials_per_second: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            filter_dirs: ["/usr/lib", "/run", "/etc"]
                .iter()
                .map(|d| PathBuf::from(format!("{d}/rootwrap/filters.d")))
                .collect(),
            exec_dirs: ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
                .iter()
                .map(PathBuf::from)
                .collect(),
            audit: Audit::Required,
            audit_timeout: Duration::from_millis(1500),
            message_size: 256 * 1024,
            capture_size: 1024 * 1024,
            request_timeout: Duration::from_secs(5),
            max_connections: 4096,
            max_connections_per_uid: 512,
            max_commands: 2048,
            max_commands_per_uid: 512,
            drain_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(600),
            parked_children: 4,
            denials_per_second: 50,
        }
    }
}

impl Settings {
    /// Reads the service's settings: `main` (absent is fine) and the `*.toml` of `main` + `.d`.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn load(_main: &std::path::Path, _check_owners: bool) -> Result<Self, Vec<Diagnostic>> {
        todo!()
    }
}
