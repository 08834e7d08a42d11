//! What the service manager is told: sd_notify(3). Without a manager all of this does nothing.

use std::time::Duration;

use libsystemd::daemon::{NotifyState, notify, watchdog_enabled};

/// Tells the manager; that it cannot be reached changes nothing for the callers.
fn tell(states: &[NotifyState]) {
    if let Err(error) = notify(false, states) {
        tracing::warn!("cannot tell systemd: {error}");
    }
}

/// READY=1 with a STATUS.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(line(status))]);
}

/// RELOADING=1; [`ready`] ends it. MONOTONIC_USEC is for Type=notify-reload.
pub fn reloading() {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let usec = now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1000);
    tell(&[NotifyState::Reloading, NotifyState::Other(format!("MONOTONIC_USEC={usec}"))]);
}

/// STOPPING=1 with a STATUS.
pub fn stopping(status: &str) {
    tell(&[NotifyState::Stopping, NotifyState::Status(line(status))]);
}

/// The stop takes at least this long from now.
pub fn extend_timeout(time: Duration) {
    tell(&[NotifyState::Other(format!("EXTEND_TIMEOUT_USEC={}", time.as_micros()))]);
}

/// The event loop turns.
pub fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How often [`alive`] must be called: half the time that the manager waits. `None`: it does not watch.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    watchdog_enabled(false)
        .map(|timeout| timeout / 2)
        .filter(|interval| !interval.is_zero())
}

/// A newline would begin another assignment.
fn line(text: &str) -> String {
    crate::audit::text::printable(text.as_bytes(), 500)
}
