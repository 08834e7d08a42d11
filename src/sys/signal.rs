//! Signal dispositions of signal(7) that nix only offers as unsafe calls.

use std::io;
use std::mem::MaybeUninit;

fn action_of(signal: libc::c_int) -> io::Result<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action changes nothing; the old one is written to memory that is ours.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded and filled it in.
    Ok(unsafe { action.assume_init() })
}

/// Whether this process ignores the signal, as nohup(1) and shells without job control arrange it.
///
/// # Errors
/// EINVAL for a number that is no signal.
pub fn is_ignored(signal: i32) -> io::Result<bool> {
    Ok(action_of(signal)?.sa_sigaction == libc::SIG_IGN)
}

/// Ends this process by this signal's default action, without a core dump: to whoever waits, it died as its command did.
///
/// # Errors
/// Returns only when the signal does not end processes, or its number is none.
pub fn die_of(signal: i32) -> io::Error {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // A limit of 0 does not stop a core_pattern that is a pipe; not being dumpable does. Neither can fail in a way that matters more than the signal.
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // SAFETY: an all-zero sigaction is SIG_DFL with an empty mask; no handler is installed, so none can run in a bad state.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        // SIGKILL has no disposition to set and needs none: not an error.
        libc::sigaction(signal, &raw const default, std::ptr::null_mut());
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        if libc::sigaddset(&raw mut set, signal) != 0 {
            return io::Error::last_os_error();
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        if libc::raise(signal) != 0 {
            return io::Error::last_os_error();
        }
    }
    io::ErrorKind::Unsupported.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_rusts_start_then_sigpipe_is_ignored_and_sigterm_is_not() {
        assert!(is_ignored(libc::SIGPIPE).unwrap());
        assert!(!is_ignored(libc::SIGTERM).unwrap());
        assert!(is_ignored(1000).is_err());
    }
}
