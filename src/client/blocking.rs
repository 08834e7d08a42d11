//! The blocking client.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use serde::Deserialize;
use serde_json::Map;

use super::connection::Connection;
use super::error::Error;
use super::request::{Command, Output, Running, UnderWay, signal_call};
use super::server::Server;
use crate::protocol::Call;
use crate::protocol::io_rootwrap::{Explain, ExplainReply, ListFiltersReply, ReloadReply, StatusReply};
use crate::protocol::run::{RunReply, Wanted};

/// A connection to the service. Waits without a time limit; the service has its own.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
}

impl Client {
    /// Connects to the socket at `path`, which must be root's or this user's.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Untrusted`].
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::to(&Server::at(path.as_ref()))
    }

    /// Connects to `ROOTWRAP_SOCKET`, else to /run/rootwrap.sock, which must be root's.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Untrusted`].
    pub fn connect_default() -> Result<Self, Error> {
        Self::to(&Server::default())
    }

    fn to(server: &Server) -> Result<Self, Error> {
        let connection = Connection::open(server)?;
        Ok(Self { connection })
    }

    /// Speaks over a connected, blocking socket.
    #[must_use]
    pub fn over(socket: OwnedFd) -> Self {
        Self {
            connection: Connection::over(socket),
        }
    }

    /// A command to run: `argv[0]` by its bare name or as the filter spells it.
    pub fn command<A: AsRef<OsStr>>(&mut self, argv: impl IntoIterator<Item = A>) -> Command<'_, Self> {
        Command::new(self, argv)
    }

    fn call<R: for<'de> Deserialize<'de>>(&mut self, call: &Call) -> Result<R, Error> {
        let mut under_way = UnderWay::new(&mut self.connection);
        under_way.connection.send(call, &[])?;
        let reply = under_way.connection.reply()?;
        under_way.read(reply)
    }

    /// What the service would decide, and why. Nothing runs.
    ///
    /// # Errors
    /// [`Error`].
    pub fn explain(&mut self, explain: &Explain) -> Result<ExplainReply, Error> {
        self.call(&Call::new("io.rootwrap.Explain", explain.parameters()))
    }

    /// [`explain`](Self::explain) for a plain command.
    ///
    /// # Errors
    /// [`Error`].
    pub fn explain_command<A: AsRef<OsStr>>(&mut self, argv: impl IntoIterator<Item = A>) -> Result<ExplainReply, Error> {
        use std::os::unix::ffi::OsStrExt;
        let argv = argv.into_iter().map(|argument| argument.as_ref().as_bytes().to_vec()).collect();
        self.explain(&Explain {
            wanted: Wanted { argv, ..Wanted::default() },
            ..Explain::default()
        })
    }

    /// The filters that this user may use.
    ///
    /// # Errors
    /// [`Error`].
    pub fn list_filters(&mut self) -> Result<ListFiltersReply, Error> {
        self.call(&Call::new("io.rootwrap.ListFilters", Map::new()))
    }

    /// How the service does.
    ///
    /// # Errors
    /// [`Error`].
    pub fn status(&mut self) -> Result<StatusReply, Error> {
        self.call(&Call::new("io.rootwrap.GetStatus", Map::new()))
    }

    /// Makes the service read its filters again and waits until it has.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ReloadFailed`](crate::protocol::Error::ReloadFailed) and all diagnostics; [`Error`].
    pub fn reload(&mut self) -> Result<ReloadReply, Error> {
        self.call(&Call::new("io.rootwrap.Reload", Map::new()))
    }
}

impl<'c> Command<'c, Client> {
    /// Runs it and waits for its end.
    ///
    /// # Errors
    /// [`Error`]; a command that fails is no error.
    pub fn run(self) -> Result<Output, Error> {
        self.begin(false)?.wait()
    }

    /// Runs it and returns once it has been executed.
    ///
    /// # Errors
    /// [`Error`].
    pub fn start(self) -> Result<Running<'c, Connection>, Error> {
        self.begin(true)
    }

    fn begin(self, more: bool) -> Result<Running<'c, Connection>, Error> {
        let (client, prepared) = self.take(more)?;
        let mut call = UnderWay::new(&mut client.connection);
        call.connection.send(&prepared.call, &prepared.fds)?;
        drop(prepared);
        let reply = call.connection.reply()?;
        let first = call.read(reply)?;
        Ok(Running { call, first })
    }
}

impl Running<'_, Connection> {
    /// Sends a signal to it, without waiting for an answer.
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub fn signal(&mut self, signal: i32) -> Result<(), Error> {
        self.call.connection.send(&signal_call(&self.first.id, signal), &[])
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`Error`].
    pub fn wait(mut self) -> Result<Output, Error> {
        while !self.is_over() {
            let reply = self.call.connection.reply()?;
            self.first = self.call.read::<RunReply>(reply)?;
        }
        self.first.clone().try_into()
    }
}
