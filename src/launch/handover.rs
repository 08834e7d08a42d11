//! One child and its one job, as rootwrapd sees it: hand the job over, hear the outcome, and know for sure whether exec happened.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::time::{Instant, timeout, timeout_at};

use super::job::Message;
use super::pool::LaunchError;
use super::watch::{self, Process};
use super::wire::{self, MAX_REPORT, Report};
use super::{ProbeAnswer, Running};
use crate::sys::async_fd::AsyncOwnedFd;
use crate::sys::cgroup::Cgroup;
use crate::sys::pidfd::Status;
use crate::sys::socket::send_with;

/// How long the end of a killed child is waited for. It never executes anything after SIGKILL; only its last words may be missed.
const KILL_PATIENCE: Duration = Duration::from_secs(1);

/// A child that has not got its job yet. Dropped, it is killed and reaped, and its cgroup is removed.
#[derive(Debug)]
pub(super) struct Child {
    process: Arc<Process>,
    socket: AsyncOwnedFd,
    cgroup: Option<Cgroup>,
    /// It is a command now: not ours to kill.
    released: bool,
    unburied: Unburied,
}

/// Held by every child until it is a command, or reaped and its cgroup removed: whoever holds the other end of the channel hears when
/// the last one is gone.
pub(super) type Unburied = tokio::sync::mpsc::Sender<std::convert::Infallible>;

/// Why a job was not done.
#[derive(Debug)]
pub(super) enum NotDone {
    /// The child ended before exec, for no reason of its own: another may try.
    Died,
    /// For good.
    Failed(LaunchError),
}

impl Child {
    pub fn new(pid: u32, pidfd: OwnedFd, socket: OwnedFd, cgroup: Option<Cgroup>, unburied: Unburied) -> Result<Self, LaunchError> {
        let registered = rustix::io::ioctl_fionbio(&socket, true)
            .map_err(io::Error::from)
            .and_then(|()| AsyncOwnedFd::register(socket, Interest::READABLE | Interest::WRITABLE))
            .and_then(|socket| Ok((socket, Process::new(pid, pidfd)?)));
        // Where it cannot be watched its socket is closed with this, and it exits: what is lost is one zombie.
        let (socket, process) = registered.map_err(|error| LaunchError::fork(&error))?;
        Ok(Self {
            process: Arc::new(process),
            socket,
            cgroup,
            released: false,
            unburied,
        })
    }

    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Runs a command; comes back once exec has happened, or when it is certain that it did not and will not.
    pub async fn run(mut self, job: &Message, deadline: Instant) -> Result<Running, NotDone> {
        let started = std::time::Instant::now();
        let (reports, in_time) = self.exchange(job, deadline).await;
        match reports.as_deref() {
            Some([.., Report::Failed { step, errno }]) => Err(NotDone::Failed(LaunchError::Step {
                step: *step,
                errno: *errno,
            })),
            // Exec comes only after the announcement.
            Some([]) => Err(self.not_executed(in_time)),
            Some([Report::Starting]) => match self.has_executed(in_time) {
                Some(true) if in_time => {
                    self.released = true;
                    Ok(Running::new(self.process.clone(), self.cgroup.take(), started))
                }
                Some(false) => Err(self.not_executed(in_time)),
                Some(true) | None => Err(NotDone::Failed(LaunchError::OutcomeUnknown)),
            },
            Some(_) | None => Err(NotDone::Failed(LaunchError::OutcomeUnknown)),
        }
    }

    /// Asks a question.
    pub async fn ask(self, job: &Message, deadline: Instant) -> Result<ProbeAnswer, NotDone> {
        let (reports, in_time) = self.exchange(job, deadline).await;
        match reports.as_deref() {
            Some([Report::Answer(answer)]) => Ok(answer.clone()),
            Some([Report::Failed { step, errno }]) => Err(NotDone::Failed(LaunchError::Step {
                step: *step,
                errno: *errno,
            })),
            // A question can be asked again, whatever came of it.
            _ => Err(self.not_executed(in_time)),
        }
    }

    fn not_executed(&self, in_time: bool) -> NotDone {
        if in_time {
            NotDone::Died
        } else {
            NotDone::Failed(LaunchError::TimedOut)
        }
    }

