//! The steps between a job and its command, in their order. Each is fatal: after a failure nothing is executed.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::privileged::{Privileged, Program};
use crate::launch::Step;
use crate::launch::wire::{self, CommandJob, WireJob};

/// The step that failed, and errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub step: Step,
    pub errno: i32,
}

/// Names the step of a failed call.
fn at(step: Step) -> impl Fn(io::Error) -> Failure {
    move |error| Failure {
        step,
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// The first steps, which need no job: done while the child is parked.
pub(super) fn detach(kernel: &mut impl Privileged) -> Result<(), Failure> {
    kernel.new_session().map_err(at(Step::Session))?;
    kernel.new_session_keyring().map_err(at(Step::Keyring))?;
    kernel.reset_signals().map_err(at(Step::Signals))?;
    kernel.reset_scheduling().map_err(at(Step::Defaults))?;
    kernel.reset_limits().map_err(at(Step::Defaults))
}

/// Takes a job apart that is never carried out. A forked process has none of the pages of its program in its page table yet: those that
/// a job needs are there when it comes.
pub(super) fn rehearse() {
    let job = CommandJob {
        path: b"/rehearsal".to_vec(),
        args: vec![b"argument".to_vec(); 8],
        environment: vec![b"NAME=VALUE".to_vec(); 8],
        inner: None,
        sha256: None,
        stdio: [true; 3],
        cwd: Some(b"/".to_vec()),
        umask: 0,
        nice: 0,
        oom_score: 0,
        nofile: None,
        loginuid: None,
        uid: u32::MAX,
        gid: u32::MAX,
        groups: vec![u32::MAX],
        capabilities: Some(0),
        no_new_privs: true,
    };
    let parsed = postcard::to_stdvec(&WireJob::Command(job))
        .ok()
        .and_then(|bytes| wire::parse(&bytes));
    if let Some(WireJob::Command(job)) = std::hint::black_box(parsed) {
        std::hint::black_box(Words::new(&job).is_some());
    }
}

/// All other steps and exec; comes back where one failed.
pub(super) fn become_command(kernel: &mut impl Privileged, job: &CommandJob, descriptors: &[OwnedFd]) -> Failure {
    match try_become(kernel, job, descriptors) {
        Ok(never) => match never {},
        Err(failure) => failure,
    }
}

fn try_become(kernel: &mut impl Privileged, job: &CommandJob, descriptors: &[OwnedFd]) -> Result<std::convert::Infallible, Failure> {
    let malformed = || at(Step::Receive)(io::Error::from_raw_os_error(libc::EBADMSG));
    let given = Given::new(job, descriptors).ok_or_else(malformed)?;
    let words = Words::new(job).ok_or_else(malformed)?;
    set_attributes(kernel, job, &given)?;
    enter_directory(kernel, &words, &given)?;
    drop_privileges(kernel, job)?;
    if job.sha256.is_none() {
        // Between this look and exec only root could change what the path leads to: no other user can write to a directory on it.
        kernel
            .check_executable(&words.path, given.executable)
            .map_err(at(Step::Executable))?;
    }
    if let (Some(path), Some(inner)) = (&words.inner, given.inner) {
        kernel.check_executable(path, inner).map_err(at(Step::Executable))?;
    }
    kernel.announce().map_err(at(Step::Exec))?;
    let program = match job.sha256 {
        Some(_) => Program::Descriptor(given.executable),
        None => Program::Path(&words.path),
    };
    Err(at(Step::Exec)(kernel.execute(program, &words.argv, &words.environment)))
}

/// Everything but who we are: nothing of it is inherited from the service.
fn set_attributes(kernel: &mut impl Privileged, job: &CommandJob, given: &Given<'_>) -> Result<(), Failure> {
    kernel.place_descriptors(given.stdio).map_err(at(Step::Descriptors))?;
    kernel.set_umask(job.umask).map_err(at(Step::Umask))?;
    kernel.set_nice(job.nice).map_err(at(Step::Scheduling))?;
    kernel.set_oom_score(job.oom_score).map_err(at(Step::OomScore))?;
    if let Some(limit) = job.nofile {
        kernel.set_nofile(limit).map_err(at(Step::Limits))?;
    }
    if let Some(digest) = &job.sha256 {
        kernel.check_digest(given.executable, digest).map_err(at(Step::Digest))?;
    }
    if let Some(loginuid) = job.loginuid {
        kernel.set_loginuid(loginuid).map_err(at(Step::LoginUid))?;
    }
    Ok(())
}

/// Still with root's search permission, as under sudo. A caller's directory comes as a descriptor: no path of the caller's is
/// resolved, and what the command may do in there is decided by what it is left with.
fn enter_directory(kernel: &mut impl Privileged, words: &Words, given: &Given<'_>) -> Result<(), Failure> {
    match (&words.cwd, given.cwd) {
        (Some(path), _) => kernel.change_directory(path),
        (None, Some(directory)) => kernel.change_directory_to(directory),
        (None, None) => Err(io::Error::from_raw_os_error(libc::EBADMSG)),
    }
    .map_err(at(Step::Cwd))
}

/// From full root to the user and the capabilities of the job.
fn drop_privileges(kernel: &mut impl Privileged, job: &CommandJob) -> Result<(), Failure> {
    if let Some(set) = job.capabilities {
        kernel.limit_bounding_set(set).map_err(at(Step::BoundingSet))?;
        kernel.set_securebits().map_err(at(Step::SecureBits))?;
    }
    if job.uid != 0 {
        kernel.keep_capabilities().map_err(at(Step::SecureBits))?;
    }
    kernel.set_groups(&job.groups).map_err(at(Step::Groups))?;
    kernel.set_gid(job.gid).map_err(at(Step::Gid))?;
    kernel.set_uid(job.uid).map_err(at(Step::Uid))?;
    let (permitted, inherited) = match job.capabilities {
        Some(set) => (set, set),
        None => {
            let all = kernel.permitted_capabilities().map_err(at(Step::Capabilities))?;
            // Full root gets all of them back by exec; another user only through the ambient set.
            (all, if job.uid == 0 { 0 } else { all })
        }
    };
    kernel.set_capabilities(permitted, inherited).map_err(at(Step::Capabilities))?;
    // Under NOROOT, uid 0 is an ordinary user at exec: it, too, keeps only what is ambient.
    kernel.set_ambient(inherited).map_err(at(Step::AmbientSet))?;
    if job.no_new_privs {
        kernel.set_no_new_privs().map_err(at(Step::NoNewPrivs))?;
    }
    Ok(())
}

/// The job's descriptors by their use.
struct Given<'a> {
    executable: BorrowedFd<'a>,
    inner: Option<BorrowedFd<'a>>,
    stdio: [Option<BorrowedFd<'a>>; 3],
    cwd: Option<BorrowedFd<'a>>,
}

impl<'a> Given<'a> {
    /// `None` where there are fewer or more than the job says.
    fn new(job: &CommandJob, descriptors: &'a [OwnedFd]) -> Option<Self> {
        let mut rest = descriptors.iter().map(AsFd::as_fd);
        let mut missing = false;
        let mut take = |wanted: bool| {
            let taken = if wanted { rest.next() } else { None };
            missing |= wanted && taken.is_none();
            taken
        };
        let executable = take(true);
        let inner = take(job.inner.is_some());
        let stdio = job.stdio.map(&mut take);
        let cwd = take(job.cwd.is_none());
        if missing || rest.next().is_some() {
            return None;
        }
        Some(Self {
            executable: executable?,
            inner,
            stdio,
            cwd,
        })
    }
}

/// The job's bytes as C strings; made before the first step, so that nothing of it can fail later.
struct Words {
    path: CString,
    inner: Option<CString>,
    argv: Vec<CString>,
    environment: Vec<CString>,
    cwd: Option<CString>,
}

impl Words {
    /// `None` where one holds a NUL byte.
    fn new(job: &CommandJob) -> Option<Self> {
        let word = |bytes: &Vec<u8>| CString::new(bytes.as_slice()).ok();
        let words = |all: &[Vec<u8>]| all.iter().map(word).collect::<Option<Vec<_>>>();
        let optional = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(Some(None), |bytes| word(bytes).map(Some));
        let path = word(&job.path)?;
        let mut argv = vec![path.clone()];
        argv.extend(words(&job.args)?);
        Some(Self {
            path,
            inner: optional(&job.inner)?,
            argv,
            environment: words(&job.environment)?,
            cwd: optional(&job.cwd)?,
        })
    }
}
