//! One connection, one task: calls are answered in their order, one at a time.
//!
//! While a Run is being carried out the connection is read on: the end of the connection is the end of the caller, a Signal takes effect at
//! once (its reply, where it wants one, waits for its turn), and other calls wait, a few of them; then nothing more is read until there
//! is room again.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::connection::{Connection, Ended};
use super::jobs::ConnectionId;
use super::peer::CallerIdentity;
use super::reload::Files;
use super::run::{self, Ongoing};
use super::service::{Phase, Service};
use super::slow;
use super::verbs;
use crate::audit::Event;
use crate::protocol::framing::Message;
use crate::protocol::run::{Run, RunReply};
use crate::protocol::{Call, Error, Method, Reply};
use crate::sys::passed::PassedFd;

/// Calls of one connection that wait behind a Run.
const WAITING: usize = 16;

/// A session.
#[derive(Debug)]
pub struct Session {
    service: Arc<Service>,
    files: Arc<Files>,
    connection: Connection,
    id: ConnectionId,
    waiting: VecDeque<Waiting>,
}

/// What was received and waits for its turn.
#[derive(Debug)]
struct Waiting {
    what: Incoming,
    /// Bytes that it is charged for.
    size: usize,
}

#[derive(Debug)]
enum Incoming {
    Call {
        method: Method,
        fds: Vec<PassedFd>,
        more: bool,
        oneway: bool,
    },
    /// A Signal that has taken effect.
    Answered(Reply),
    /// An error to answer with; after some of them nothing can be understood any more.
    Refused { error: Error, oneway: bool, last: bool },
}

impl Session {
    /// A session on this connection.
    #[must_use]
    pub fn new(service: Arc<Service>, files: Arc<Files>, connection: Connection) -> Self {
        Self {
            id: service.jobs.new_connection(),
            service,
            files,
            connection,
            waiting: VecDeque::new(),
        }
    }

    fn caller(&self) -> &Arc<CallerIdentity> {
        self.connection.caller()
    }

    /// Serves the caller until one of both ends it; returns the connection to be closed.
    pub async fn serve(mut self) -> OwnedFd {
        if let Err(ended) = self.answer_all().await {
            self.take_leave(ended).await;
        }
        self.connection.into_socket()
    }

    async fn take_leave(&mut self, ended: Ended) {
        let service = Arc::clone(&self.service);
        let caller = Arc::clone(self.caller());
        let bad = |reason, detail: &str| service.bad_request(&caller, reason, detail.to_owned());
        let last_words = match ended {
            Ended::Closed | Ended::Refused => None,
            Ended::HalfMessage => {
                bad("half-message", "a message was begun and not finished in time");
                Some(Error::bad_request("the message was not finished in time"))
            }
            Ended::Unread => {
                bad("reply-unread", "a reply was not taken in time");
                None
            }
            Ended::TooLong(limit) => {
                let detail = format!("a message is longer than {limit} bytes");
                bad("too-large", &detail);
                Some(Error::bad_request(detail))
            }
            Ended::Stranger => Some(refuse_stranger(&service, &caller)),
            Ended::Unclosed => Some(service.busy_with(caller.shown(), "descriptors", slow::WAITING)),
            Ended::OverQuota(exceeded) => Some(service.busy(caller.shown(), exceeded)),
            Ended::Io(error) => {
                tracing::warn!("a connection of uid {} failed: {error}", caller.uid());
                None
            }
        };
        if let Some(error) = last_words {
            // Whether it is still taken is the caller's affair.
            let _ = self.connection.send_error(&error).await;
        }
    }

    async fn answer_all(&mut self) -> Result<(), Ended> {
        while let Some(waiting) = self.next().await? {
            match waiting.what {
                Incoming::Answered(reply) => self.connection.send(reply).await?,
                Incoming::Refused { error, oneway, last } => {
                    if !oneway {
                        self.connection.send_error(&error).await?;
                    }
                    if last {
                        return Err(Ended::Refused);
                    }
                }
                Incoming::Call {
                    method: Method::Run(run),
                    fds,
                    more,
                    oneway,
                } => self.run(*run, fds, more, oneway, waiting.size).await?,
                Incoming::Call { method, oneway, .. } => {
                    let answer = verbs::answer(&self.service, &self.files, self.connection.caller(), self.id, method).await;
                    self.reply(answer, oneway).await?;
                }
            }
            self.settle(0)?;
        }
        Ok(())
    }

    /// The next to be answered; `None`: the service stops and nothing is begun.
    async fn next(&mut self) -> Result<Option<Waiting>, Ended> {
        if let Some(waiting) = self.waiting.pop_front() {
            return Ok(Some(waiting));
        }
        if self.service.is_stopping() {
            return Ok(None);
        }
        let mut phase = self.service.phase();
        if *phase.borrow() == Phase::Ending {
            return Ok(None);
        }
        let message = tokio::select! {
            biased;
            message = self.connection.next() => message?,
            _ = phase.wait_for(|phase| *phase > Phase::Serving) => return Ok(None),
        };
        let waiting = self.read(message);
        self.settle(waiting.size)?;
        Ok(Some(waiting))
    }

    async fn reply(&mut self, answer: Result<Reply, Error>, oneway: bool) -> Result<(), Ended> {
        match answer {
            _ if oneway => Ok(()),
            Ok(reply) => self.connection.send(reply).await,
            Err(error) => self.connection.send_error(&error).await,
        }
    }

    /// Charges the caller for what waits and what is being answered.
    fn settle(&mut self, current: usize) -> Result<(), Ended> {
        let waiting = self.waiting.iter().map(|waiting| waiting.size);
        let held = waiting.fold(current, usize::saturating_add);
        self.connection.set_pending(held)
    }

