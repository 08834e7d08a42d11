//! Attributes of the calling process that no safe crate sets: scheduling, I/O priority, memory policy, execution domain, keyring,
//! signals; and signals to process groups.
//!
//! All but [`kill_group`] concern the calling thread, which must be the only one.

use std::io;

/// The kernel's _NSIG: signals are numbered from 1 to this.
pub const MAX_SIGNAL: i32 = 64;

/// SCHED_OTHER without SCHED_RESET_ON_FORK, see sched_setscheduler(2).
///
/// # Errors
/// EPERM.
pub fn set_default_scheduler() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure lives through the call; 0 is the calling thread.
    check(i64::from(unsafe {
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters)
    }))
}

/// I/O priority follows the nice value again, see ioprio_set(2). A kernel without I/O priorities has nothing to set.
///
/// # Errors
/// Those of ioprio_set(2).
pub fn set_default_io_priority() -> io::Result<()> {
    const IOPRIO_WHO_PROCESS: i32 = 1;
    const IOPRIO_CLASS_NONE: i32 = 0;
    // SAFETY: numbers only.
    unless_missing(unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_CLASS_NONE) })
}

/// The system's memory policy, see set_mempolicy(2). A kernel without NUMA has nothing to set.
///
/// # Errors
/// Those of set_mempolicy(2).
pub fn set_default_memory_policy() -> io::Result<()> {
    const MPOL_DEFAULT: i32 = 0;
    let no_nodes = std::ptr::null::<libc::c_ulong>();
    // SAFETY: MPOL_DEFAULT takes a null node mask of length 0.
    unless_missing(unsafe { libc::syscall(libc::SYS_set_mempolicy, MPOL_DEFAULT, no_nodes, 0_usize) })
}

/// Execution domain PER_LINUX without flags (address randomisation on), see personality(2).
///
/// # Errors
/// Those of personality(2).
pub fn set_default_personality() -> io::Result<()> {
    // SAFETY: numbers only.
    check(i64::from(unsafe { libc::personality(0) }))
}

/// Joins a new, anonymous session keyring, see keyctl_join_session_keyring(3). A kernel without keyrings has none to leave.
///
/// # Errors
/// Those of keyctl(2).
pub fn join_new_session_keyring() -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: i32 = 1;
    let anonymous = std::ptr::null::<libc::c_char>();
    // SAFETY: this operation takes a null name: a new anonymous keyring.
    unless_missing(unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, anonymous) })
}

/// Every signal's disposition is the default, and none is blocked, see signal(7).
///
/// # Errors
/// Those of sigaction(2) and sigprocmask(2).
pub fn reset_signals() -> io::Result<()> {
    // The kernel's own call: a parent may have left the two signals ignored that glibc keeps for itself and does not let us reset.
    // As the kernel's `struct sigaction` all zero is SIG_DFL, without flags, restorer and mask, on every architecture.
    let default = [0_u64; 4];
    for signal in (1..=MAX_SIGNAL).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal)) {
        let no_old = std::ptr::null_mut::<u64>();
        // SAFETY: `default` is at least as large as the kernel's structure and outlives the call; no handler is installed, and glibc
        // sends itself none of its signals in a process with a single thread.
        check(unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), no_old, MAX_SIGNAL / 8) })?;
    }
    nix::sys::signal::SigSet::empty().thread_set_mask()?;
    Ok(())
}

/// Sends `signal` (1 to 64) to the process group `group`. Groups 0 and 1 are refused: for kill(2) they are "my own" and "everybody".
///
/// # Errors
/// EINVAL for a number that is no group or no signal, ESRCH, EPERM.
pub fn kill_group(group: u32, signal: i32) -> io::Result<()> {
    let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
    let group = i32::try_from(group).ok().filter(|group| *group > 1).ok_or_else(invalid)?;
    if !(1..=MAX_SIGNAL).contains(&signal) {
        return Err(invalid());
    }
    // SAFETY: numbers only, and the first is below -1.
    check(i64::from(unsafe { libc::kill(-group, signal) }))
}

fn check(result: i64) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn unless_missing(result: i64) -> io::Result<()> {
    match check(result) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Numbers above the largest pid that the kernel gives out (2^22): no process is there, whatever is let through.
        #[test]
        fn no_group_but_a_real_one_reaches_kill(group in prop_oneof![Just(0_u32), Just(1), (1_u32 << 31)..=u32::MAX, (1_u32 << 23)..(1 << 31)], signal in any::<i32>()) {
            let error = kill_group(group, signal).unwrap_err().raw_os_error();
            let plausible = group > 1 && group < 1 << 31 && (1..=64).contains(&signal);
            prop_assert_eq!(error, Some(if plausible { libc::ESRCH } else { libc::EINVAL }));
        }
    }
}