    /// Hands the job over and listens until the socket closes; past the deadline the child is killed. Returns what it said (`None`:
    /// not to be understood) and whether it was in time.
    async fn exchange(&self, job: &Message, deadline: Instant) -> (Option<Vec<Report>>, bool) {
        let mut heard = Vec::new();
        let talked = timeout_at(deadline, self.talk(job, &mut heard)).await;
        let in_time = talked.is_ok();
        if !matches!(talked, Ok(Ok(()))) {
            self.process.kill();
            // What it said before it died still counts.
            let _ = timeout(KILL_PATIENCE, self.listen(&mut heard)).await;
            let _ = timeout(KILL_PATIENCE, self.process.until_ended()).await;
        }
        (wire::reports(&heard), in_time)
    }

    async fn talk(&self, job: &Message, heard: &mut Vec<u8>) -> io::Result<()> {
        match self.send(job).await {
            // It has ended, perhaps with a word about why.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET)) => {}
            sent => sent?,
        }
        self.listen(heard).await
    }

    async fn send(&self, job: &Message) -> io::Result<()> {
        let descriptors: Vec<_> = job.descriptors.iter().map(AsFd::as_fd).collect();
        let mut sent = 0;
        while let Some(rest) = job.bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            // The child takes the length first, and gets all descriptors with it: they come with the first byte.
            let with = if sent == 0 { descriptors.as_slice() } else { Default::default() };
            let send = |socket: &OwnedFd| send_with(socket.as_fd(), rest, with, None);
            sent += match send(self.socket.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket.async_io(Interest::WRITABLE, send).await?,
                other => other?,
            };
        }
        Ok(())
    }

    /// Until the socket closes.
    async fn listen(&self, heard: &mut Vec<u8>) -> io::Result<()> {
        let mut buffer = [0; 256];
        loop {
            let receive = |socket: &OwnedFd| Ok(rustix::io::read(socket, &mut buffer)?);
            let length = match self.socket.async_io(Interest::READABLE, receive).await {
                // It closed with a part of the job unread: that is an end, too.
                Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => 0,
                other => other?,
            };
            if length == 0 {
                return Ok(());
            }
            heard.extend_from_slice(buffer.get(..length).unwrap_or_default());
            if heard.len() > MAX_REPORT {
                return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
            }
        }
    }

    /// After the announcement and the end of the socket: was that exec, or did the child die before it? `None`: nobody can tell.
    fn has_executed(&self, closed: bool) -> Option<bool> {
        match self.process.peek().map(|ended| ended.status) {
            // By itself the child would only have exited with a report.
            Some(Status::Exited(_)) => Some(true),
            // A process that is being killed at this very moment counts as a command that was killed.
            None if closed => Some(true),
            Some(Status::Signaled(_)) | None => has_executed(self.process.pid()),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        let (process, cgroup, unburied) = (self.process.clone(), self.cgroup.take(), self.unburied.clone());
        let bury = async move {
            bury(process, cgroup).await;
            drop(unburied);
        };
        // Outside the runtime rootwrapd is about to end: the socket closes, the child exits, and its next parent reaps it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(bury);
        }
    }
}

/// Kills and reaps a child, and removes its cgroup.
async fn bury(process: Arc<Process>, cgroup: Option<Cgroup>) {
    process.kill();
    process.reap().await;
    if let Some(cgroup) = cgroup {
        watch::remove(&cgroup).await;
    }
}

