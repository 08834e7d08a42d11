//! Children that are forked ahead, each in a fresh cgroup, and wait for a job.
//!
//! They are made off the path: when the pool starts, after one was taken and its command runs, and when one has died.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::control::{Birthplace, Control};
use super::handover::Child;
use super::pool::LaunchError;
use crate::sys::cgroup::Cgroup;

/// How long a new child waits to be made while others are still parked: forking at once would take a processor from the command that
/// has just started. Longer than most commands run, and short enough that one caller after the other finds a child.
const LULL: Duration = Duration::from_millis(3);

/// Pause before children that died or could not be had are replaced: what kills them may go on.
const PAUSE: Duration = Duration::from_millis(200);

/// Makes the cgroups of commands: numbered directories below the unit's `jobs/`.
#[derive(Debug)]
pub(super) struct JobCgroups {
    jobs: PathBuf,
    next: AtomicU64,
}

impl JobCgroups {
    /// Makes `jobs/` below `root`, and removes what an earlier run left empty there.
    pub fn new(root: &Path) -> io::Result<Self> {
        let jobs = root.join("jobs");
        match fs::create_dir(&jobs) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        for entry in fs::read_dir(&jobs)? {
            // Fails for files, and where processes live on: those keep their number.
            let _ = fs::remove_dir(entry?.path());
        }
        Ok(Self {
            jobs,
            next: AtomicU64::new(0),
        })
    }

    /// A fresh one.
    pub fn create(&self) -> io::Result<Cgroup> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            match Cgroup::create(self.jobs.join(number.to_string())) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => return other,
            }
        }
    }
}

/// Makes children of the service's own tree, and keeps some.
#[derive(Debug)]
pub(super) struct Parked {
    control: Control,
    /// `None`: not delegated to us; commands live in the launcher's cgroup.
    cgroups: Option<JobCgroups>,
    wanted: usize,
    waiting: Mutex<VecDeque<Waiting>>,
    refill: Notify,
}

/// One child, and the task that notices when it dies.
#[derive(Debug)]
struct Waiting {
    child: Child,
    watcher: Task,
}

/// Ends a task when nobody is waiting for its news any more.
#[derive(Debug)]
pub(super) struct Task(AbortHandle);

impl Task {
    pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work).abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Parked {
    pub fn new(control: Control, cgroups: Option<JobCgroups>, wanted: u32) -> Arc<Self> {
        Arc::new(Self {
            control,
            cgroups,
            wanted: usize::try_from(wanted).unwrap_or(usize::MAX),
            waiting: Mutex::default(),
            refill: Notify::new(),
        })
    }

    /// A child for a job: a parked one that is alive, else a new one.
    pub async fn take(&self) -> Result<Child, LaunchError> {
        while let Some(child) = self.pop() {
            if child.process().peek().is_none() {
                return Ok(child);
            }
        }
        self.make().await
    }

    /// Parks new children in place of those that were taken. Called when nobody waits for anything else.
    pub fn refill(&self) {
        self.refill.notify_one();
    }

    /// Keeps the pool full; ends only with the launcher.
    pub async fn keep_full(self: Arc<Self>) {
        loop {
            if self.bury_dead() {
                tokio::time::sleep(PAUSE).await;
            }
            while self.lock().len() < self.wanted {
                match self.make().await {
                    Ok(child) => self.park(child),
                    Err(LaunchError::LauncherGone) => return,
                    // A limit of processes, for instance: commands hear of it, here it is tried again.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
            self.refill.notified().await;
            if !self.lock().is_empty() {
                tokio::time::sleep(LULL).await;
            }
        }
    }

    async fn make(&self) -> Result<Child, LaunchError> {
        let birthplace = match &self.cgroups {
            Some(cgroups) => Birthplace::Own(cgroups.create().map_err(|error| LaunchError::fork(&error))?),
            None => Birthplace::Launcher,
        };
        self.control.fork(birthplace).await
    }

    fn park(self: &Arc<Self>, child: Child) {
        let (process, pool) = (child.process().clone(), Arc::downgrade(self));
        let watcher = Task::spawn(async move {
            process.until_ended().await;
            if let Some(pool) = pool.upgrade() {
                pool.refill();
            }
        });
        self.lock().push_back(Waiting { child, watcher });
    }

    fn pop(&self) -> Option<Child> {
        let Waiting { child, watcher } = self.lock().pop_front()?;
        drop(watcher);
        Some(child)
    }

    fn bury_dead(&self) -> bool {
        let mut waiting = self.lock();
        let before = waiting.len();
        waiting.retain(|waiting| waiting.child.process().peek().is_none());
        waiting.len() < before
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
