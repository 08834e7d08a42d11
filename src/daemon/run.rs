//! `Run`: from a call to a running command. Each call is a task of its own, which outlives the connection where it must: the end of a
//! command is always recorded. Nothing is ever run twice.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::capture::Capture;
use super::decide::{self, Case, Decision};
use super::descriptors;
use super::executables::{self, Unusable};
use super::facts::Answers;
use super::jobs::ConnectionId;
use super::not_started::NotStarted;
use super::peer::CallerIdentity;
use super::quota::{FilterSlot, Slot};
use super::service::{ActivePolicy, Service};
use super::supervise::Supervised;
use super::terminal::take_term;
use crate::audit::{Command, Ended, Event, Grant};
use crate::config::settings::Audit;
use crate::config::trusted::VerifiedExecutable;
use crate::launch::{Job, JobContext, JobDescriptors, ProbeAnswer, ProbeJob, Target};
use crate::policy::facts::Question;
use crate::policy::spec::Placement;
use crate::policy::{Action, Denial, Permit};
use crate::protocol::Error;
use crate::protocol::run::{Run, RunDescriptors, RunReply, RunState};
use crate::sys::memfd;
use crate::sys::passed::PassedFd;

/// From a job that is handed over to exec, at most.
const LAUNCH_DEADLINE: Duration = Duration::from_secs(10);
/// For the digest of an executable.
const DIGEST_DEADLINE: Duration = Duration::from_secs(30);

/// A call being carried out. Dropping it tells the task that the caller is gone.
#[derive(Debug)]
pub struct Ongoing {
    /// The reply when the command has been executed.
    pub started: oneshot::Receiver<RunReply>,
    /// The last reply.
    pub done: oneshot::Receiver<Result<RunReply, Error>>,
    _here: oneshot::Sender<()>,
}

/// Begins a call.
#[must_use]
pub fn begin(service: Arc<Service>, caller: Arc<CallerIdentity>, connection: ConnectionId, run: Run, fds: RunDescriptors) -> Ongoing {
    let (started_sender, started) = oneshot::channel();
    let (done_sender, done) = oneshot::channel();
    let (here, gone) = oneshot::channel();
    let task = Task {
        id: service.jobs.new_id(),
        service,
        caller,
        connection,
        gone,
    };
    tokio::task::spawn_local(task.carry_out(run, fds, started_sender, done_sender));
    Ongoing {
        started,
        done,
        _here: here,
    }
}

struct Task {
    service: Arc<Service>,
    caller: Arc<CallerIdentity>,
    connection: ConnectionId,
    id: String,
    /// Resolves when the caller is gone.
    gone: oneshot::Receiver<()>,
}

/// What a permit became.
struct Permitted {
    permit: Box<Permit>,
    answers: Answers,
    record: Record,
    slots: Slots,
}

/// Who, what and how, for all records of one call.
#[derive(Clone, Debug)]
pub struct Record {
    /// Who.
    pub caller: Arc<crate::audit::Caller>,
    /// What.
    pub command: Arc<Command>,
    /// How.
    pub grant: Arc<Grant>,
}

/// Held while the command runs.
#[derive(Debug)]
pub struct Slots {
    _command: Slot,
    /// Of the filter and of the inner command's, where they count.
    _filters: Vec<FilterSlot>,
}

impl Task {
    async fn carry_out(
        mut self,
        run: Run,
        fds: RunDescriptors,
        started: oneshot::Sender<RunReply>,
        done: oneshot::Sender<Result<RunReply, Error>>,
    ) {
        // Nobody may be left to take the replies; the records are made all the same.
        match self.start(run, fds).await {
            Err(error) => drop(done.send(Err(error))),
            Ok(Begun::Signalled(reply)) => drop(done.send(Ok(reply))),
            Ok(Begun::Running(supervised)) => {
                let _ = started.send(supervised.started_reply());
                supervised.supervise(&self.service, &mut self.gone, done).await;
            }
        }
    }

