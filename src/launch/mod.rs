//! Commands into processes: jobs, the launcher that forks, the children that give up privileges and exec, and the watch over them.
//!
//! Three processes meet here. [`rootwrapd`](crate::daemon) holds a [`Launcher`] handle and [`Running`] commands; `rootwrap-launcher`
//! runs [`launcher::main`]; its children run `child`. A job goes from rootwrapd straight to the child: the launcher never sees it.

mod child;
mod control;
mod environment;
mod fork;
mod handover;
pub mod job;
pub mod launcher;
mod parked;
pub mod pool;
pub mod watch;
mod wire;

pub use job::{Job, JobContext, JobDescriptors, JobError, ProbeAnswer, ProbeJob, Step};
pub use pool::{LaunchError, Launcher, LauncherProcess, Target};
pub use watch::{Exit, Running, Signaller};
