//! A running command: waited for, ended where its time is over, its caller is gone or the service stops, and recorded.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::capture::{Capture, Captured};
use super::jobs::Listed;
use super::run::{Captures, Record, Slots};
use super::service::{Phase, Service};
use crate::audit::Ended;
use crate::launch::{Exit, Running};
use crate::policy::spec::OnDisconnect;
use crate::protocol::Error;
use crate::protocol::run::{RunReply, RunState};

/// A running command and all that belongs to it.
#[derive(Debug)]
pub struct Supervised {
    /// The command.
    pub running: Running,
    /// Its output.
    pub captures: Captures,
    /// For its records.
    pub record: Record,
    /// Its place among those that can be signalled.
    pub listed: Listed,
    /// Its place in the quota.
    pub slots: Slots,
    /// It is ended after this time.
    pub timeout: Option<Duration>,
    /// Between SIGTERM and SIGKILL.
    pub kill_after: Duration,
    /// What happens when its caller is gone.
    pub on_disconnect: OnDisconnect,
}

/// How it came to an end.
enum End {
    Exited(Exit, Option<&'static str>),
    /// It runs on without the service.
    Left,
}

impl Supervised {
    /// The first reply of a call with `more`.
    #[must_use]
    pub fn started_reply(&self) -> RunReply {
        RunReply {
            pid: Some(self.running.pid()),
            filter: Some(self.record.grant.filter.clone()),
            ..RunReply::new(RunState::Started, self.record.command.request_id.clone())
        }
    }

    /// Waits for the end, records it, replies, and removes what the command left behind.
    pub async fn supervise(
        mut self: Box<Self>,
        service: &Service,
        gone: &mut oneshot::Receiver<()>,
        done: oneshot::Sender<Result<RunReply, Error>>,
    ) {
        let end = self.wait(service, gone).await;
        let pid = self.running.pid();
        let Self {
            running,
            captures,
            record,
            listed,
            slots,
            timeout,
            ..
        } = *self;
        drop(listed);
        // The caller may be gone: nobody takes the reply then.
        match end {
            End::Left => {
                tracing::info!(
                    "request {} runs on, its end is not recorded: the service stops",
                    record.command.request_id
                );
                let _ = done.send(Err(Error::OutcomeUnknown {
                    message: "the service stops; the command runs on".into(),
                }));
            }
            End::Exited(exit, reason) => {
                let ended = ended(pid, exit, reason);
                // Collecting output may take time, and the record does not wait for it. Otherwise the caller does not wait for the record.
                let collects = captures.stdout.is_some() || captures.stderr.is_some();
                if collects {
                    record.exited(service, ended);
                }
                let _ = done.send(reply(&record, pid, exit, reason, timeout, captures).await);
                if !collects {
                    tokio::task::yield_now().await;
                    record.exited(service, ended);
                }
                running.clean_up().await;
            }
        }
        drop(slots);
    }

    async fn wait(&mut self, service: &Service, gone: &mut oneshot::Receiver<()>) -> End {
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut phase = service.phase();
        let mut is_gone = false;
        let detaches = self.on_disconnect == OnDisconnect::Detach;
        loop {
            // A detached command whose caller is gone belongs to the caller's unit: nothing waits for it at a stop.
            let stop_at = if detaches && is_gone { Phase::Draining } else { Phase::Ending };
            let reason = tokio::select! {
                biased;
                exit = self.running.wait() => return End::Exited(exit, None),
                () = until(deadline) => "timed-out",
                _ = &mut *gone, if !is_gone => {
                    is_gone = true;
                    if detaches {
                        continue;
                    }
                    "caller-gone"
                }
                _ = phase.wait_for(|phase| *phase >= stop_at) => {
                    if detaches {
                        return End::Left;
                    }
                    "stopping"
                }
            };
            return End::Exited(self.running.end(self.kill_after).await, Some(reason));
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn ended(pid: u32, exit: Exit, reason: Option<&'static str>) -> Ended {
    Ended {
        pid,
        code: exit.code,
        signal: exit.signal,
        duration: exit.duration,
        cpu: exit.cpu,
        max_rss: exit.max_rss,
        reason,
    }
}

async fn reply(
    record: &Record,
    pid: u32,
    exit: Exit,
    reason: Option<&'static str>,
    timeout: Option<Duration>,
    captures: Captures,
) -> Result<RunReply, Error> {
    let stdout = finish(captures.stdout).await;
    let stderr = finish(captures.stderr).await;
    if let (Some("timed-out"), Some(timeout)) = (reason, timeout) {
        return Err(Error::TimedOut {
            timeout_usec: microseconds(timeout),
        });
    }
    if exit.code.is_none() && exit.signal.is_none() {
        return Err(Error::OutcomeUnknown {
            message: "the command has ended, but the kernel does not say how".into(),
        });
    }
    Ok(RunReply {
        pid: Some(pid),
        filter: Some(record.grant.filter.clone()),
        exit_code: exit.code,
        exit_signal: exit.signal,
        stdout_truncated: stdout.as_ref().map(|captured| captured.truncated),
        stderr_truncated: stderr.as_ref().map(|captured| captured.truncated),
        stdout: stdout.map(|captured| captured.bytes),
        stderr: stderr.map(|captured| captured.bytes),
        duration_usec: Some(microseconds(exit.duration)),
        cpu_usec: Some(microseconds(exit.cpu)),
        max_rss_kib: Some(exit.max_rss),
        ..RunReply::new(RunState::Exited, record.command.request_id.clone())
    })
}

async fn finish(capture: Option<Capture>) -> Option<Captured> {
    match capture {
        Some(capture) => Some(capture.finish().await),
        None => None,
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
