//! What both clients share: building a Run, its result, and what holds while a call is under way.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use super::error::Error;
use crate::protocol::message::Malformed;
use crate::protocol::run::{Run, RunReply, RunState};
use crate::protocol::{Call, Reply};

/// Standard input of a command.
#[derive(Debug, Default)]
pub enum Input {
    /// /dev/null.
    #[default]
    Null,
    /// This data; it counts against the size of a message.
    Bytes(Vec<u8>),
    /// A descriptor; the command reads from it directly.
    Descriptor(OwnedFd),
}

/// Where a command's output goes.
#[derive(Debug, Default)]
pub enum Sink {
    /// Into the result, up to the service's limit.
    #[default]
    Captured,
    /// To a descriptor; the command writes to it directly.
    Descriptor(OwnedFd),
}

/// A command to run, bound to a client.
#[derive(Debug)]
#[must_use = "it does not run until `run` or `start`"]
pub struct Command<'c, C> {
    pub(super) client: &'c mut C,
    request: Request,
}

/// A Run and its descriptors, not yet numbered.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) run: Run,
    pub(super) stdin: Input,
    pub(super) stdout: Sink,
    pub(super) stderr: Sink,
    pub(super) cwd: Option<OwnedFd>,
}

/// A call ready to be sent, and the descriptors that go with it.
#[derive(Debug)]
pub struct Prepared {
    /// The call.
    pub call: Call,
    /// In the order of the indexes in the call.
    pub fds: Vec<OwnedFd>,
}

impl<'c, C> Command<'c, C> {
    pub(super) fn new<A: AsRef<OsStr>>(client: &'c mut C, argv: impl IntoIterator<Item = A>) -> Self {
        let command = Self {
            client,
            request: Request::default(),
        };
        command.args(argv)
    }

    /// One more argument, any bytes but NUL.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.request.run.wanted.argv.push(argument.as_ref().as_bytes().to_vec());
        self
    }

    /// More arguments.
    pub fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    /// A variable; the last value of a name counts. The filter must allow it.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let (name, value) = (name.as_ref().as_bytes().to_vec(), value.as_ref().as_bytes().to_vec());
        self.request.run.wanted.environment.retain(|(other, _)| *other != name);
        self.request.run.wanted.environment.push((name, value));
        self
    }

    /// The directory to run in, as a descriptor (O_PATH is enough). The filter must let the caller choose.
    pub fn cwd(mut self, directory: impl Into<OwnedFd>) -> Self {
        self.request.cwd = Some(directory.into());
        self
    }

    /// Only this filter may allow it.
    pub fn filter(mut self, name: impl Into<String>) -> Self {
        self.request.run.wanted.filter = Some(name.into());
        self
    }

    /// Consult only this profile.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.request.run.wanted.profile = Some(name.into());
        self
    }

    /// The command is ended after this time; a shorter limit of the filter wins.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.run.timeout_usec = Some(u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX));
        self
    }

    /// Standard input; /dev/null unless set.
    pub fn stdin(mut self, input: Input) -> Self {
        self.request.stdin = input;
        self
    }

    /// Standard output; captured unless set.
    pub fn stdout(mut self, sink: Sink) -> Self {
        self.request.stdout = sink;
        self
    }

    /// Standard error; captured unless set.
    pub fn stderr(mut self, sink: Sink) -> Self {
        self.request.stderr = sink;
        self
    }

    pub(super) fn take(self, more: bool) -> Result<(&'c mut C, Prepared), Error> {
        Ok((self.client, self.request.prepare(more)?))
    }
}

impl Request {
    /// Numbers the descriptors and refuses what the wire cannot carry.
    pub(super) fn prepare(mut self, more: bool) -> Result<Prepared, Error> {
        self.check()?;
        let mut fds = Vec::new();
        let mut number = |fd: OwnedFd| {
            fds.push(fd);
            Some(fds.len() - 1)
        };
        let indexes = &mut self.run.descriptors;
        match self.stdin {
            Input::Null => {}
            Input::Bytes(data) => self.run.stdin = Some(data),
            Input::Descriptor(fd) => indexes.stdin = number(fd),
        }
        if let Sink::Descriptor(fd) = self.stdout {
            indexes.stdout = number(fd);
        }
        if let Sink::Descriptor(fd) = self.stderr {
            indexes.stderr = number(fd);
        }
        indexes.cwd = self.cwd.and_then(number);
        let mut call = Call::new("io.rootwrap.Run", self.run.parameters());
        call.more = more;
        Ok(Prepared { call, fds })
    }

