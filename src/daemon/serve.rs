//! The life of the service from READY=1 to its end.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::accept::Acceptor;
use super::listen::Listeners;
use super::notify;
use super::peer::OverflowIds;
use super::reload::{self, Files};
use super::service::{Phase, Service};
use crate::audit::{Event, Sink};
use crate::cli::rootwrapd::Arguments;
use crate::launch::LauncherProcess;

/// For the last records.
const LAST_RECORDS: Duration = Duration::from_secs(2);
/// For commands that are being ended, beyond drain_timeout.
const ENDING: Duration = Duration::from_secs(60);
/// systemd is told this often that a stop takes longer.
const STILL_STOPPING: Duration = Duration::from_secs(5);

/// All that was made before the runtime.
#[derive(Debug)]
pub struct Prepared {
    /// The command line.
    pub arguments: Arguments,
    /// Where callers connect.
    pub listeners: Listeners,
    /// For the journal.
    pub journal: OwnedFd,
    /// The unit's cgroup, where it is the service's to divide.
    pub cgroup: Option<PathBuf>,
    /// The launcher.
    pub launcher: LauncherProcess,
    /// Ids that belong to nobody in particular.
    pub overflow: OverflowIds,
}

/// Why the service ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Signal,
    Idle,
    LauncherGone,
}

impl Stop {
    fn reason(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Idle => "idle",
            Self::LauncherGone => "launcher-gone",
        }
    }
}