    async fn start(&mut self, mut run: Run, mut fds: RunDescriptors) -> Result<Begun, Error> {
        if self.service.is_stopping() {
            return Err(Error::Busy { what: "stopping".into() });
        }
        descriptors::check(&fds, &self.service.slow, self.caller.uid())
            .await
            .map_err(|why| self.bad_descriptors(why))?;
        let term = take_term(&mut run, &fds);
        let Some(active) = self.service.policy() else {
            return Err(self.without_policy(&run));
        };
        let permitted = self.decide(&active, &run, &fds).await?;
        if let Action::Signal { signal, question, .. } = permitted.permit.action() {
            return self.signal(&permitted, *signal, question).await.map(Begun::Signalled);
        }
        let (executable, inner) = self.executables(&permitted).await?;
        let record = permitted.record.with_executable(&executable);
        self.record_allowed(&record).await?;
        let mut captures = Captures::default();
        let launched = async {
            let streams = self.streams(&run, &mut fds, &mut captures).map_err(NotStarted::descriptors)?;
            let context = self.context(term);
            let job = Job::new(&permitted.permit, executable, inner, context, streams).map_err(NotStarted::job)?;
            let target = self.target(&permitted.permit)?;
            // The caller may have gone while its record waited for the journal.
            if matches!(self.gone.try_recv(), Err(oneshot::error::TryRecvError::Closed)) {
                return Err(NotStarted::new("caller-gone", libc::ESRCH));
            }
            self.service
                .launcher
                .launch(job, target, LAUNCH_DEADLINE)
                .await
                .map_err(NotStarted::launch)
        };
        let running = launched.await.map_err(|failure| self.launch_failed(&record, failure))?;
        let listed = self
            .service
            .jobs
            .list(&self.id, Arc::clone(&self.caller), self.connection, running.signaller());
        self.service
            .quota
            .count(self.caller.uid(), |counters| counters.allowed = counters.allowed.saturating_add(1));
        let execution = permitted.permit.execution();
        Ok(Begun::Running(Box::new(Supervised {
            timeout: shorter(execution.timeout, run.timeout_usec),
            kill_after: execution.kill_after,
            on_disconnect: execution.on_disconnect,
            running,
            captures,
            record,
            listed,
            slots: permitted.slots,
        })))
    }

    async fn decide(&self, active: &ActivePolicy, run: &Run, fds: &RunDescriptors) -> Result<Permitted, Error> {
        let case = Case {
            caller: &self.caller,
            wanted: &run.wanted,
            has_cwd: fds.cwd.is_some(),
            has_stdin: fds.stdin.is_some() || run.stdin.is_some(),
        };
        let mut slot = None;
        let (permit, answers) = match case.decide(&self.service, active, &mut slot).await? {
            Decision::Allow(permit, answers) => (permit, answers),
            Decision::Deny(denial) => return Err(self.denied(active, run, denial)),
        };
        let command = match slot {
            Some(slot) => slot,
            None => decide::command_slot(&self.service, &self.caller)?,
        };
        let filters = std::iter::once(permit.filter()).chain(permit.inner());
        let filters = filters.filter_map(|filter| Some((filter, filter.max_concurrent?)));
        let filters: Result<Vec<FilterSlot>, Error> = filters
            .map(|(filter, most)| {
                let slot = self.service.quota.filter(&filter.name, most);
                slot.ok_or_else(|| self.service.busy_with(self.caller.shown(), "filter", most))
            })
            .collect();
        Ok(Permitted {
            record: self.record(active, run, &permit),
            slots: Slots {
                _command: command,
                _filters: filters?,
            },
            permit,
            answers,
        })
    }

    fn command(&self, policy: Option<&ActivePolicy>, run: &Run, masked_argv: Vec<Vec<u8>>) -> Arc<Command> {
        Arc::new(Command {
            request_id: self.id.clone(),
            masked_argv,
            policy: policy.map(|active| active.hash.clone()),
            profile: run.wanted.profile.clone(),
        })
    }

    fn record(&self, active: &ActivePolicy, run: &Run, permit: &Permit) -> Record {
        let execution = permit.execution();
        Record {
            caller: Arc::clone(self.caller.shown()),
            command: self.command(Some(active), run, permit.masked_argv().to_vec()),
            grant: Arc::new(Grant {
                filter: permit.filter().name.clone(),
                filter_source: permit.filter_source().to_owned(),
                inner_filter: permit.inner().map(|inner| inner.name.clone()),
                executable: None,
                run_as_uid: execution.run_as.ids.as_ref().map(|ids| ids.uid),
                capabilities: execution.capabilities,
            }),
        }
    }

    fn denied(&self, active: &ActivePolicy, run: &Run, denial: Denial) -> Error {
        let command = self.command(Some(active), run, denial.masked_argv);
        self.refuse(command, denial.reason.as_str(), denial.detail);
        Error::NotPermitted {
            reason: denial.reason.as_str().into(),
            message: denial.message,
        }
    }

    /// Without a policy nobody knows which arguments are secrets: only the command's name is recorded.
    fn without_policy(&self, run: &Run) -> Error {
        let masked = run.wanted.argv.iter().enumerate();
        let masked = masked.map(|(index, argument)| if index == 0 { argument.clone() } else { b"***".to_vec() });
        let command = self.command(None, run, masked.collect());
        self.refuse(command, "policy-unavailable", "the service has no valid policy".into());
        Error::PolicyUnavailable {}
    }

