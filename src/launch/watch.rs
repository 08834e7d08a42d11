//! Running commands: their end, signals to them, and ending all that they started.
//!
//! A command is known by its pidfd and stays a zombie until it is reaped here, under a lock that every signal takes as well: no
//! number is used after it could have gone to another process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::Interest;

use crate::sys::async_fd::AsyncOwnedFd;
use crate::sys::cgroup::{self, Cgroup};
use crate::sys::pidfd::{self, Ended, Status};
use crate::sys::process;

/// A child of rootwrapd, from fork to reaping.
#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    pidfd: AsyncOwnedFd,
    /// Once it has been reaped.
    ended: Mutex<Option<Ended>>,
}

impl Process {
    pub fn new(pid: u32, pidfd: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            pid,
            pidfd: AsyncOwnedFd::register(pidfd, Interest::READABLE)?,
            ended: Mutex::new(None),
        })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, where it has; it is not reaped.
    pub fn peek(&self) -> Option<Ended> {
        let ended = self.lock();
        ended.or_else(|| pidfd::peek(self.pidfd.as_fd()).ok().flatten())
    }

    /// Waits for its end without reaping it.
    pub async fn until_ended(&self) {
        while self.peek().is_none() {
            match self.pidfd.readable().await {
                Ok(mut guard) if self.peek().is_none() => guard.clear_ready(),
                // It has ended; or the runtime is shutting down, and there is nothing left to wait with.
                _ => return,
            }
        }
    }

    /// Waits for its end and reaps it. `None` where another reaped it, against the rules.
    pub async fn reap(&self) -> Option<Ended> {
        self.until_ended().await;
        let mut ended = self.lock();
        if ended.is_none() {
            *ended = pidfd::reap(self.pidfd.as_fd()).ok().flatten();
        }
        *ended
    }

    /// SIGKILL, unless it has been reaped.
    pub fn kill(&self) {
        // It fails only where there is nobody left to kill.
        let _ = self.signal(libc::SIGKILL, false);
    }

    /// To the process, or to its whole process group where `group`: as leader of its session its number is that of its group.
    pub fn signal(&self, signal: i32, group: bool) -> io::Result<()> {
        let ended = self.lock();
        if ended.is_some() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if group {
            // Not reaped, so the number is still its own; and a session's leader cannot leave its group.
            return process::kill_group(self.pid, signal);
        }
        pidfd::send_signal(self.pidfd.as_fd(), signal)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running command, known by its pidfd. It runs on when this is dropped: [`wait`](Self::wait) for it, then [`clean_up`](Self::clean_up).
#[derive(Debug)]
pub struct Running {
    process: Arc<Process>,
    /// Its own; `None` in the caller's.
    cgroup: Option<Cgroup>,
    started: Instant,
    exit: Option<Exit>,
}

/// How a command ended, with what wait4(2) says of its use. Neither code nor signal: it was reaped by somebody else, which only a
/// fault of the service can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit status, where it exited.
    pub code: Option<i32>,
    /// Signal, where one ended it.
    pub signal: Option<i32>,
    /// Wall time since the job was handed over, a fraction of a millisecond before exec.
    pub duration: Duration,
    /// User and system time.
    pub cpu: Duration,
    /// ru_maxrss, KiB.
    pub max_rss: u64,
}

impl Running {
    /// `started`: when its job was handed over.
    pub(super) fn new(process: Arc<Process>, cgroup: Option<Cgroup>, started: Instant) -> Self {
        Self {
            process,
            cgroup,
            started,
            exit: None,
        }
    }

    /// Its process id in rootwrapd's pid namespace.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits for its end and reaps it. Cancel safe; the same answer again once it has ended.
    pub async fn wait(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let ended = self.process.reap().await;
        let exit = self.describe(ended);
        self.exit = Some(exit);
        exit
    }

    fn describe(&self, ended: Option<Ended>) -> Exit {
        let status = ended.map(|ended| ended.status);
        Exit {
            code: status.and_then(|status| match status {
                Status::Exited(code) => Some(code),
                Status::Signaled(_) => None,
            }),
            signal: status.and_then(|status| match status {
                Status::Signaled(signal) => Some(signal),
                Status::Exited(_) => None,
            }),
            duration: self.started.elapsed(),
            cpu: ended.map_or(Duration::ZERO, |ended| ended.cpu),
            max_rss: ended.map_or(0, |ended| ended.max_rss),
        }
    }

