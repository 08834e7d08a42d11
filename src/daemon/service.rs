//! What all sessions share: the policy and settings in force, the way into the journal, the launcher, the books.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::jobs::Jobs;
use super::peer::{CallerIdentity, OverflowIds};
use super::quota::{Exceeded, Quota};
use super::slow::Slow;
use crate::audit::{Caller, Event, Sink};
use crate::config::Settings;
use crate::config::trusted::ExecutableCache;
use crate::launch::Launcher;
use crate::policy::Policy;
use crate::protocol::Error;

/// Where the service is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It answers.
    Serving,
    /// It accepts nothing new; what runs may end by itself.
    Draining,
    /// What still runs is ended.
    Ending,
}

/// A policy in force.
#[derive(Debug)]
pub struct ActivePolicy {
    /// It.
    pub policy: Policy,
    /// SHA-256 of its files, in hexadecimal.
    pub hash: String,
    /// Since when.
    pub since: Instant,
}

/// What may change while the service runs: swapped as a whole.
#[derive(Debug, Default)]
struct Current {
    policy: Option<Arc<ActivePolicy>>,
    settings: Arc<Settings>,
    /// Why the files are not in force: the errors of the last load, rendered.
    errors: Arc<Vec<String>>,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    /// Into the journal.
    pub sink: Arc<Sink>,
    /// Makes processes.
    pub launcher: Launcher,
    /// Who holds how much.
    pub quota: Quota,
    /// What runs.
    pub jobs: Jobs,
    /// Does what may take as long as a caller likes.
    pub slow: Slow,
    /// Verified programs.
    pub executables: ExecutableCache,
    /// Ids that belong to nobody in particular.
    pub overflow: OverflowIds,
    /// When it started.
    pub started: Instant,
    phase: watch::Sender<Phase>,
    current: RwLock<Current>,
    /// Descriptors that this process may have open.
    descriptors: u32,
    /// One load at a time.
    pub(super) loading: tokio::sync::Mutex<()>,
}

impl Service {
    /// A service without a policy: everything is refused until there is one.
    #[must_use]
    pub fn new(sink: Arc<Sink>, launcher: Launcher, overflow: OverflowIds, settings: Settings) -> Self {
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let service = Self {
            sink,
            launcher,
            quota: Quota::default(),
            jobs: Jobs::default(),
            slow: Slow::default(),
            executables: ExecutableCache::new(),
            overflow,
            started: Instant::now(),
            phase: watch::Sender::new(Phase::Serving),
            current: RwLock::default(),
            descriptors: descriptors.map_or(u32::MAX, |limit| u32::try_from(limit).unwrap_or(u32::MAX)),
            loading: tokio::sync::Mutex::new(()),
        };
        service.set_settings(settings);
        service
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> Option<Arc<ActivePolicy>> {
        self.read().policy.clone()
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.read().settings)
    }

    /// Why the files are not in force; empty: they are.
    #[must_use]
    pub fn policy_errors(&self) -> Arc<Vec<String>> {
        Arc::clone(&self.read().errors)
    }

    /// Puts a policy and settings in force.
    pub fn put_in_force(&self, policy: Arc<ActivePolicy>, settings: Settings) {
        self.set_settings(settings);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.policy = Some(policy);
        current.errors = Arc::default();
    }

    /// The files are at fault; what is in force stays.
    pub fn set_policy_errors(&self, errors: Vec<String>) {
        self.current.write().unwrap_or_else(PoisonError::into_inner).errors = Arc::new(errors);
    }

    fn set_settings(&self, settings: Settings) {
        self.sink.set_denials_per_second(settings.denials_per_second);
        let settings = within_descriptors(settings, self.descriptors);
        self.current.write().unwrap_or_else(PoisonError::into_inner).settings = Arc::new(settings);
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is in its life; tells of every change.
    #[must_use]
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Goes on to a later phase.
    pub fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Whether it accepts nothing new.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.phase.borrow() > Phase::Serving
    }

    /// Records and counts a refusal; what the caller is told comes from the one who refuses.
    pub fn denied(&self, caller: &CallerIdentity, event: &Event) {
        self.quota
            .count(caller.uid(), |counters| counters.denied = counters.denied.saturating_add(1));
        self.sink.post(event);
    }

    /// Records and counts a request that is none.
    pub fn bad_request(&self, caller: &CallerIdentity, reason: &'static str, detail: String) {
        let count = |counters: &mut crate::protocol::io_rootwrap::Counters| counters.bad_requests = counters.bad_requests.saturating_add(1);
        self.quota.count(caller.uid(), count);
        self.sink.post(&Event::BadRequest {
            caller: Arc::clone(caller.shown()),
            reason,
            detail,
        });
    }

    /// Records and counts a limit that was reached.
    #[must_use]
    pub fn busy(&self, caller: &Caller, exceeded: Exceeded) -> Error {
        self.busy_with(caller, exceeded.limit.as_str(), exceeded.value)
    }

    /// As [`busy`](Self::busy), for a limit that is not in the books.
    #[must_use]
    pub fn busy_with(&self, caller: &Caller, limit: &'static str, value: u32) -> Error {
        self.quota
            .count(caller.uid, |counters| counters.busy = counters.busy.saturating_add(1));
        self.sink.post(&Event::LimitHit {
            uid: Some(caller.uid),
            limit,
            value,
            count: 1,
        });
        Error::Busy { what: limit.into() }
    }

    /// How long a decision may wait for the journal.
    #[must_use]
    pub fn audit_timeout(&self) -> Duration {
        self.settings().audit_timeout
    }
}

/// A connection can hold about 20 descriptors (its own, its process's, those of the message that is answered, of one that waits and of
/// one that is received), a command about as many again: with more than fit, a few callers could leave none for the others.
fn within_descriptors(mut settings: Settings, descriptors: u32) -> Settings {
    settings.max_connections = settings.max_connections.min((descriptors / 20).max(2));
    settings.max_commands = settings.max_commands.min((descriptors / 40).max(2));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_few_descriptors_then_fewer_connections_are_served_than_the_settings_say() {
        let settings = within_descriptors(Settings::default(), 1024);
        assert_eq!((settings.max_connections, settings.max_commands), (51, 25));
        let settings = within_descriptors(Settings::default(), 1_000_000);
        assert_eq!(settings.max_connections, Settings::default().max_connections);
    }
}
