//! The steps' system calls for real. Single-threaded: credentials are changed for the calling thread.

use std::ffi::{CStr, CString};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use nix::fcntl::AtFlags;
use rustix::fs::Mode;
use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use super::privileged::{Privileged, Program};
use super::{limits, procfs};
use crate::launch::launcher::Host;
use crate::launch::wire::Report;
use crate::sys::{descriptors, process};

/// Timer slack of init's children, in nanoseconds, see PR_SET_TIMERSLACK(2const).
const TIMER_SLACK: NonZeroU64 = match NonZeroU64::new(50_000) {
    Some(slack) => slack,
    None => NonZeroU64::MIN,
};

/// The real system calls.
pub(super) struct Kernel<'a> {
    /// Where reports go.
    pub status: BorrowedFd<'a>,
    /// What the launcher read once.
    pub host: Host,
}

impl Privileged for Kernel<'_> {
    fn new_session(&mut self) -> io::Result<()> {
        rustix::process::setsid()?;
        Ok(())
    }

    fn new_session_keyring(&mut self) -> io::Result<()> {
        process::join_new_session_keyring()
    }

    fn reset_signals(&mut self) -> io::Result<()> {
        process::reset_signals()
    }

    fn place_descriptors(&mut self, [stdin, stdout, stderr]: [Option<BorrowedFd<'_>>; 3]) -> io::Result<()> {
        // /dev/null is at 0, 1 and 2 since the child's first moment: everything received has a higher number.
        stdin.map_or(Ok(()), nix::unistd::dup2_stdin)?;
        stdout.map_or(Ok(()), nix::unistd::dup2_stdout)?;
        stderr.map_or(Ok(()), nix::unistd::dup2_stderr)?;
        descriptors::close_all_but_standard_on_exec()
    }

    fn set_umask(&mut self, umask: u32) -> io::Result<()> {
        rustix::process::umask(Mode::from_raw_mode(umask & 0o777));
        Ok(())
    }

    fn reset_scheduling(&mut self) -> io::Result<()> {
        process::set_default_scheduler()?;
        process::set_default_io_priority()?;
        process::set_default_memory_policy()?;
        let mut all = rustix::thread::CpuSet::new();
        (0..rustix::thread::CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
        rustix::thread::sched_setaffinity(None, &all)?;
        rustix::thread::set_current_timer_slack(Some(TIMER_SLACK))?;
        process::set_default_personality()
    }

    fn set_nice(&mut self, nice: i32) -> io::Result<()> {
        Ok(rustix::process::setpriority_process(None, nice)?)
    }

    fn set_oom_score(&mut self, score: i32) -> io::Result<()> {
        procfs::set_oom_score(score)
    }

    fn reset_limits(&mut self) -> io::Result<()> {
        limits::reset(&self.host)
    }

    fn set_nofile(&mut self, limit: u64) -> io::Result<()> {
        limits::set_nofile(limit)
    }

    fn check_digest(&mut self, executable: BorrowedFd<'_>, expected: &[u8; 32]) -> io::Result<()> {
        if procfs::sha256(executable)? == *expected {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::EKEYREJECTED))
        }
    }

    fn set_loginuid(&mut self, loginuid: u32) -> io::Result<()> {
        procfs::set_loginuid(loginuid)
    }

    fn change_directory(&mut self, path: &CStr) -> io::Result<()> {
        Ok(rustix::process::chdir(path)?)
    }

    fn change_directory_to(&mut self, directory: BorrowedFd<'_>) -> io::Result<()> {
        Ok(rustix::process::fchdir(directory)?)
    }

    fn limit_bounding_set(&mut self, to: u64) -> io::Result<()> {
        for capability in (0..=self.host.last_capability).map(|number| 1_u64 << number) {
            if to & capability == 0 {
                rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(capability))?;
            }
        }
        Ok(())
    }

    fn set_securebits(&mut self) -> io::Result<()> {
        let bits = CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED;
        Ok(rustix::thread::set_capabilities_secure_bits(bits)?)
    }

    fn keep_capabilities(&mut self) -> io::Result<()> {
        Ok(rustix::thread::set_keep_capabilities(true)?)
    }

    fn set_groups(&mut self, groups: &[u32]) -> io::Result<()> {
        let groups: Vec<Gid> = groups.iter().copied().map(gid).collect::<io::Result<_>>()?;
        Ok(rustix::thread::set_thread_groups(&groups)?)
    }

    fn set_gid(&mut self, number: u32) -> io::Result<()> {
        let gid = gid(number)?;
        Ok(rustix::thread::set_thread_res_gid(gid, gid, gid)?)
    }

    fn set_uid(&mut self, number: u32) -> io::Result<()> {
        let uid = Uid::from_raw(valid(number)?);
        Ok(rustix::thread::set_thread_res_uid(uid, uid, uid)?)
    }

    fn permitted_capabilities(&mut self) -> io::Result<u64> {
        Ok(rustix::thread::capabilities(None)?.permitted.bits())
    }

    fn set_capabilities(&mut self, permitted: u64, inheritable: u64) -> io::Result<()> {
        let permitted = CapabilitySet::from_bits_retain(permitted);
        let sets = CapabilitySets {
            effective: permitted,
            permitted,
            inheritable: CapabilitySet::from_bits_retain(inheritable),
        };
        Ok(rustix::thread::set_capabilities(None, sets)?)
    }

    fn set_ambient(&mut self, set: u64) -> io::Result<()> {
        rustix::thread::clear_ambient_capability_set()?;
        for capability in (0..u64::BITS).map(|number| 1_u64 << number).filter(|bit| set & bit != 0) {
            rustix::thread::configure_capability_in_ambient_set(CapabilitySet::from_bits_retain(capability), true)?;
        }
        Ok(())
    }

    fn set_no_new_privs(&mut self) -> io::Result<()> {
        Ok(rustix::thread::set_no_new_privs(true)?)
    }

    fn check_executable(&mut self, path: &CStr, executable: BorrowedFd<'_>) -> io::Result<()> {
        let (opened, now) = (rustix::fs::fstat(executable)?, rustix::fs::stat(path)?);
        if (opened.st_dev, opened.st_ino) == (now.st_dev, now.st_ino) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESTALE))
        }
    }

    fn announce(&mut self) -> io::Result<()> {
        super::report(self.status, &Report::Starting)
    }

    fn execute(&mut self, program: Program<'_>, argv: &[CString], environment: &[CString]) -> io::Error {
        let failed = match program {
            Program::Path(path) => nix::unistd::execve(path, argv, environment),
            Program::Descriptor(file) => nix::unistd::execveat(file, c"", argv, environment, AtFlags::AT_EMPTY_PATH),
        };
        match failed {
            Ok(never) => match never {},
            Err(errno) => errno.into(),
        }
    }
}

fn gid(number: u32) -> io::Result<Gid> {
    Ok(Gid::from_raw(valid(number)?))
}

/// For setresuid(2) and setresgid(2), -1 is "as it was".
fn valid(id: u32) -> io::Result<u32> {
    if id == u32::MAX {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(id)
}