    fn refuse(&self, command: Arc<Command>, reason: &'static str, detail: String) {
        let event = Event::Denied {
            caller: Arc::clone(self.caller.shown()),
            command: Some(command),
            reason,
            detail,
        };
        self.service.denied(&self.caller, &event);
    }

    fn bad_descriptors(&self, why: String) -> Error {
        self.service.bad_request(&self.caller, "descriptors", why.clone());
        Error::bad_request(why)
    }

    async fn executables(&self, permitted: &Permitted) -> Result<(Arc<VerifiedExecutable>, Option<Arc<VerifiedExecutable>>), Error> {
        let (candidates, inner) = match permitted.permit.action() {
            Action::Execute { candidates, inner } => (candidates, inner.as_ref()),
            Action::Signal { .. } => return Err(Error::bad_request("nothing is executed for this")),
        };
        let find = |candidates| executables::first(&self.service.executables, candidates);
        let unusable = |why| self.unusable(permitted, why);
        let executable = find(candidates).map_err(unusable)?;
        let inner = inner.map(|(_, candidates)| find(candidates).map_err(unusable)).transpose()?;
        let pinned = [
            (Some(&executable), permitted.permit.filter().execution.sha256),
            (inner.as_ref(), permitted.permit.inner().and_then(|filter| filter.execution.sha256)),
        ];
        for (executable, digest) in pinned {
            if let (Some(executable), Some(digest)) = (executable, digest) {
                self.check_digest(permitted, executable, digest).await?;
            }
        }
        Ok((executable, inner))
    }

    fn unusable(&self, permitted: &Permitted, why: Unusable) -> Error {
        let command = Arc::clone(&permitted.record.command);
        match why {
            Unusable::Missing => {
                self.refuse(command, "no-such-executable", "none of the filter's executables exists".into());
                let name = permitted
                    .permit
                    .masked_argv()
                    .first()
                    .map(|name| String::from_utf8_lossy(name).into_owned());
                Error::NoSuchExecutable {
                    command: name.unwrap_or_default(),
                }
            }
            Unusable::Untrusted(detail) => {
                self.refuse(command, "untrusted-executable", detail.clone());
                Error::NotPermitted {
                    reason: "untrusted-executable".into(),
                    message: detail,
                }
            }
        }
    }

    async fn check_digest(&self, permitted: &Permitted, executable: &VerifiedExecutable, expected: [u8; 32]) -> Result<(), Error> {
        let probe = executable
            .descriptor()
            .try_clone()
            .map(|executable| ProbeJob::Digest { executable });
        let answer = match probe {
            Ok(probe) => self.service.launcher.probe(probe, DIGEST_DEADLINE).await.ok(),
            Err(_) => None,
        };
        if answer == Some(ProbeAnswer::Digest(expected)) {
            return Ok(());
        }
        let message = format!("{} does not have the SHA-256 that the filter asks for", executable.path().display());
        self.refuse(Arc::clone(&permitted.record.command), "digest-mismatch", message.clone());
        Err(Error::NotPermitted {
            reason: "digest-mismatch".into(),
            message,
        })
    }

    /// The record is with the journal before anything happens, or nothing happens.
    async fn record_allowed(&self, record: &Record) -> Result<(), Error> {
        let event = Event::Allowed {
            caller: Arc::clone(&record.caller),
            command: Arc::clone(&record.command),
            grant: Arc::clone(&record.grant),
        };
        let settings = self.service.settings();
        if settings.audit == Audit::BestEffort {
            self.service.sink.post(&event);
            return Ok(());
        }
        self.service
            .sink
            .record(&event, settings.audit_timeout)
            .await
            .map_err(|unavailable| {
                self.refuse(Arc::clone(&record.command), "audit-unavailable", unavailable.to_string());
                Error::AuditUnavailable {}
            })
    }

    fn streams(&self, run: &Run, fds: &mut RunDescriptors, captures: &mut Captures) -> std::io::Result<JobDescriptors> {
        let limit = self.service.settings().capture_size;
        let capture = |given: Option<PassedFd>, captured: &mut Option<Capture>| match given {
            Some(descriptor) => Ok(Some(descriptor)),
            None => {
                let (write, capture) = Capture::start(limit, self.service.quota.bytes(self.caller.uid()))?;
                *captured = Some(capture);
                std::io::Result::Ok(Some(write.into()))
            }
        };
        Ok(JobDescriptors {
            stdout: capture(fds.stdout.take(), &mut captures.stdout)?,
            stderr: capture(fds.stderr.take(), &mut captures.stderr)?,
            stdin: match (fds.stdin.take(), &run.stdin) {
                (None, Some(data)) => Some(memfd::sealed("rootwrap-stdin", data)?.into()),
                (descriptor, _) => descriptor,
            },
            cwd: fds.cwd.take(),
        })
    }

