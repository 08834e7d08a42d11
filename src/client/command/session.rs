//! One Run over one connection: calls out, replies and signals in.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::forward::{Signals, ends, sent_on};
use crate::client::connection::{Connection, outgoing, sent};
use crate::client::request::{Prepared, signal_call};
use crate::client::{Error, Server};
use crate::protocol::framing::Outgoing;
use crate::protocol::message::Malformed;
use crate::protocol::run::{RunReply, RunState};

/// How long a signal that asks to end waits for a command that has not been started yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exited(u8),
    /// By this signal.
    Signaled(i32),
}

struct Session<'p> {
    connection: Connection,
    signals: Signals,
    outgoing: VecDeque<Outgoing<'p>>,
    /// The command's, once it has been started.
    id: Option<String>,
    /// Signals that came before.
    early: Vec<Signal>,
    /// When to die of which signal, should the command not have been started by then.
    give_up: Option<(Instant, Signal)>,
}

/// Sends the call and stays until the command has ended.
pub fn run(server: &Server, prepared: Prepared) -> Result<Ended, Error> {
    // Until here and while the service's queue is full, signals do what they always do.
    let socket = server.connect()?;
    let Prepared { call, fds } = prepared;
    Session::new(socket, None, VecDeque::from([outgoing(&call, &fds)?]))?.run()
}

/// Stays with a call that was sent on this connection until the command has ended. `id`: the command's, where it has been started.
pub fn resume(socket: OwnedFd, id: Option<String>) -> Result<Ended, Error> {
    Session::new(socket, id, VecDeque::new())?.run()
}

impl<'p> Session<'p> {
    fn new(socket: OwnedFd, id: Option<String>, outgoing: VecDeque<Outgoing<'p>>) -> Result<Self, Error> {
        let signals = Signals::take().map_err(|errno| Error::Unsendable(format!("cannot receive signals: {errno}")))?;
        rustix::io::ioctl_fionbio(&socket, true).map_err(|errno| Error::Broken(errno.into()))?;
        Ok(Self {
            connection: Connection::over(socket),
            signals,
            outgoing,
            id,
            early: Vec::new(),
            give_up: None,
        })
    }

    fn run(mut self) -> Result<Ended, Error> {
        loop {
            if let Some(ended) = self.step()? {
                return Ok(ended);
            }
        }
    }

    /// Waits for something to do and does it.
    fn step(&mut self) -> Result<Option<Ended>, Error> {
        let (readable, writable, signalled) = self.wait().map_err(Error::Broken)?;
        if readable {
            if let Some(ended) = self.receive()? {
                return Ok(Some(ended));
            }
        }
        if writable {
            self.send()?;
        }
        if signalled {
            while let Some(signal) = self.signals.next() {
                self.signal(signal)?;
            }
        }
        match self.give_up {
            Some((when, signal)) if when <= Instant::now() => Ok(Some(Ended::Signaled(signal as i32))),
            _ => Ok(None),
        }
    }

    fn wait(&self) -> io::Result<(bool, bool, bool)> {
        let wanted = if self.outgoing.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        };
        let mut fds = [
            PollFd::from_borrowed_fd(self.connection.as_fd(), wanted),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        let timeout = self.give_up.map(|(when, _)| when.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let [socket, signals] = fds.map(|fd| fd.revents());
        let readable = socket.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
        Ok((readable, socket.contains(PollFlags::OUT), signals.contains(PollFlags::IN)))
    }

    fn receive(&mut self) -> Result<Option<Ended>, Error> {
        let reply = match self.connection.try_reply() {
            Err(Error::Broken(error)) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            reply => reply?,
        };
        let Some(reply) = reply else { return Ok(None) };
        let reply: RunReply = reply.into_result()?;
        match (reply.state, reply.exit_code, reply.exit_signal) {
            (RunState::Started, ..) => {
                self.started(reply.id)?;
                Ok(None)
            }
            (RunState::Exited, Some(code), None) => Ok(Some(Ended::Exited(u8::try_from(code & 0xff).unwrap_or(u8::MAX)))),
            (RunState::Exited, None, Some(signal)) => Ok(Some(Ended::Signaled(signal))),
            _ => Err(Malformed("an end without exit status or signal".into()).into()),
        }
    }

    fn started(&mut self, id: String) -> Result<(), Error> {
        self.id = Some(id);
        self.give_up = None;
        for signal in std::mem::take(&mut self.early) {
            self.forward(signal)?;
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        self.forward(signal)?;
        if signal == Signal::SIGTSTP {
            // After the command: on SIGCONT, which is waiting to be read then, both go on. What the socket does not take now follows then.
            self.send()?;
            nix::sys::signal::raise(Signal::SIGSTOP).map_err(|errno| Error::Broken(errno.into()))?;
        }
        Ok(())
    }

    fn forward(&mut self, signal: Signal) -> Result<(), Error> {
        let Some(id) = &self.id else {
            self.early.push(signal);
            if ends(signal) && self.give_up.is_none() {
                self.give_up = Some((Instant::now() + PATIENCE, signal));
            }
            return Ok(());
        };
        self.outgoing.push_back(outgoing(&signal_call(id, sent_on(signal) as i32), &[])?);
        Ok(())
    }

    /// Sends what the socket takes now.
    fn send(&mut self) -> Result<(), Error> {
        while let Some(first) = self.outgoing.front_mut() {
            match first.send(self.connection.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    self.outgoing.clear();
                    return sent(Err(error));
                }
                Ok(()) if first.is_done() => {
                    self.outgoing.pop_front();
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }
}
