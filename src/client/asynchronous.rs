//! The tokio client: the blocking one's surface with futures. A future that is dropped before its end closes the connection, and
//! with it ends the command.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use serde::Deserialize;
use serde_json::Map;
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::connection::{decoder, end_of_stream, outgoing, sent};
use super::error::Error;
use super::request::{Command, Output, Running, Transport, UnderWay, signal_call};
use super::server::Server;
use crate::protocol::framing::receive;
use crate::protocol::io_rootwrap::{Explain, ExplainReply, ListFiltersReply, ReloadReply, StatusReply};
use crate::protocol::run::RunReply;
use crate::protocol::{Call, Decoder, Reply};

/// A nonblocking connection.
#[derive(Debug)]
pub struct AsyncConnection {
    stream: UnixStream,
    decoder: Decoder,
}

impl AsyncConnection {
    fn over(socket: OwnedFd) -> Result<Self, Error> {
        let stream = std::os::unix::net::UnixStream::from(socket);
        stream.set_nonblocking(true).map_err(Error::Broken)?;
        Ok(Self {
            stream: UnixStream::from_std(stream).map_err(Error::Broken)?,
            decoder: decoder(),
        })
    }

    async fn send(&self, call: &Call, fds: &[OwnedFd]) -> Result<(), Error> {
        let mut outgoing = outgoing(call, fds)?;
        let mut result = Ok(());
        while result.is_ok() && !outgoing.is_done() {
            result = self
                .stream
                .async_io(Interest::WRITABLE, || outgoing.send(self.stream.as_fd()))
                .await;
        }
        sent(result)
    }

    async fn reply(&mut self) -> Result<Reply, Error> {
        loop {
            if let Some(message) = self.decoder.take() {
                return Ok(Reply::parse(&message.bytes)?);
            }
            let Self { stream, decoder } = self;
            let receipt = stream.async_io(Interest::READABLE, || receive(stream.as_fd(), decoder, 0)).await;
            if receipt.map_err(Error::Broken)?.len == 0 {
                return Err(end_of_stream());
            }
        }
    }
}

impl Transport for AsyncConnection {
    fn socket(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A connection to the service for use within a tokio runtime.
#[derive(Debug)]
pub struct AsyncClient {
    connection: AsyncConnection,
}

impl AsyncClient {
    /// Connects to the socket at `path`, which must be root's or this user's. (Connecting to a local socket is not waited for.)
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Untrusted`].
    pub async fn connect(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::to(Server::at(path.as_ref())).await
    }

    /// Connects to `ROOTWRAP_SOCKET`, else to /run/rootwrap.sock, which must be root's.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Untrusted`].
    pub async fn connect_default() -> Result<Self, Error> {
        Self::to(Server::default()).await
    }

    async fn to(server: Server) -> Result<Self, Error> {
        // connect(2) waits while the service's queue is full: not on the runtime's own threads.
        let connected = tokio::task::spawn_blocking(move || server.connect()).await;
        Self::over(connected.map_err(|error| Error::Broken(error.into()))??)
    }

    /// Speaks over a connected socket.
    ///
    /// # Errors
    /// [`Error::Broken`] when it cannot be registered with the runtime.
    pub fn over(socket: OwnedFd) -> Result<Self, Error> {
        Ok(Self {
            connection: AsyncConnection::over(socket)?,
        })
    }

    /// A command to run: `argv[0]` by its bare name or as the filter spells it.
    pub fn command<A: AsRef<OsStr>>(&mut self, argv: impl IntoIterator<Item = A>) -> Command<'_, Self> {
        Command::new(self, argv)
    }

    async fn call<R: for<'de> Deserialize<'de>>(&mut self, call: &Call) -> Result<R, Error> {
        let mut under_way = UnderWay::new(&mut self.connection);
        under_way.connection.send(call, &[]).await?;
        let reply = under_way.connection.reply().await?;
        under_way.read(reply)
    }

    /// What the service would decide, and why. Nothing runs.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn explain(&mut self, explain: &Explain) -> Result<ExplainReply, Error> {
        self.call(&Call::new("io.rootwrap.Explain", explain.parameters())).await
    }

    /// The filters that this user may use.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_filters(&mut self) -> Result<ListFiltersReply, Error> {
        self.call(&Call::new("io.rootwrap.ListFilters", Map::new())).await
    }

    /// How the service does.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn status(&mut self) -> Result<StatusReply, Error> {
        self.call(&Call::new("io.rootwrap.GetStatus", Map::new())).await
    }

    /// Makes the service read its filters again and waits until it has.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ReloadFailed`](crate::protocol::Error::ReloadFailed) and all diagnostics; [`Error`].
    pub async fn reload(&mut self) -> Result<ReloadReply, Error> {
        self.call(&Call::new("io.rootwrap.Reload", Map::new())).await
    }
}

impl<'c> Command<'c, AsyncClient> {
    /// Runs it and waits for its end.
    ///
    /// # Errors
    /// [`Error`]; a command that fails is no error.
    pub async fn run(self) -> Result<Output, Error> {
        self.begin(false).await?.wait().await
    }

    /// Runs it and returns once it has been executed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn start(self) -> Result<Running<'c, AsyncConnection>, Error> {
        self.begin(true).await
    }

    async fn begin(self, more: bool) -> Result<Running<'c, AsyncConnection>, Error> {
        let (client, prepared) = self.take(more)?;
        let mut call = UnderWay::new(&mut client.connection);
        call.connection.send(&prepared.call, &prepared.fds).await?;
        drop(prepared);
        let reply = call.connection.reply().await?;
        let first = call.read(reply)?;
        Ok(Running { call, first })
    }
}

impl Running<'_, AsyncConnection> {
    /// Sends a signal to it, without waiting for an answer.
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub async fn signal(&mut self, signal: i32) -> Result<(), Error> {
        self.call.connection.send(&signal_call(&self.first.id, signal), &[]).await
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn wait(mut self) -> Result<Output, Error> {
        while !self.is_over() {
            let reply = self.call.connection.reply().await?;
            self.first = self.call.read::<RunReply>(reply)?;
        }
        self.first.clone().try_into()
    }
}
