//! The child: root, with nothing but its own socket, parked until its one job comes.
//!
//! It is forked from the single-threaded launcher, so ordinary code runs here. It never returns: it becomes the command, or exits
//! with 0 (no job, or a probe answered) or 126 (a step failed, and was reported).

mod kernel;
mod limits;
mod path_under;
mod privileged;
mod probe;
mod procfs;
#[cfg(test)]
mod recorder;
mod steps;

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::Step;
use super::launcher::Host;
use super::wire::{self, MAX_DESCRIPTORS, MAX_JOB, PREFIX, Report, WireJob};
use crate::sys::socket::{recv_with, send_with};
use kernel::Kernel;
use steps::Failure;

/// Exit status of a child whose command was not started.
const NOT_STARTED: i32 = 126;

/// The child's main function; `socket` is its only descriptor.
pub(super) fn main(socket: OwnedFd, host: Host) -> Infallible {
    let status = socket.as_fd();
    let mut kernel = Kernel { status, host };
    let ready = open_null().and_then(|()| steps::detach(&mut kernel));
    steps::rehearse();
    let outcome = ready.and_then(|()| receive(status)).and_then(|job| match job {
        None => Ok(()),
        Some((WireJob::Command(job), descriptors)) => Err(steps::become_command(&mut kernel, &job, &descriptors)),
        Some((WireJob::Probe(probe), descriptors)) => {
            let answer = probe::answer(&probe, &descriptors)?;
            report(status, &Report::Answer(answer)).map_err(|error| failure(Step::Receive, &error))
        }
    });
    let Err(Failure { step, errno }) = outcome else {
        std::process::exit(0)
    };
    // Where nobody listens any more there is nobody to tell.
    let _ = report(status, &Report::Failed { step, errno });
    std::process::exit(NOT_STARTED)
}

fn failure(step: Step, error: &io::Error) -> Failure {
    Failure {
        step,
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Sends one report, all of it: it is far smaller than the socket's buffer.
fn report(status: BorrowedFd<'_>, report: &Report) -> io::Result<()> {
    let bytes = postcard::to_stdvec(report).map_err(|_| io::Error::from_raw_os_error(libc::EMSGSIZE))?;
    send_with(status, &bytes, &[], None)?;
    Ok(())
}

/// /dev/null becomes 0, 1 and 2, which are free: whatever is received later gets higher numbers. Opened by each child for itself,
/// as flags of an open file are shared by all who hold it.
fn open_null() -> Result<(), Failure> {
    let open = || -> io::Result<()> {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty())?;
        nix::unistd::dup2_stdin(&null)?;
        nix::unistd::dup2_stdout(&null)?;
        nix::unistd::dup2_stderr(&null)?;
        // It is descriptor 0 itself, and stays open.
        std::mem::forget(null);
        Ok(())
    };
    open().map_err(|error| failure(Step::Descriptors, &error))
}

/// Waits for the job; `None` where rootwrapd has no use for this child.
fn receive(socket: BorrowedFd<'_>) -> Result<Option<(WireJob, Vec<OwnedFd>)>, Failure> {
    let failed = |error: &io::Error| failure(Step::Receive, error);
    let malformed = || failed(&io::Error::from_raw_os_error(libc::EBADMSG));
    let mut prefix = [0; PREFIX];
    // Far below the socket's buffer, so it comes in one piece, and the descriptors with it.
    let first = recv_with(socket, &mut prefix, MAX_DESCRIPTORS).map_err(|error| failed(&error))?;
    if first.len == 0 {
        return Ok(None);
    }
    let length = usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX);
    if first.len != prefix.len() || first.control_truncated || length > MAX_JOB {
        return Err(malformed());
    }
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let more = recv_with(socket, rest, 0).map_err(|error| failed(&error))?;
        if more.len == 0 || more.control_truncated {
            return Err(malformed());
        }
        filled += more.len;
    }
    let job = wire::parse(&bytes).ok_or_else(malformed)?;
    Ok(Some((job, first.fds)))
}