    async fn run(&mut self, run: Run, fds: Vec<PassedFd>, more: bool, oneway: bool, size: usize) -> Result<(), Ended> {
        let fds = match run.claim(fds) {
            Ok(fds) => fds,
            Err(error) => {
                self.service.bad_request(self.caller(), "descriptors", in_words(&error));
                return self.reply(Err(error), oneway).await;
            }
        };
        let mut ongoing = run::begin(Arc::clone(&self.service), Arc::clone(self.caller()), self.id, run, fds);
        let mut tell_started = more && !oneway;
        // Dropped on the way out, `ongoing` tells the command's task that the caller is gone.
        let result = loop {
            match self.meanwhile(&mut ongoing, tell_started).await? {
                Meanwhile::Done(result) => break result,
                Meanwhile::Started(reply) => {
                    tell_started = false;
                    if let Some(reply) = reply {
                        self.connection.send(continuing(&reply)?).await?;
                    }
                }
                Meanwhile::Received(message) => {
                    let waiting = self.read_during_run(message);
                    self.waiting.extend(waiting);
                    self.settle(size)?;
                }
            }
        };
        let reply = result.and_then(|reply| Reply::success(&reply).map_err(|error| Error::bad_request(error.to_string())));
        self.reply(reply, oneway).await
    }

    async fn meanwhile(&mut self, ongoing: &mut Ongoing, tell_started: bool) -> Result<Meanwhile, Ended> {
        let has_room = self.has_room();
        tokio::select! {
            biased;
            reply = &mut ongoing.started, if tell_started => Ok(Meanwhile::Started(reply.ok())),
            result = &mut ongoing.done => Ok(Meanwhile::Done(result.unwrap_or_else(|_| Err(Error::OutcomeUnknown {
                message: "the service lost track of the command".into(),
            })))),
            message = self.connection.next_or_closed(has_room) => Ok(Meanwhile::Received(message?)),
        }
    }

    /// A call that waits with descriptors is as much as one connection may hold.
    fn has_room(&self) -> bool {
        let with_descriptors = |waiting: &Waiting| matches!(&waiting.what, Incoming::Call { fds, .. } if !fds.is_empty());
        self.waiting.len() < WAITING && !self.waiting.iter().any(with_descriptors)
    }

    /// Reads a message that came while a Run is being carried out; `None`: it has taken effect and wants no reply.
    fn read_during_run(&self, message: Message) -> Option<Waiting> {
        let mut waiting = self.read(message);
        if let Incoming::Call {
            method: Method::Signal(request),
            oneway,
            ..
        } = &waiting.what
        {
            let answer = verbs::signal(&self.service, self.caller(), self.id, request);
            if *oneway {
                return None;
            }
            waiting.what = Incoming::Answered(answer.unwrap_or_else(|error| Reply::from(&error)));
        }
        Some(waiting)
    }

    /// Makes a call of a message, or an error to answer with. What makes no sense is recorded.
    fn read(&self, message: Message) -> Waiting {
        let size = message.bytes.len();
        let what = self.parse(message).unwrap_or_else(|refused| *refused);
        Waiting { what, size }
    }

    fn parse(&self, message: Message) -> Result<Incoming, Box<Incoming>> {
        let refused = |reason: &'static str, error: Error, oneway: bool, last: bool| {
            self.service.bad_request(self.caller(), reason, in_words(&error));
            Box::new(Incoming::Refused { error, oneway, last })
        };
        let call = Call::parse(&message.bytes).map_err(|error| refused("malformed", Error::bad_request(error.to_string()), false, true))?;
        let (more, oneway) = (call.more, call.oneway);
        if let Some(fault) = message.fault {
            return Err(refused("descriptors", Error::bad_request(fault.to_string()), oneway, false));
        }
        let method = Method::parse(call).map_err(|error| {
            let reason = match error {
                Error::InterfaceNotFound { .. } | Error::MethodNotFound { .. } => "unknown-method",
                _ => "invalid-parameter",
            };
            refused(reason, error, oneway, false)
        })?;
        if !message.fds.is_empty() && !matches!(method, Method::Run(_)) {
            let error = Error::bad_request("descriptors came with a call that takes none");
            return Err(refused("descriptors", error, oneway, false));
        }
        if let Err(error) = verbs::authorize(&self.service, self.caller(), &method) {
            return Err(Box::new(Incoming::Refused {
                error,
                oneway,
                last: false,
            }));
        }
        Ok(Incoming::Call {
            method,
            fds: message.fds,
            more,
            oneway,
        })
    }
}

enum Meanwhile {
    /// The command was executed; `None`: it was not, and the result says why.
    Started(Option<RunReply>),
    Received(Message),
    Done(Result<RunReply, Error>),
}

fn in_words(error: &Error) -> String {
    match error {
        Error::BadRequest { message } => message.clone(),
        other => other.to_string(),
    }
}

fn continuing(reply: &RunReply) -> Result<Reply, Ended> {
    Reply::continuing(reply).map_err(|error| Ended::Io(std::io::Error::other(error)))
}

/// A connection is of use to the user who made it only.
fn refuse_stranger(service: &Service, caller: &CallerIdentity) -> Error {
    let message = "the message came from another user or group than the connection (a client with different real and effective ids must \
        send its effective ones)";
    let event = Event::Denied {
        caller: Arc::clone(caller.shown()),
        command: None,
        reason: "credentials",
        detail: message.into(),
    };
    service.denied(caller, &event);
    Error::NotPermitted {
        reason: "credentials".into(),
        message: message.into(),
    }
}