/// Whether a child that has not been reaped has ever called exec: PF_FORKNOEXEC in the flags of /proc/PID/stat, see proc_pid_stat(5).
/// `None` where it cannot be read.
fn has_executed(pid: u32) -> Option<bool> {
    const PF_FORKNOEXEC: u64 = 0x40;
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, also a closing parenthesis.
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
    let flags: u64 = fields.split_ascii_whitespace().nth(6)?.parse().ok()?;
    Some(flags & PF_FORKNOEXEC == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Step;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::process::Command;

    const SOON: Duration = Duration::from_millis(50);
    const LATE: Duration = Duration::from_secs(30);

    /// A process that has called exec and sleeps, and the other end of what it would speak over.
    fn child() -> (Child, OwnedFd, u32, tokio::sync::mpsc::Receiver<std::convert::Infallible>) {
        let pid = Command::new("/bin/sleep").arg("1000").spawn().unwrap().id();
        let pidfd = pidfd_open(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), PidfdFlags::empty()).unwrap();
        let (ours, childs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let (unburied, buried) = tokio::sync::mpsc::channel(1);
        (Child::new(pid, pidfd, ours, None, unburied).unwrap(), childs, pid, buried)
    }

    fn message() -> Message {
        Message {
            bytes: vec![0; 100],
            descriptors: vec![crate::launch::job::Held::Own(std::fs::File::open("/dev/null").unwrap().into())],
        }
    }

    /// Runs a job in a child that says this, and closes its socket or keeps it; the process must be gone afterwards where no command
    /// came of it.
    fn outcome(said: &[u8], closes: bool, deadline: Duration) -> Result<Running, NotDone> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (child, socket, pid, mut buried) = child();
            rustix::io::write(&socket, said).unwrap();
            if closes {
                rustix::net::shutdown(&socket, rustix::net::Shutdown::Write).unwrap();
            }
            let outcome = child.run(&message(), Instant::now() + deadline).await;
            drop(socket);
            assert!(buried.recv().await.is_none());
            if outcome.is_err() {
                assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
            }
            outcome
        })
    }

    fn bytes(reports: &[Report]) -> Vec<u8> {
        reports.iter().flat_map(|report| postcard::to_stdvec(report).unwrap()).collect()
    }

    #[test]
    fn silence_means_that_nothing_was_executed() {
        assert!(matches!(outcome(b"", true, LATE), Err(NotDone::Died)));
        let late = outcome(b"", false, SOON);
        assert!(matches!(late, Err(NotDone::Failed(LaunchError::TimedOut))), "{late:?}");
    }

    #[test]
    fn a_failed_step_is_told_even_after_the_announcement_or_past_the_deadline() {
        let failed = Report::Failed {
            step: Step::Exec,
            errno: libc::ENOEXEC,
        };
        for said in [vec![failed.clone()], vec![Report::Starting, failed]] {
            for (closes, deadline) in [(true, LATE), (false, SOON)] {
                let told = outcome(&bytes(&said), closes, deadline);
                let expected = LaunchError::Step {
                    step: Step::Exec,
                    errno: libc::ENOEXEC,
                };
                assert!(
                    matches!(&told, Err(NotDone::Failed(error)) if error.to_string() == expected.to_string()),
                    "{told:?}"
                );
            }
        }
    }

    #[test]
    fn the_end_after_the_announcement_is_exec() {
        let running = outcome(&bytes(&[Report::Starting]), true, LATE).unwrap();
        running.signal(libc::SIGKILL, false).unwrap();
        // Its runtime is gone, so it is reaped by hand.
        let pid = rustix::process::Pid::from_raw(i32::try_from(running.pid()).unwrap());
        rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).unwrap();
    }

    #[test]
    fn what_may_have_run_and_was_killed_at_the_deadline_is_unknown() {
        let answer = outcome(&bytes(&[Report::Starting]), false, SOON);
        assert!(matches!(answer, Err(NotDone::Failed(LaunchError::OutcomeUnknown))), "{answer:?}");
    }

    #[test]
    fn what_cannot_be_understood_is_unknown() {
        for said in [b"\xff\xff\xff".as_slice(), &[0; MAX_REPORT * 2]] {
            let answer = outcome(said, true, LATE);
            assert!(matches!(answer, Err(NotDone::Failed(LaunchError::OutcomeUnknown))), "{answer:?}");
        }
    }

    #[test]
    fn the_kernel_tells_a_forked_process_from_an_executed_one() {
        use std::io::{BufRead, BufReader};
        let mut shell = Command::new("/bin/sh")
            // In the background standard input would be /dev/null.
            .args(["-c", "exec 3<&0; (while read line; do :; done <&3) & echo $!; wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(has_executed(line.trim().parse().unwrap()), Some(false), "a subshell only forks");
        assert_eq!(has_executed(shell.id()), Some(true));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(has_executed(0), None);
    }
}
