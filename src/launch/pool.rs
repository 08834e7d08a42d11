//! rootwrapd's side of the launcher: start it, ask it for children, keep some parked, hand them jobs.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use super::{Job, ProbeAnswer, ProbeJob, Running, Step};

/// Handle of the running launcher. Made from the main thread before tokio starts.
#[derive(Debug)]
pub struct Launcher {
    _private: (),
}

/// The launcher's process before the runtime is up.
#[derive(Debug)]
pub struct LauncherProcess {
    _private: (),
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
    #[error("{step:?}: {}", std::io::Error::from_raw_os_error(*errno))]
    Step {
        /// Which.
        step: Step,
        /// Why.
        errno: i32,
    },
    /// No child could be had (process limit, frozen or removed cgroup, ...): the command was not started.
    #[error("no child: {}", std::io::Error::from_raw_os_error(*errno))]
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

impl LauncherProcess {
    /// Starts `rootwrap-launcher`. Call from the main thread, before tokio and before capabilities are dropped.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub fn start(_program: &Path) -> std::io::Result<Self> {
        todo!()
    }

    /// Registers it with the runtime and parks `parked` children. `cgroup_root`: the unit's cgroup directory (absolute path on
    /// the cgroup2 mount) below which `jobs/` is made; `None`: no cgroup can be made (not delegated), commands run in the launcher's own.
    ///
    /// # Errors
    /// When the runtime refuses the descriptor.
    pub fn into_launcher(self, _parked: u32, _cgroup_root: Option<&Path>) -> std::io::Result<Launcher> {
        todo!()
    }

    /// The launcher's process id, for tests and for `daemon/`.
    #[must_use]
    pub fn pid(&self) -> u32 {
        todo!()
    }
}

impl Launcher {
    /// Runs a job: returns once exec has happened.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub async fn launch(&self, _job: Job, _target: Target, _deadline: Duration) -> Result<Running, LaunchError> {
        todo!()
    }

    /// Asks a probe child.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub async fn probe(&self, _probe: ProbeJob, _deadline: Duration) -> Result<ProbeAnswer, LaunchError> {
        todo!()
    }

    /// Ends the launcher and the children that were not used, and removes their cgroups. Running commands are not touched.
    pub async fn close(self) {
        todo!()
    }

    /// Resolves when the launcher has ended.
    pub async fn gone(&self) {
        todo!()
    }
}
