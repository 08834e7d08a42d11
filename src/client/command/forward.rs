//! The signals that are sent on.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Those that reach the command. The others end or stop rootwrap itself, whereupon the service ends the command.
const FORWARDED: &[Signal] = &[
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCONT,
    Signal::SIGTSTP,
];

/// Signals that wait to be read instead of ending this process.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks them all, but for those that the process was started with ignored (nohup, background jobs of a plain shell).
    ///
    /// # Errors
    /// EMFILE and others of signalfd(2).
    pub fn take() -> Result<Self, Errno> {
        let mut set = SigSet::empty();
        for signal in FORWARDED {
            if !crate::sys::signal::is_ignored(*signal as i32).unwrap_or(false) {
                set.add(*signal);
            }
        }
        // Before the descriptor is made, so that none is lost in between.
        set.thread_block()?;
        SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map(Self)
    }

    /// The next one, if any is waiting.
    pub fn next(&self) -> Option<Signal> {
        let info = self.0.read_signal().ok()??;
        Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What the command gets for it. It is in a process group without a controlling terminal, where SIGTSTP would do nothing.
pub fn sent_on(signal: Signal) -> Signal {
    match signal {
        Signal::SIGTSTP => Signal::SIGSTOP,
        other => other,
    }
}

/// Whether it asks to end: then it must have an effect even where no command can take it.
pub fn ends(signal: Signal) -> bool {
    !matches!(signal, Signal::SIGCONT | Signal::SIGTSTP | Signal::SIGSTOP)
}