    fn check(&self) -> Result<(), Error> {
        let unsendable = |text: &str| Err(Error::Unsendable(text.into()));
        let wanted = &self.run.wanted;
        if wanted.argv.is_empty() {
            return unsendable("there is no command");
        }
        if wanted.argv.iter().any(|argument| argument.contains(&0)) {
            return unsendable("an argument holds a NUL byte");
        }
        for (name, value) in &wanted.environment {
            if name.is_empty() || name.contains(&b'=') || std::str::from_utf8(name).is_err() {
                return unsendable("a variable's name is empty, holds `=` or is not UTF-8");
            }
            if name.contains(&0) || value.contains(&0) {
                return unsendable("a variable holds a NUL byte");
            }
        }
        match self.run.timeout_usec {
            Some(0) => unsendable("a timeout of zero leaves no time to run"),
            _ => Ok(()),
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug)]
pub struct Output {
    /// Names the command in the journal.
    pub id: String,
    /// The filter that allowed it.
    pub filter: Option<String>,
    /// Its exit status or the signal that ended it.
    pub status: ExitStatus,
    /// Captured standard output.
    pub stdout: Vec<u8>,
    /// Captured standard error.
    pub stderr: Vec<u8>,
    /// The command wrote more to standard output than was captured.
    pub stdout_truncated: bool,
    /// The same for standard error.
    pub stderr_truncated: bool,
    /// Wall time since exec.
    pub duration: Duration,
    /// Processor time.
    pub cpu: Duration,
    /// Most resident memory, in KiB.
    pub max_rss_kib: u64,
}

impl TryFrom<RunReply> for Output {
    type Error = Error;

    fn try_from(reply: RunReply) -> Result<Self, Error> {
        let status = match (reply.state, reply.exit_code, reply.exit_signal) {
            (RunState::Exited, Some(code), None) => ExitStatus::from_raw((code & 0xff) << 8),
            (RunState::Exited, None, Some(signal)) => ExitStatus::from_raw(signal & 0x7f),
            _ => return Err(Malformed("an end without exit status or signal".into()).into()),
        };
        Ok(Self {
            id: reply.id,
            filter: reply.filter,
            status,
            stdout: reply.stdout.unwrap_or_default(),
            stderr: reply.stderr.unwrap_or_default(),
            stdout_truncated: reply.stdout_truncated.unwrap_or(false),
            stderr_truncated: reply.stderr_truncated.unwrap_or(false),
            duration: Duration::from_micros(reply.duration_usec.unwrap_or(0)),
            cpu: Duration::from_micros(reply.cpu_usec.unwrap_or(0)),
            max_rss_kib: reply.max_rss_kib.unwrap_or(0),
        })
    }
}

/// A connection as this module sees it.
pub trait Transport {
    /// The socket.
    fn socket(&self) -> BorrowedFd<'_>;
}

/// A call under way. Dropped before its last reply was read (by an error, or a future that is given up), it shuts the connection
/// down: later replies would be taken for those to later calls, and the service ends the command.
#[derive(Debug)]
pub(super) struct UnderWay<'c, T: Transport> {
    pub(super) connection: &'c mut T,
    done: bool,
}

impl<'c, T: Transport> UnderWay<'c, T> {
    pub(super) fn new(connection: &'c mut T) -> Self {
        Self { connection, done: false }
    }

    /// Notes whether more replies follow, and gives out what this one says.
    pub(super) fn read<R: for<'de> serde::Deserialize<'de>>(&mut self, reply: Reply) -> Result<R, Error> {
        self.done = !reply.continues;
        Ok(reply.into_result()?)
    }
}

impl<T: Transport> Drop for UnderWay<'_, T> {
    fn drop(&mut self) {
        if !self.done {
            // Already closed: just as well.
            let _ = rustix::net::shutdown(self.connection.socket(), rustix::net::Shutdown::Both);
        }
    }
}

/// A command that has been started. Dropped before its end, it closes the connection: the service ends the command, unless its
/// filter says that it runs on.
#[derive(Debug)]
pub struct Running<'c, T: Transport> {
    pub(super) call: UnderWay<'c, T>,
    pub(super) first: RunReply,
}

impl<T: Transport> Running<'_, T> {
    /// Names it in the journal.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.first.id
    }

    /// Its process id in the service's pid namespace.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.first.pid
    }

    /// It was over before it could be said to have started.
    pub(super) fn is_over(&self) -> bool {
        self.first.state == RunState::Exited
    }
}

/// A Signal call that asks for no reply: it goes over the connection on which Run is under way.
pub(super) fn signal_call(id: &str, signal: i32) -> Call {
    let parameters = crate::protocol::io_rootwrap::Signal { id: id.into(), signal }.parameters();
    Call {
        oneway: true,
        ..Call::new("io.rootwrap.Signal", parameters)
    }
}
