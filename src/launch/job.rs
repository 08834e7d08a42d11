//! What a child is told: numbers, bytes and descriptors; no names to look up.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::config::trusted::VerifiedExecutable;
use crate::policy::spec::{Capabilities, Cwd, Stdin};
use crate::policy::{Action, Permit};
use crate::sys::passed::PassedFd;

use super::environment;
use super::wire::{self, CommandJob, WireJob, WireProbe};

/// A command to run. Made from a [`Permit`] only.
#[derive(Debug)]
pub struct Job(pub(super) Message);

/// A job of either kind as it goes to the child: bytes with their length before them, and descriptors.
#[derive(Debug)]
pub(super) struct Message {
    pub bytes: Vec<u8>,
    pub descriptors: Vec<Held>,
}

/// A descriptor of a job.
#[derive(Debug)]
pub(super) enum Held {
    /// An executable, which stays open.
    Executable(Arc<OwnedFd>),
    /// One that the service made.
    Own(OwnedFd),
    /// One that the caller may have passed.
    Passed(PassedFd),
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Executable(descriptor) => descriptor.as_fd(),
            Self::Own(descriptor) => descriptor.as_fd(),
            Self::Passed(descriptor) => descriptor.as_fd(),
        }
    }
}

/// Descriptors of a command, all owned by the job.
#[derive(Debug, Default)]
pub struct JobDescriptors {
    /// 0; `None`: /dev/null.
    pub stdin: Option<PassedFd>,
    /// 1; `None`: /dev/null.
    pub stdout: Option<PassedFd>,
    /// 2; `None`: /dev/null.
    pub stderr: Option<PassedFd>,
    /// A directory to fchdir(2) to, where the filter says `cwd = "caller"`.
    pub cwd: Option<PassedFd>,
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
        permit: &Permit,
        executable: Arc<VerifiedExecutable>,
        inner: Option<Arc<VerifiedExecutable>>,
        context: JobContext,
        descriptors: JobDescriptors,
    ) -> Result<Self, JobError> {
        let args = arguments(permit, &executable, inner.as_deref())?;
        let execution = permit.execution();
        let ids = execution.run_as.ids.as_ref();
        let ids = ids.ok_or_else(|| JobError::NoSuchUser(execution.run_as.user.clone()))?;
        let cwd = match &execution.cwd {
            Cwd::Path(path) => Some(program_bytes("the working directory", path.as_os_str().as_bytes())?),
            Cwd::Caller => None,
        };
        let stdio = [
            descriptors.stdin.filter(|_| execution.stdin == Stdin::Caller),
            descriptors.stdout,
            descriptors.stderr,
        ];
        let job = CommandJob {
            path: program_bytes("the path", executable.path().as_os_str().as_bytes())?,
            args,
            environment: environment::build(&execution.run_as, &context, &execution.env_set, permit.environment())?,
            inner: inner.as_ref().map(|inner| inner.path().as_os_str().as_bytes().to_vec()),
            sha256: execution.sha256,
            stdio: stdio.each_ref().map(Option::is_some),
            umask: execution.umask,
            nice: execution.nice,
            oom_score: execution.oom_score,
            nofile: execution.nofile,
            loginuid: context.loginuid,
            uid: ids.uid,
            gid: ids.gid,
            groups: ids.groups.clone(),
            capabilities: match execution.capabilities {
                Capabilities::All => None,
                Capabilities::Set(set) => Some(set),
            },
            no_new_privs: execution.no_new_privs,
            cwd,
        };
        let directory = if job.cwd.is_none() {
            Some(descriptors.cwd.ok_or(JobError::NoDirectory)?)
        } else {
            None
        };
        let mut all = vec![Held::Executable(executable.descriptor().clone())];
        all.extend(inner.iter().map(|inner| Held::Executable(inner.descriptor().clone())));
        all.extend(stdio.into_iter().flatten().chain(directory).map(Held::Passed));
        let bytes = wire::frame(&WireJob::Command(job)).ok_or(JobError::TooLarge)?;
        Ok(Self(Message { bytes, descriptors: all }))
    }
}

/// The arguments after argv\[0\], with the inner command as its own filter spells it.
fn arguments(permit: &Permit, executable: &VerifiedExecutable, inner: Option<&VerifiedExecutable>) -> Result<Vec<Vec<u8>>, JobError> {
    let Action::Execute {
        candidates,
        inner: expected,
    } = permit.action()
    else {
        return Err(JobError::NotACommand);
    };
    let foreign = |path: &Path| JobError::Executable(path.display().to_string());
    if !candidates.iter().any(|candidate| candidate == executable.path()) {
        return Err(foreign(executable.path()));
    }
    let mut args = permit.args().to_vec();
    match (expected, inner) {
        (None, None) => {}
        (Some((at, candidates)), Some(inner)) if candidates.iter().any(|candidate| candidate == inner.path()) => {
            let argument = args.get_mut(*at).ok_or_else(|| foreign(inner.path()))?;
            *argument = inner.path().as_os_str().as_bytes().to_vec();
        }
        (_, Some(inner)) => return Err(foreign(inner.path())),
        (Some((_, candidates)), None) => return Err(foreign(candidates.first().map_or(Path::new("inner command"), |path| path))),
    }
    args.into_iter().map(|argument| program_bytes("an argument", &argument)).collect()
}

/// Bytes that can be a C string.
fn program_bytes(what: &'static str, bytes: &[u8]) -> Result<Vec<u8>, JobError> {
    if bytes.contains(&0) {
        return Err(JobError::Malformed(what));
    }
    Ok(bytes.to_vec())
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

impl ProbeJob {
    /// As it goes to the child; `None` where it is too large.
    pub(super) fn into_message(self) -> Option<Message> {
        let (probe, descriptor) = match self {
            Self::PathUnder { path, base, links_to, new } => (WireProbe::PathUnder { path, base, links_to, new }, None),
            Self::PidOf { pidfd, pid, executables } => (WireProbe::PidOf { pid, executables }, Some(pidfd)),
            Self::Digest { executable } => (WireProbe::Digest, Some(executable)),
        };
        Some(Message {
            bytes: wire::frame(&WireJob::Probe(probe))?,
            descriptors: descriptor.into_iter().map(Held::Own).collect(),
        })
    }
}

/// The answer of a probe.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ProbeAnswer {
    /// Yes.
    Yes,
    /// No, and why, for the journal.
    No(String),
    /// Digest.
    Digest([u8; 32]),
}

/// The steps before exec, in their order; each is fatal. The first three are done before the child has a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum Step {
    Session,
    Keyring,
    Signals,
    Defaults,
    Receive,
    Descriptors,
    Umask,
    Scheduling,
    OomScore,
    Limits,
    /// The executable's contents are not those of the filter's `sha256` (EKEYREJECTED), or cannot be read.
    Digest,
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
