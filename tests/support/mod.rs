//! A service for the clients' tests: a listening socket and one connection, played by the test.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::JoinHandle;

use rootwrap::protocol::framing::{Outgoing, receive};
use rootwrap::protocol::run::{Run, RunReply, RunState};
use rootwrap::protocol::{Call, Decoder, MESSAGE_SIZE, Message, Method, Reply};
use rootwrap::sys::passed::PassedFd;
use rootwrap::sys::{peer, socket};

/// Listens; the first connection is handed to the test's closure, whose assertions count when the service is dropped.
pub struct Service {
    directory: tempfile::TempDir,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub fn start(play: impl FnOnce(Peer) + Send + 'static) -> Self {
        Self::listen(play, None)
    }

    /// The socket's file belongs to this user.
    pub fn start_as(uid: u32, play: impl FnOnce(Peer) + Send + 'static) -> Self {
        Self::listen(play, Some(uid))
    }

    fn listen(play: impl FnOnce(Peer) + Send + 'static, owner: Option<u32>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sock");
        let listener = UnixListener::bind(&path).unwrap();
        socket::set_pass_credentials(listener.as_fd(), true).unwrap();
        std::os::unix::fs::chown(&path, owner, None).unwrap();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            play(Peer::over(stream));
        });
        Self {
            directory,
            thread: Some(thread),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("sock")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let result = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            result.unwrap();
        }
    }
}

/// The service's end of one connection.
pub struct Peer {
    stream: UnixStream,
    decoder: Decoder,
}

impl Peer {
    pub fn over(stream: UnixStream) -> Self {
        Self {
            stream,
            decoder: Decoder::new(MESSAGE_SIZE),
        }
    }

    /// A whole message; `None` at the end. Its sender must say who it is.
    pub fn message(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.decoder.take() {
                assert_eq!(message.fault, None);
                return Some(message);
            }
            let receipt = receive(self.stream.as_fd(), &mut self.decoder, 4).unwrap();
            if receipt.len == 0 {
                return None;
            }
            let connected = peer::credentials(self.stream.as_fd()).unwrap();
            let sender = receipt.credentials.unwrap();
            assert_eq!((sender.uid, sender.gid), (connected.uid, connected.gid));
        }
    }

    pub fn next_call(&mut self) -> Option<(Call, Vec<PassedFd>)> {
        let message = self.message()?;
        Some((Call::parse(&message.bytes).unwrap(), message.fds))
    }

    pub fn method(&mut self) -> Method {
        Method::parse(self.next_call().unwrap().0).unwrap()
    }

    pub fn run(&mut self) -> (Run, Vec<PassedFd>) {
        let (call, fds) = self.next_call().expect("a Run");
        match Method::parse(call).unwrap() {
            Method::Run(run) => (*run, fds),
            other => panic!("not Run: {other:?}"),
        }
    }

    pub fn signal(&mut self) -> (String, i32) {
        let (call, _) = self.next_call().expect("a Signal");
        assert!(call.oneway);
        match Method::parse(call).unwrap() {
            Method::Signal(signal) => (signal.id, signal.signal),
            other => panic!("not Signal: {other:?}"),
        }
    }

    pub fn send(&mut self, reply: &Reply) {
        self.raw(&reply.encode().unwrap());
    }

    pub fn raw(&mut self, text: &[u8]) {
        Outgoing::new(text.to_vec(), vec![], None).send_all(self.stream.as_fd()).unwrap();
    }

    pub fn reply(&mut self, parameters: &impl serde::Serialize) {
        self.send(&Reply::success(parameters).unwrap());
    }

    pub fn reply_more(&mut self, parameters: &impl serde::Serialize) {
        self.send(&Reply::continuing(parameters).unwrap());
    }
}

pub fn started(id: &str) -> RunReply {
    RunReply {
        pid: Some(1),
        ..RunReply::new(RunState::Started, id)
    }
}

pub fn exited(id: &str) -> RunReply {
    RunReply {
        exit_code: Some(0),
        ..RunReply::new(RunState::Exited, id)
    }
}
