//! rootwrapd's side of the launcher: start it, ask it for children, keep some parked, hand them jobs.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::control::{Birthplace, Control};
use super::handover::{Child, NotDone};
use super::parked::{JobCgroups, Parked, Task};
use super::watch::Process;
use super::{Job, ProbeAnswer, ProbeJob, Running, Step};

/// Children that are tried for one job, where one after the other dies before exec.
const ATTEMPTS: u32 = 3;
/// For the children that were not used to be gone.
const CLOSING: Duration = Duration::from_secs(5);

/// Handle of the running launcher. Made from the main thread before tokio starts.
#[derive(Debug)]
pub struct Launcher {
    process: Arc<Process>,
    control: Control,
    parked: Arc<Parked>,
    refiller: Task,
    /// Closed once every child is a command, or gone.
    unburied: mpsc::Receiver<Infallible>,
}

/// The launcher's process before the runtime is up.
#[derive(Debug)]
pub struct LauncherProcess {
    pid: u32,
    pidfd: OwnedFd,
    socket: OwnedFd,
}

/// Where the command's cgroup is.
#[derive(Debug)]
pub enum Target {
    /// A fresh cgroup below the service's own tree.
    Own,
    /// This cgroup directory (O_PATH or readable descriptor on cgroup2): the caller's.
    Cgroup(OwnedFd),
}

/// Why a command did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step before exec failed: the command was not started.
    #[error("{step:?}: {}", io::Error::from_raw_os_error(*errno))]
    Step {
        /// Which.
        step: Step,
        /// Why.
        errno: i32,
    },
    /// No child could be had (process limit, frozen or removed cgroup, ...): the command was not started. ECHILD: each one was
    /// killed before it had started anything.
    #[error("no child: {}", io::Error::from_raw_os_error(*errno))]
    Fork {
        /// Why.
        errno: i32,
    },
    /// The child ended before it said whether it started: nobody knows, and nothing is run twice.
    #[error("the child ended before it could say whether the command started")]
    OutcomeUnknown,
    /// The launcher is gone; rootwrapd drains and exits.
    #[error("the launcher is gone")]
    LauncherGone,
    /// The child did not get ready in time; it was killed and never ran.
    #[error("the child did not start in time")]
    TimedOut,
}

impl LaunchError {
    pub(super) fn fork(error: &io::Error) -> Self {
        Self::Fork {
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

impl LauncherProcess {
    /// Starts `rootwrap-launcher`. Call from the main thread, before tokio and before capabilities are dropped; SIGCHLD must not be
    /// ignored, or the kernel reaps commands by itself.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub fn start(program: &Path) -> io::Result<Self> {
        let (socket, launchers) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let child = Command::new(program).env_clear().stdin(launchers).stdout(Stdio::null()).spawn()?;
        let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let number = number.ok_or_else(|| io::Error::from_raw_os_error(libc::EOVERFLOW))?;
        Ok(Self {
            pid: child.id(),
            pidfd: pidfd_open(number, PidfdFlags::empty())?,
            socket,
        })
    }

    /// Registers it with the runtime and parks `parked` children. `cgroup_root`: the unit's cgroup directory (absolute path on
    /// the cgroup2 mount) below which `jobs/` is made; `None`: no cgroup can be made (not delegated), commands run in the launcher's own.
    ///
    /// # Errors
    /// When the runtime refuses the descriptor, or `jobs/` cannot be made.
    pub fn into_launcher(self, parked: u32, cgroup_root: Option<&Path>) -> io::Result<Launcher> {
        let cgroups = cgroup_root.map(JobCgroups::new).transpose()?;
        let process = Arc::new(Process::new(self.pid, self.pidfd)?);
        let (held_by_children, unburied) = mpsc::channel(1);
        let control = Control::start(self.socket, held_by_children)?;
        let parked = Parked::new(control.clone(), cgroups, parked);
        let refiller = Task::spawn(parked.clone().keep_full());
        Ok(Launcher {
            process,
            control,
            parked,
            refiller,
            unburied,
        })
    }

    /// The launcher's process id, for tests and for `daemon/`.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl Launcher {
    /// Runs a job: returns once exec has happened.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub async fn launch(&self, job: Job, target: Target, deadline: Duration) -> Result<Running, LaunchError> {
        let deadline = Instant::now() + deadline;
        let launched = self
            .attempts(&target, deadline, async |child| child.run(&job.0, deadline).await)
            .await;
        self.parked.refill();
        launched
    }

    /// Asks a probe child.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub async fn probe(&self, probe: ProbeJob, deadline: Duration) -> Result<ProbeAnswer, LaunchError> {
        let deadline = Instant::now() + deadline;
        let message = probe.into_message().ok_or(LaunchError::Step {
            step: Step::Receive,
            errno: libc::E2BIG,
        })?;
        let answered = self
            .attempts(&Target::Own, deadline, async |child| child.ask(&message, deadline).await)
            .await;
        self.parked.refill();
        answered
    }

    /// Tries children until one is not killed before it has done anything.
    async fn attempts<T>(
        &self,
        target: &Target,
        deadline: Instant,
        attempt: impl AsyncFn(Child) -> Result<T, NotDone>,
    ) -> Result<T, LaunchError> {
        for _ in 0..ATTEMPTS {
            let child = timeout_at(deadline, self.child(target))
                .await
                .map_err(|_| LaunchError::TimedOut)??;
            match attempt(child).await {
                Ok(done) => return Ok(done),
                Err(NotDone::Failed(error)) => return Err(error),
                Err(NotDone::Died) => {}
            }
        }
        Err(LaunchError::Fork { errno: libc::ECHILD })
    }

    async fn child(&self, target: &Target) -> Result<Child, LaunchError> {
        match target {
            Target::Own => self.parked.take().await,
            Target::Cgroup(cgroup) => {
                let cgroup = cgroup.try_clone().map_err(|error| LaunchError::fork(&error))?;
                self.control.fork(Birthplace::Foreign(cgroup)).await
            }
        }
    }

    /// Ends the launcher and the children that were not used, and removes their cgroups. Running commands are not touched.
    pub async fn close(self) {
        let Self {
            process,
            control,
            parked,
            refiller,
            mut unburied,
        } = self;
        drop((refiller, parked, control));
        // A launcher that was stopped answers nobody, and holds one of these for ever.
        let _closed = timeout(CLOSING, unburied.recv()).await;
        // Its socket has closed with the last handle, so it exits by itself; one that does not is no longer ours.
        process.kill();
        process.reap().await;
    }

    /// Resolves when the launcher has ended.
    pub async fn gone(&self) {
        self.process.until_ended().await;
    }
}