    fn context(&self, term: Option<Vec<u8>>) -> JobContext {
        JobContext {
            caller_uid: self.caller.uid(),
            request_id: self.id.clone(),
            loginuid: self.caller.shown().loginuid,
            term,
        }
    }

    /// Never another cgroup than the filter says.
    fn target(&self, permit: &Permit) -> Result<Target, NotStarted> {
        match permit.execution().placement {
            Placement::Own => Ok(Target::Own),
            Placement::Caller => match self.caller.cgroup() {
                Ok(cgroup) => Ok(Target::Cgroup(cgroup)),
                Err(error) => Err(NotStarted::new("cgroup", error.raw_os_error().unwrap_or(libc::EIO))),
            },
        }
    }

    fn launch_failed(&self, record: &Record, failure: NotStarted) -> Error {
        let count =
            |counters: &mut crate::protocol::io_rootwrap::Counters| counters.launch_failed = counters.launch_failed.saturating_add(1);
        self.service.quota.count(self.caller.uid(), count);
        self.service.sink.post(&Event::LaunchFailed {
            caller: Arc::clone(&record.caller),
            command: Arc::clone(&record.command),
            grant: Arc::clone(&record.grant),
            reason: failure.step,
            errno: failure.errno,
        });
        failure.error
    }

    /// A filter whose command is a signal: nothing is executed, and the process is the one that was looked at.
    async fn signal(&self, permitted: &Permitted, signal: i32, question: &Question) -> Result<RunReply, Error> {
        self.record_allowed(&permitted.record).await?;
        let sent = match permitted.answers.process(question) {
            Some(pidfd) => send_signal(pidfd, signal),
            None => Err(libc::ESRCH),
        };
        sent.map_err(|errno| self.launch_failed(&permitted.record, NotStarted::new("signal", errno)))?;
        self.service
            .quota
            .count(self.caller.uid(), |counters| counters.allowed = counters.allowed.saturating_add(1));
        let target = if let Question::PidOf { pid, .. } = question { *pid } else { 0 };
        permitted.record.exited(
            &self.service,
            Ended {
                pid: target,
                code: Some(0),
                signal: None,
                duration: Duration::ZERO,
                cpu: Duration::ZERO,
                max_rss: 0,
                reason: Some("signalled"),
            },
        );
        Ok(RunReply {
            pid: Some(0),
            filter: Some(permitted.record.grant.filter.clone()),
            exit_code: Some(0),
            ..RunReply::new(RunState::Exited, self.id.clone())
        })
    }
}

enum Begun {
    Signalled(RunReply),
    Running(Box<Supervised>),
}

/// Output that is captured.
#[derive(Debug, Default)]
pub struct Captures {
    /// Where the caller gave no descriptor for standard output.
    pub stdout: Option<Capture>,
    /// The same for standard error.
    pub stderr: Option<Capture>,
}

impl Record {
    fn with_executable(&self, executable: &VerifiedExecutable) -> Self {
        let mut grant = Grant::clone(&self.grant);
        grant.executable = Some(executable.path().as_os_str().as_bytes().to_vec());
        Self {
            grant: Arc::new(grant),
            ..self.clone()
        }
    }

    /// Records the end.
    pub fn exited(&self, service: &Service, ended: Ended) {
        service.sink.post(&Event::Exited {
            caller: Arc::clone(&self.caller),
            command: Arc::clone(&self.command),
            grant: Arc::clone(&self.grant),
            ended,
        });
    }
}

fn shorter(filter: Option<Duration>, caller_usec: Option<u64>) -> Option<Duration> {
    let callers = caller_usec.map(Duration::from_micros);
    match (filter, callers) {
        (Some(filter), Some(callers)) => Some(filter.min(callers)),
        (filter, callers) => filter.or(callers),
    }
}

fn send_signal(pidfd: &OwnedFd, signal: i32) -> Result<(), i32> {
    use std::os::fd::AsFd;
    crate::sys::pidfd::send_signal(pidfd.as_fd(), signal).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_time_limit_wins() {
        let second = Duration::from_secs(1);
        assert_eq!(shorter(None, None), None);
        assert_eq!(shorter(Some(second), None), Some(second));
        assert_eq!(shorter(None, Some(5)), Some(Duration::from_micros(5)));
        assert_eq!(shorter(Some(second), Some(2_000_000)), Some(second));
        assert_eq!(shorter(Some(second), Some(10)), Some(Duration::from_micros(10)));
    }
}
