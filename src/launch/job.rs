//! What a child is told: numbers, bytes and descriptors; no names to look up.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::config::trusted::VerifiedExecutable;
use crate::policy::Permit;

/// A command to run. Made from a [`Permit`] only.
#[derive(Debug)]
pub struct Job {
    _private: (),
}

/// Descriptors of a command, all owned by the job.
#[derive(Debug, Default)]
pub struct JobDescriptors {
    /// 0; `None`: /dev/null.
    pub stdin: Option<OwnedFd>,
    /// 1; `None`: /dev/null.
    pub stdout: Option<OwnedFd>,
    /// 2; `None`: /dev/null.
    pub stderr: Option<OwnedFd>,
    /// A directory to fchdir(2) to, where the filter says `cwd = "caller"`.
    pub cwd: Option<OwnedFd>,
}

/// What rootwrapd knows of the caller and the child needs.
#[derive(Clone, Debug, Default)]
pub struct JobContext {
    /// ROOTWRAP_UID.
    pub caller_uid: u32,
    /// ROOTWRAP_REQUEST_ID.
    pub request_id: String,
    /// The caller's loginuid where it is set.
    pub loginuid: Option<u32>,
    /// TERM, where the caller's standard input is a terminal.
    pub term: Option<Vec<u8>>,
}

impl Job {
    /// A job for this permit. `inner` is the verified inner executable where the permit has one.
    ///
    /// # Errors
    /// [`JobError`]: what the permit asks for and what was given do not fit; nothing of it can be launched.
    pub fn new(
        _permit: &Permit,
        _executable: Arc<VerifiedExecutable>,
        _inner: Option<Arc<VerifiedExecutable>>,
        _context: JobContext,
        _descriptors: JobDescriptors,
    ) -> Result<Self, JobError> {
        todo!()
    }
}

/// Why no job can be made of a permit. None of these can come from a caller's request: they are faults of the service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The permit is for a signal, not for a command.
    #[error("the permit is not for a command")]
    NotACommand,
    /// An executable was given that is none of the permit's candidates, or one is missing.
    #[error("{0}: not an executable of this permit")]
    Executable(String),
    /// The user or group of `run_as` does not exist.
    #[error("user {0} does not exist")]
    NoSuchUser(String),
    /// `cwd = "caller"` without a directory.
    #[error("the caller's directory is missing")]
    NoDirectory,
    /// An argument, variable or path holds a NUL byte, or a variable's name is empty or holds `=`.
    #[error("{0} cannot be passed to a program")]
    Malformed(&'static str),
    /// More than fits into a job.
    #[error("the arguments and the environment are too large")]
    TooLarge,
}

/// A question for a child with privilege.
#[derive(Debug)]
pub enum ProbeJob {
    /// [`Question::PathUnder`](crate::policy::facts::Question::PathUnder).
    PathUnder {
        /// Absolute.
        path: Vec<u8>,
        /// Absolute.
        base: Vec<u8>,
        /// Absolute.
        links_to: Vec<Vec<u8>>,
        /// The last component need not exist.
        new: bool,
    },
    /// Does the process behind this pidfd run one of these executables?
    PidOf {
        /// The process.
        pidfd: OwnedFd,
        /// Its number.
        pid: u32,
        /// Absolute.
        executables: Vec<Vec<u8>>,
    },
    /// SHA-256 of the executable behind the descriptor.
    Digest {
        /// O_PATH or readable.
        executable: OwnedFd,
    },
}

/// The answer of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// Yes.
    Yes,
    /// No, and why, for the journal.
    No(String),
    /// Digest.
    Digest([u8; 32]),
}

/// The steps before exec, in their order (design: each is fatal).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum Step {
    Receive,
    Session,
    Keyring,
    Signals,
    Descriptors,
    Umask,
    Scheduling,
    OomScore,
    Limits,
    LoginUid,
    Cwd,
    BoundingSet,
    SecureBits,
    Groups,
    Gid,
    Uid,
    Capabilities,
    AmbientSet,
    NoNewPrivs,
    Executable,
    Exec,
}
