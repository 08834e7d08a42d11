//! Accepting callers: who they are, whether there is room for them, and a session of their own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::{SocketFlags, accept_with};
use tokio::io::Interest;
use tokio::task::JoinSet;

use super::connection::Connection;
use super::listen::Listeners;
use super::peer::CallerIdentity;
use super::quota::Slot;
use super::reload::Files;
use super::service::Service;
use super::session::Session;
use super::slow;
use crate::audit::Event;
use crate::protocol::framing::Outgoing;
use crate::protocol::{Error, Reply};
use crate::sys::async_fd::AsyncOwnedFd;

/// Between attempts while no descriptor or memory is left.
const PAUSE: Duration = Duration::from_millis(100);

/// The listening sockets at work.
#[derive(Debug)]
pub struct Acceptor {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    service: Arc<Service>,
    files: Arc<Files>,
    sockets: Vec<AsyncOwnedFd>,
    accepted: AtomicU64,
}

impl Acceptor {
    /// Takes the sockets; nothing is accepted yet.
    ///
    /// # Errors
    /// When the runtime does not take them.
    pub fn new(service: Arc<Service>, files: Arc<Files>, listeners: Listeners) -> io::Result<Self> {
        let sockets = listeners.sockets.into_iter();
        let sockets = sockets.map(|socket| AsyncOwnedFd::register(socket.into(), Interest::READABLE));
        Ok(Self {
            shared: Arc::new(Shared {
                service,
                files,
                sockets: sockets.collect::<io::Result<_>>()?,
                accepted: AtomicU64::new(0),
            }),
            tasks: JoinSet::new(),
        })
    }

    /// Accepts from now on.
    pub fn start(&mut self) {
        for index in 0..self.shared.sockets.len() {
            self.tasks.spawn_local(Arc::clone(&self.shared).accept_all(index));
        }
    }

    /// Accepts no more. Who connects now waits in the sockets' queues.
    pub async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Accepts what waits in the queues; whether there was anybody.
    #[must_use]
    pub fn accept_waiting(&self) -> bool {
        let mut any = false;
        for socket in &self.shared.sockets {
            while let Ok(connection) = accept(socket) {
                self.shared.admit(connection);
                any = true;
            }
        }
        any
    }

    /// How many connections were accepted until now.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }
}

fn accept(socket: &AsyncOwnedFd) -> io::Result<OwnedFd> {
    Ok(accept_with(socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?)
}

impl Shared {
    async fn accept_all(self: Arc<Self>, index: usize) {
        let Some(socket) = self.sockets.get(index) else {
            return;
        };
        loop {
            let Ok(mut guard) = socket.readable().await else {
                return;
            };
            match accept(socket) {
                Ok(connection) => {
                    self.admit(connection);
                    // Callers can connect as fast as they are accepted: those that are there get their turn.
                    tokio::task::yield_now().await;
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => guard.clear_ready(),
                    // Gone again before it was accepted.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    _ => {
                        tracing::warn!("no connection can be accepted: {error}");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
            }
        }
    }

    fn admit(&self, connection: OwnedFd) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let caller = match CallerIdentity::of(connection.as_fd()) {
            Ok(caller) => Arc::new(caller),
            Err(error) => {
                tracing::error!("a connection is closed because the kernel does not say whose it is: {error}");
                return;
            }
        };
        match self.slot(&caller) {
            Ok(slot) => self.serve(connection, &caller, slot),
            Err(error) => {
                // One attempt: the reply fits into an empty socket, and who does not read it is not waited for.
                if let Ok(bytes) = Reply::from(&error).encode() {
                    let _ = Outgoing::new(bytes, Vec::new(), None).send(connection.as_fd());
                }
                self.service.slow.close_connection(caller.uid(), connection);
            }
        }
    }

    fn slot(&self, caller: &CallerIdentity) -> Result<Slot, Error> {
        if caller.is_hidden(self.service.overflow) {
            return Err(refuse_hidden(&self.service, caller));
        }
        if self.service.slow.is_full(caller.uid()) {
            return Err(self.service.busy_with(caller.shown(), "descriptors", slow::WAITING));
        }
        let slot = self.service.quota.connection(caller.uid(), &self.service.settings());
        slot.map_err(|exceeded| self.service.busy(caller.shown(), exceeded))
    }

    fn serve(&self, connection: OwnedFd, caller: &Arc<CallerIdentity>, slot: Slot) {
        let service = &self.service;
        let settings = service.settings();
        let account = service.quota.bytes(caller.uid());
        let connection = match Connection::new(connection, Arc::clone(caller), &settings, account, service.slow.clone()) {
            Ok(connection) => connection,
            Err(error) => {
                tracing::error!("a connection of uid {} cannot be served: {error}", caller.uid());
                return;
            }
        };
        let session = Session::new(Arc::clone(service), Arc::clone(&self.files), connection);
        let (slow, uid) = (service.slow.clone(), caller.uid());
        tokio::task::spawn_local(async move {
            let socket = session.serve().await;
            slow.close_connection(uid, socket);
            drop(slot);
        });
    }
}

/// Its uid or gid stands for everybody whom this user namespace does not map.
fn refuse_hidden(service: &Service, caller: &CallerIdentity) -> Error {
    let message = "your user or group is not mapped in the service's user namespace, or is the overflow id";
    let event = Event::Denied {
        caller: Arc::clone(caller.shown()),
        command: None,
        reason: "overflow-id",
        detail: message.into(),
    };
    service.denied(caller, &event);
    Error::NotPermitted {
        reason: "overflow-id".into(),
        message: message.into(),
    }
}
