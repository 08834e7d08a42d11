//! Questions that need privilege, answered with that privilege only.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Stat, Timespec};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::steps::Failure;
use super::{failure, path_under, procfs};
use crate::launch::wire::WireProbe;
use crate::launch::{ProbeAnswer, Step};

/// Answers one question. A child that cannot find out fails: that is no answer, and the request is refused.
pub(super) fn answer(probe: &WireProbe, descriptors: &[OwnedFd]) -> Result<ProbeAnswer, Failure> {
    let failed = |step| move |error: io::Error| failure(step, &error);
    let needed = match probe {
        WireProbe::PathUnder { .. } | WireProbe::Digest => CapabilitySet::DAC_READ_SEARCH,
        WireProbe::PidOf { .. } => CapabilitySet::DAC_READ_SEARCH | CapabilitySet::SYS_PTRACE,
    };
    keep_only(needed).map_err(failed(Step::Capabilities))?;
    let answer = match (probe, descriptors) {
        (WireProbe::PathUnder { path, base, links_to, new }, []) => path_under::check(path, base, links_to, *new),
        (WireProbe::PidOf { pid, executables }, [pidfd]) => pid_of(*pid, pidfd, executables),
        (WireProbe::Digest, [executable]) => procfs::sha256(executable.as_fd()).map(ProbeAnswer::Digest),
        _ => Err(io::Error::from_raw_os_error(libc::EBADMSG)),
    };
    answer.map_err(failed(Step::Executable))
}

/// Keeps these capabilities (those of them that are there), and gains none by anything.
fn keep_only(needed: CapabilitySet) -> io::Result<()> {
    let now = rustix::thread::capabilities(None)?;
    let kept = now.permitted & needed;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Whether the process of the pidfd runs one of the files, by device and inode.
fn pid_of(pid: u32, pidfd: &OwnedFd, executables: &[Vec<u8>]) -> io::Result<ProbeAnswer> {
    let no = |why: &str| Ok(ProbeAnswer::No(why.to_owned()));
    if pid < 1 || pid_of_pidfd(pidfd)? != i64::from(pid) {
        return no("the process is gone");
    }
    let runs = match rustix::fs::stat(format!("/proc/{pid}/exe")) {
        Ok(stat) => stat,
        // A kernel thread, or a process that is ending.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::SRCH) => return no("the process runs no program"),
        Err(error) => return Err(error.into()),
    };
    // Only what was read while the process was there is about this process: its number cannot have gone to another.
    if has_ended(pidfd)? {
        return no("the process is gone");
    }
    let is_it = |path: &Vec<u8>| rustix::fs::stat(OsStr::from_bytes(path)).is_ok_and(|file| same(&file, &runs));
    if executables.iter().any(is_it) {
        Ok(ProbeAnswer::Yes)
    } else {
        no("the process runs another program")
    }
}

fn same(a: &Stat, b: &Stat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}

/// The number of a pidfd's process in this namespace: -1 once it has been reaped, 0 in a foreign one.
fn pid_of_pidfd(pidfd: &OwnedFd) -> io::Result<i64> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let number = info.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    number.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
}

fn has_ended(pidfd: &OwnedFd) -> io::Result<bool> {
    let mut watched = [PollFd::new(pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(poll(&mut watched, Some(&now))? > 0)
}
