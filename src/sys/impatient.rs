//! Waits inside close(2) cut short: a signal ends those that signals can end, such as SO_LINGER's.

use std::io;
use std::mem::MaybeUninit;

/// How long one wait may take.
const PATIENCE_USEC: libc::suseconds_t = 5_000;

/// Does something in the main thread; while it lasts SIGALRM comes again and again, so that no interruptible wait in it takes
/// longer than some milliseconds. Other threads are not disturbed where the main thread takes the signal. Not to be nested.
pub fn impatiently<T>(act: impl FnOnce() -> T) -> T {
    // Where there is no timer the wait is as long as it is.
    let armed = catch_alarm().and_then(|()| set_timer(PATIENCE_USEC)).is_ok();
    let done = act();
    if armed {
        // It was set a moment ago, so it can be unset.
        let _ = set_timer(0);
    }
    done
}

extern "C" fn nothing(_: libc::c_int) {}

/// The handler stays: a signal that is late finds it.
fn catch_alarm() -> io::Result<()> {
    // SAFETY: all zero is a valid value of this plain C structure: no flags, an empty mask; without SA_RESTART waits are ended.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the structure outlives the call; the handler does nothing, which is safe whatever it interrupts.
    check(unsafe { libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) })
}

fn set_timer(usec: libc::suseconds_t) -> io::Result<()> {
    let time = libc::timeval { tv_sec: 0, tv_usec: usec };
    let timer = libc::itimerval {
        it_interval: time,
        it_value: time,
    };
    // SAFETY: the structure outlives the call; the old value is not wanted.
    check(unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) })
}

fn check(result: impl Into<i64>) -> io::Result<()> {
    if result.into() == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
