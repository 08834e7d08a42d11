//! Who is calling, from the kernel only. This is the one place where a [`CallerIdentity`] is made.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::{cgroup, procfs};
use crate::audit::Caller;
use crate::policy::Subject;
use crate::sys::peer;
use crate::sys::socket::Credentials;

/// A caller, as it was when it connected.
#[derive(Debug)]
pub struct CallerIdentity {
    subject: Subject,
    /// Without what was the process's own: whoever speaks on its connection now is only known to be of the same user and group.
    survivor: Subject,
    shown: Arc<Caller>,
    credentials: Credentials,
    pidfd: Option<OwnedFd>,
}

/// uid and gid that the kernel shows for ids which this user namespace does not map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverflowIds {
    uid: u32,
    gid: u32,
}

impl OverflowIds {
    /// From /proc/sys/kernel.
    ///
    /// # Errors
    /// When they cannot be read: without them an unmapped user could be taken for `nobody`.
    pub fn read() -> io::Result<Self> {
        let read = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}"))?;
            text.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
        };
        Ok(Self {
            uid: read("overflowuid")?,
            gid: read("overflowgid")?,
        })
    }

    fn hides(self, credentials: Credentials) -> bool {
        credentials.uid == self.uid || credentials.gid == self.gid || credentials.uid == u32::MAX || credentials.gid == u32::MAX
    }
}

impl CallerIdentity {
    /// Asks the kernel about the peer of an accepted connection.
    ///
    /// # Errors
    /// When it does not say: nobody is taken for anybody then.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let credentials = peer::credentials(socket)?;
        let groups = peer::groups(socket)?;
        // The process may have ended already; only what needs it is missing then.
        let pidfd = peer::pidfd(socket).ok();
        let label = peer::security_label(socket).ok().flatten();
        let process = pidfd
            .as_ref()
            .map(|pidfd| Process::read(credentials.pid, pidfd.as_fd()))
            .unwrap_or_default();
        let subject = Subject {
            uid: credentials.uid,
            gid: credentials.gid,
            groups,
            unit: process.unit.clone(),
            label,
            assumed_by_file: None,
        };
        Ok(Self {
            shown: Arc::new(Caller {
                uid: credentials.uid,
                gid: credentials.gid,
                pid: credentials.pid,
                comm: process.comm,
                unit: process.unit,
                loginuid: process.loginuid,
            }),
            survivor: Subject {
                unit: None,
                label: None,
                ..subject.clone()
            },
            subject,
            credentials,
            pidfd,
        })
    }

    /// As the policy sees it now: a process that has ended has no unit and no label any more.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        if self.has_ended() { &self.survivor } else { &self.subject }
    }

    fn has_ended(&self) -> bool {
        !self.pidfd.as_ref().is_some_and(|pidfd| is_alive(pidfd.as_fd()))
    }

    /// As the journal shows it.
    #[must_use]
    pub fn shown(&self) -> &Arc<Caller> {
        &self.shown
    }

    /// Effective uid.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.credentials.uid
    }

    /// Whether its ids stand for any of many users.
    #[must_use]
    pub fn is_hidden(&self, overflow: OverflowIds) -> bool {
        overflow.hides(self.credentials)
    }

    /// Whether a message came from the user and group that connected. The pid may differ: a child of the caller can speak for it.
    #[must_use]
    pub fn sent(&self, sender: Option<Credentials>) -> bool {
        sender.is_some_and(|sender| sender.uid == self.credentials.uid && sender.gid == self.credentials.gid)
    }

    /// Whether both are connections of one process that still lives: it holds its pid, so the number is its own.
    #[must_use]
    pub fn is_same_process(&self, other: &Self) -> bool {
        self.credentials.pid != 0 && self.credentials == other.credentials && !self.has_ended() && !other.has_ended()
    }

    /// The directory of the cgroup that the process is in now, O_PATH.
    ///
    /// # Errors
    /// ESRCH: it has ended, or is in a foreign pid namespace; ENOENT: it is in no cgroup that is seen here.
    pub fn cgroup(&self) -> io::Result<OwnedFd> {
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        let pidfd = self.pidfd.as_ref().filter(|_| self.credentials.pid != 0).ok_or_else(gone)?;
        let path = cgroup::of_process(self.credentials.pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        let mount = cgroup::mount_point().ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let directory = rustix::fs::open(mount.directory(&path), flags, Mode::empty())?;
        if is_alive(pidfd.as_fd()) { Ok(directory) } else { Err(gone()) }
    }
}

