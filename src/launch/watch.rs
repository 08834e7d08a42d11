//! Running commands: their end, signals to them, and ending all that they started.

use std::time::Duration;

/// A running command, known by its pidfd.
#[derive(Debug)]
pub struct Running {
    _private: (),
}

/// How a command ended, with what wait4(2) says of its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit status, where it exited.
    pub code: Option<i32>,
    /// Signal, where one ended it.
    pub signal: Option<i32>,
    /// Wall time since exec.
    pub duration: Duration,
    /// User and system time.
    pub cpu: Duration,
    /// ru_maxrss, KiB.
    pub max_rss: u64,
}

impl Running {
    /// Its process id in rootwrapd's pid namespace.
    #[must_use]
    pub fn pid(&self) -> u32 {
        todo!()
    }

    /// Waits for its end and reaps it. Cancel safe; the same answer again once it has ended.
    pub async fn wait(&mut self) -> Exit {
        todo!()
    }

    /// Sends a signal: to the process by pidfd, and to its process group where `group` (its group is its own: it was made by setsid).
    ///
    /// # Errors
    /// ESRCH when it has ended.
    pub fn signal(&self, _signal: i32, _group: bool) -> std::io::Result<()> {
        todo!()
    }

    /// A handle that signals the command while another task waits for it.
    #[must_use]
    pub fn signaller(&self) -> Signaller {
        todo!()
    }

    /// SIGTERM, and SIGKILL after `kill_after`, to the command and (in its own cgroup) all that it started; returns how it ended.
    pub async fn end(&mut self, _kill_after: Duration) -> Exit {
        todo!()
    }

    /// After its end: kills what it left behind in its own cgroup and removes the cgroup; in the caller's cgroup does nothing.
    pub async fn clean_up(self) {
        todo!()
    }
}

/// Sends signals to a running command; once it has been reaped, every signal is ESRCH.
#[derive(Clone, Debug)]
pub struct Signaller {
    _private: (),
}

impl Signaller {
    /// As [`Running::signal`].
    ///
    /// # Errors
    /// ESRCH when it has ended.
    pub fn signal(&self, _signal: i32, _group: bool) -> std::io::Result<()> {
        todo!()
    }
}
