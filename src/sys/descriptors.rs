//! The descriptor table of a freshly forked child: emptied, and closed on exec. See `close_range(2)`.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// First descriptor that is none of standard input, output and error.
const FIRST: RawFd = 3;

/// For a forked child with a single thread: closes every descriptor but `kept`, which gets a number above 2, and runs `main`, which
/// cannot come back. Where closing fails, the process ends with status 126. A panic in `main` ends it, too.
pub fn run_with_only<A: Copy + 'static>(kept: OwnedFd, argument: A, main: fn(OwnedFd, A) -> Infallible) -> ! {
    let _guard = AbortOnUnwind;
    let Ok(kept) = rustix::io::fcntl_dupfd_cloexec(&kept, FIRST).inspect(|_| std::mem::forget(kept)) else {
        std::process::exit(126)
    };
    let number = kept.as_raw_fd();
    // Other owners of descriptors (in frames of the parent, copied by fork) are never reached again: this function does not return
    // or unwind, there is no other thread, and `main` is a plain function that is handed `kept` and plain data only.
    let closed = close_range(0, number - 1, 0).and_then(|()| close_range(number + 1, RawFd::MAX, 0));
    if closed.is_err() {
        std::process::exit(126);
    }
    match main(kept, argument) {}
}

/// Marks every descriptor but 0, 1 and 2 close-on-exec.
///
/// # Errors
/// Those of close_range(2).
pub fn close_all_but_standard_on_exec() -> io::Result<()> {
    close_range(FIRST, RawFd::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range(first: RawFd, last: RawFd, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: numbers only. With CLOSE_RANGE_CLOEXEC nothing is closed; without it, `run_with_only` argues why nobody uses what was
    // closed.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Unwinding would run the parent's code a second time.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Takes a descriptor that this program was started with, close-on-exec from now on. To be called once for each number, before anything
/// of its own could have got that number.
///
/// # Errors
/// EBADF where it is not open, EINVAL for standard input, output and error.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number <= libc::STDERR_FILENO {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a number and a flag; fcntl(2) answers EBADF where it is not open.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, as fcntl has said, and was so at start: the caller promises that nothing of this program owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