struct Life {
    service: Arc<Service>,
    files: Arc<Files>,
    acceptor: Acceptor,
    activated: bool,
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// Serves until something ends the service.
///
/// # Errors
/// What keeps it from starting.
pub async fn serve(prepared: Prepared) -> Result<ExitCode> {
    let mut life = begin(prepared).await?;
    life.acceptor.start();
    let stop = life.until_stop().await;
    life.acceptor.stop().await;
    life.drain(stop).await;
    let Life { service, acceptor, .. } = life;
    drop(acceptor);
    service.sink.post(&Event::Stopped { reason: stop.reason() });
    service.sink.drain(LAST_RECORDS).await;
    if let Some(service) = Arc::into_inner(service) {
        service.launcher.close().await;
    }
    Ok(if stop == Stop::LauncherGone {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

async fn begin(prepared: Prepared) -> Result<Life> {
    let files = Arc::new(Files::new(&prepared.arguments));
    let settings = files.settings();
    let sink = Sink::start(prepared.journal, &prepared.arguments.journal_socket, settings.denials_per_second).context("journal")?;
    let launcher = prepared
        .launcher
        .into_launcher(settings.parked_children, prepared.cgroup.as_deref())
        .context("launcher")?;
    let service = Arc::new(Service::new(sink, launcher, prepared.overflow, settings));
    let activated = prepared.listeners.activated;
    let life = Life {
        acceptor: Acceptor::new(Arc::clone(&service), Arc::clone(&files), prepared.listeners).context("listening socket")?,
        terminate: signal(SignalKind::terminate()).context("SIGTERM")?,
        interrupt: signal(SignalKind::interrupt()).context("SIGINT")?,
        hangup: signal(SignalKind::hangup()).context("SIGHUP")?,
        activated,
        files,
        service,
    };
    // A void policy is recorded, shown in the status, and answered with PolicyUnavailable: the service is up.
    let loaded = reload::load(&life.service, &life.files, None).await.ok();
    life.service.sink.post(&Event::Started {
        policy: loaded.as_ref().map(|loaded| loaded.active.hash.clone()),
        filters: loaded.as_ref().map_or(0, |loaded| loaded.active.policy.len()),
    });
    notify::ready(&reload::status(&life.service));
    Ok(life)
}

impl Life {
    async fn until_stop(&mut self) -> Stop {
        let mut watchdog = Ticks::every(notify::watchdog());
        let mut idle = Idle::new(self);
        loop {
            tokio::select! {
                biased;
                () = self.service.launcher.gone() => {
                    tracing::error!("rootwrap-launcher has ended: no command can be started, the service stops");
                    return Stop::LauncherGone;
                }
                _ = self.terminate.recv() => return Stop::Signal,
                _ = self.interrupt.recv() => return Stop::Signal,
                _ = self.hangup.recv() => {
                    let (service, files) = (Arc::clone(&self.service), Arc::clone(&self.files));
                    // Errors are recorded; nobody waits for them.
                    tokio::task::spawn_local(async move { reload::reload(&service, &files, None).await.is_ok() });
                }
                () = watchdog.next() => notify::alive(),
                () = sleep_until(idle.next_look) => {
                    if idle.is_over(self) && self.is_last_look_empty().await {
                        return Stop::Idle;
                    }
                }
            }
        }
    }

    /// Whether nobody has connected in the meantime either.
    async fn is_last_look_empty(&mut self) -> bool {
        self.acceptor.stop().await;
        let empty = !self.acceptor.accept_waiting();
        if !empty {
            self.acceptor.start();
        }
        empty
    }

    /// Lets what runs come to an end, then ends it.
    async fn drain(&mut self, stop: Stop) {
        let settings = self.service.settings();
        notify::stopping("Waiting for running commands");
        self.service.enter(Phase::Draining);
        let deadline = Instant::now() + settings.drain_timeout;
        if stop != Stop::Idle && !self.until_unused(deadline).await {
            notify::stopping("Ending running commands");
            self.service.enter(Phase::Ending);
            if !self.until_unused(Instant::now() + ENDING).await {
                tracing::error!("commands could not be ended");
            }
        }
        self.service.enter(Phase::Ending);
    }

    /// `false`: not within the time, or somebody asked again to stop.
    async fn until_unused(&mut self, deadline: Instant) -> bool {
        let mut watchdog = Ticks::every(notify::watchdog());
        let mut extend = Ticks::every(Some(STILL_STOPPING));
        let quota = self.service.quota.clone();
        loop {
            tokio::select! {
                biased;
                () = quota.until_unused() => return true,
                () = sleep_until(deadline) => return false,
                _ = self.terminate.recv() => return false,
                _ = self.interrupt.recv() => return false,
                () = watchdog.next() => notify::alive(),
                () = extend.next() => notify::extend_timeout(STILL_STOPPING * 3),
            }
        }
    }
}

/// How long nobody has wanted anything.
struct Idle {
    since: Instant,
    accepted: u64,
    next_look: Instant,
}

impl Idle {
    fn new(life: &Life) -> Self {
        let mut idle = Self {
            since: Instant::now(),
            accepted: 0,
            next_look: Instant::now(),
        };
        idle.schedule(life);
        idle
    }

    fn schedule(&mut self, life: &Life) {
        let timeout = life.service.settings().idle_timeout;
        let interval = (timeout / 4).clamp(Duration::from_millis(100), Duration::from_secs(30));
        self.next_look = Instant::now() + interval;
    }

    /// Only where the socket is the manager's: it starts the service again for the next caller.
    fn is_over(&mut self, life: &Life) -> bool {
        self.schedule(life);
        let accepted = life.acceptor.accepted();
        let quota = &life.service.quota;
        let slow = &life.service.slow;
        // A process whose thread waits in the kernel for somebody does not end.
        if accepted != self.accepted || quota.connections() > 0 || quota.commands() > 0 || !slow.is_idle() {
            self.accepted = accepted;
            self.since = Instant::now();
        }
        let timeout = life.service.settings().idle_timeout;
        life.activated && !timeout.is_zero() && self.since.elapsed() >= timeout
    }
}

/// A periodic event that may never come.
struct Ticks(Option<tokio::time::Interval>);

impl Ticks {
    fn every(period: Option<Duration>) -> Self {
        Self(period.map(|period| {
            let mut ticks = interval(period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        }))
    }

    async fn next(&mut self) {
        match &mut self.0 {
            Some(ticks) => drop(ticks.tick().await),
            None => std::future::pending().await,
        }
    }
}