    /// Sends a signal (1 to 64): to the process by pidfd, or to its whole process group where `group` (its group is its own: it was
    /// made by setsid).
    ///
    /// # Errors
    /// ESRCH when it has ended, EINVAL for another number.
    pub fn signal(&self, signal: i32, group: bool) -> io::Result<()> {
        self.process.signal(signal, group)
    }

    /// A handle that signals the command while another task waits for it.
    #[must_use]
    pub fn signaller(&self) -> Signaller {
        Signaller(self.process.clone())
    }

    /// SIGTERM, and SIGKILL after `kill_after`, to the command and (in its own cgroup) all that it started; returns how it ended.
    /// What it left behind ends with [`clean_up`](Self::clean_up).
    pub async fn end(&mut self, kill_after: Duration) -> Exit {
        self.terminate();
        if let Ok(exit) = tokio::time::timeout(kill_after, self.wait()).await {
            return exit;
        }
        // Each reaches whom the other may miss; that there is nobody left is fine.
        let _ = self.process.signal(libc::SIGKILL, true);
        if let Some(cgroup) = &self.cgroup {
            let _ = cgroup.kill();
        }
        self.wait().await
    }

    /// SIGTERM, and SIGCONT so that a stopped process gets it, once to everybody.
    fn terminate(&self) {
        for signal in [libc::SIGTERM, libc::SIGCONT] {
            // They may have ended in the meantime.
            let _ = self.process.signal(signal, self.cgroup.is_none());
            if let Some(cgroup) = &self.cgroup {
                signal_others(cgroup, self.pid(), signal);
            }
        }
    }

    /// After its end: kills what it left behind in its own cgroup and removes the cgroup; in the caller's cgroup does nothing.
    /// Returns when no process is left, which the kernel may delay while one is in the middle of I/O.
    pub async fn clean_up(self) {
        if let Some(cgroup) = self.cgroup {
            remove(&cgroup).await;
        }
    }
}

/// Kills what is in the cgroup, waits until it is empty, and removes it.
pub(super) async fn remove(cgroup: &Cgroup) {
    if cgroup.remove().is_ok() {
        return;
    }
    // A failure leaves an empty or a filled directory behind, in the service's own tree: systemd ends that with the unit.
    if cgroup.kill().is_ok() && until_empty(cgroup).await.is_ok() {
        let _ = cgroup.remove();
    }
}

async fn until_empty(cgroup: &Cgroup) -> io::Result<()> {
    let events = cgroup.open_events()?;
    let watched = AsyncOwnedFd::register(events.try_clone()?.into(), Interest::PRIORITY)?;
    // The kernel raises POLLPRI for changes after the last read.
    while cgroup::is_populated(&events)? {
        watched.ready(Interest::PRIORITY).await?.clear_ready();
    }
    Ok(())
}

/// Signals the processes of a cgroup but `leader`. A number is only used through a pidfd that was opened while it was in the cgroup.
fn signal_others(cgroup: &Cgroup, leader: u32, signal: i32) {
    let open = |pid: u32| {
        let number = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
        let pidfd = rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty()).ok()?;
        Some((pid, pidfd))
    };
    let before = cgroup.processes().unwrap_or_default();
    let opened: Vec<_> = before.into_iter().filter(|pid| *pid != leader).filter_map(open).collect();
    if opened.is_empty() {
        return;
    }
    let still_there = cgroup.processes().unwrap_or_default();
    for (_, pidfd) in opened.iter().filter(|(pid, _)| still_there.contains(pid)) {
        // It may have ended in the meantime.
        let _ = pidfd::send_signal(pidfd.as_fd(), signal);
    }
}

/// Sends signals to a running command; once it has been reaped, every signal is ESRCH.
#[derive(Clone, Debug)]
pub struct Signaller(Arc<Process>);

impl Signaller {
    /// As [`Running::signal`].
    ///
    /// # Errors
    /// ESRCH when it has ended, EINVAL for a number that is no signal.
    pub fn signal(&self, signal: i32, group: bool) -> io::Result<()> {
        self.0.signal(signal, group)
    }
}