/// The systemd unit of a process, where the process behind the pidfd is still the one with this number.
#[must_use]
pub fn unit_of(pid: u32, pidfd: BorrowedFd<'_>) -> Option<String> {
    let unit = cgroup::of_process(pid).as_deref().and_then(cgroup::unit);
    unit.filter(|_| is_alive(pidfd))
}

fn is_alive(pidfd: BorrowedFd<'_>) -> bool {
    peer::alive(pidfd).unwrap_or(false)
}

/// What /proc says of a process.
#[derive(Debug, Default)]
struct Process {
    comm: Option<Vec<u8>>,
    unit: Option<String>,
    loginuid: Option<u32>,
}

impl Process {
    /// All or nothing: what was read is believed only where the process still lives afterwards, since its number was its own then.
    fn read(pid: u32, pidfd: BorrowedFd<'_>) -> Self {
        if pid == 0 {
            return Self::default();
        }
        let process = Self {
            comm: procfs::read(pid, "comm").map(|comm| comm.trim_ascii_end().to_vec()),
            unit: cgroup::of_process(pid).as_deref().and_then(cgroup::unit),
            loginuid: procfs::read_text(pid, "loginuid")
                .and_then(|text| text.parse().ok())
                .filter(|uid| *uid != u32::MAX),
        };
        if is_alive(pidfd) { process } else { Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::socket::pair;

    #[test]
    fn given_a_connection_then_the_caller_is_who_the_kernel_says() {
        let (a, _b) = pair().unwrap();
        let caller = CallerIdentity::of(a.as_fd()).unwrap();
        let own = Credentials::effective();
        assert_eq!((caller.uid(), caller.shown().pid), (own.uid, own.pid));
        assert!(caller.shown().comm.is_some());
        assert!(caller.subject().assumed_by_file.is_none());
        assert!(caller.is_same_process(&CallerIdentity::of(a.as_fd()).unwrap()));
    }

    #[test]
    fn given_a_process_that_has_ended_then_only_its_user_and_groups_are_left() {
        let (a, _b) = pair().unwrap();
        let mut caller = CallerIdentity::of(a.as_fd()).unwrap();
        caller.subject.unit = Some("agent.service".into());
        assert_eq!(caller.subject().unit.as_deref(), Some("agent.service"));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pidfd = rustix::process::pidfd_open(rustix::process::Pid::from_child(&child), rustix::process::PidfdFlags::empty());
        child.wait().unwrap();
        caller.pidfd = Some(pidfd.unwrap());
        let left = caller.subject();
        assert_eq!((&left.unit, &left.label), (&None, &None));
        assert_eq!((left.uid, &left.groups), (caller.uid(), &caller.subject.groups));
    }

    #[test]
    fn given_a_message_of_another_user_or_without_credentials_then_it_is_not_the_callers() {
        let (a, _b) = pair().unwrap();
        let caller = CallerIdentity::of(a.as_fd()).unwrap();
        let own = Credentials::effective();
        assert!(caller.sent(Some(own)) && caller.sent(Some(Credentials { pid: 1, ..own })));
        assert!(!caller.sent(Some(Credentials { uid: own.uid + 1, ..own })));
        assert!(!caller.sent(Some(Credentials { gid: own.gid + 1, ..own })));
        assert!(!caller.sent(None));
    }

    #[test]
    fn given_ids_that_the_namespace_does_not_map_then_they_are_hidden() {
        let overflow = OverflowIds::read().unwrap();
        let own = Credentials { pid: 1, uid: 5, gid: 5 };
        assert!(!overflow.hides(own));
        for hidden in [
            Credentials { uid: overflow.uid, ..own },
            Credentials { gid: overflow.gid, ..own },
            Credentials { uid: u32::MAX, ..own },
        ] {
            assert!(overflow.hides(hidden), "{hidden:?}");
        }
        // Far above what fits into a signed number, and a user like any other.
        assert!(!overflow.hides(Credentials { uid: 2_147_483_650, ..own }));
    }
}
