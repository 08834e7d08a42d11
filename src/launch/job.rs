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
    #[must_use]
    pub fn new(
        _permit: &Permit,
        _executable: Arc<VerifiedExecutable>,
        _inner: Option<Arc<VerifiedExecutable>>,
        _context: JobContext,
        _descriptors: JobDescriptors,
    ) -> Self {
        todo!()
    }
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
