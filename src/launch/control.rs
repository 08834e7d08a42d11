//! rootwrapd's end of the launcher's socket: one task owns it, so a request that nobody waits for any more cannot give its child to
//! another.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::sync::{mpsc, oneshot};

use super::handover::{Child, Unburied};
use super::launcher::{REQUEST, Reply};
use super::pool::LaunchError;
use crate::sys::async_fd::AsyncOwnedFd;
use crate::sys::cgroup::Cgroup;
use crate::sys::socket::{recv_with, send_with};

/// Where a child is to be born.
#[derive(Debug)]
pub(super) enum Birthplace {
    /// In the launcher's cgroup.
    Launcher,
    /// In a cgroup of its own.
    Own(Cgroup),
    /// In this one of somebody else.
    Foreign(OwnedFd),
}

struct Request {
    birthplace: Birthplace,
    reply: oneshot::Sender<Result<Child, LaunchError>>,
}

/// Asks the launcher for children; cheap to clone. The launcher ends when the last one is dropped.
#[derive(Clone, Debug)]
pub(super) struct Control(mpsc::UnboundedSender<Request>);

impl Control {
    /// Starts the task on the current runtime.
    pub fn start(socket: OwnedFd, unburied: Unburied) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let socket = AsyncOwnedFd::register(socket, Interest::READABLE | Interest::WRITABLE)?;
        // Unbounded: whoever asks waits for the answer, and how many may ask is limited before.
        let (sender, requests) = mpsc::unbounded_channel();
        tokio::spawn(serve(socket, requests, unburied));
        Ok(Self(sender))
    }

    /// A new child, parked. Cancel safe: a child that comes too late is killed.
    pub async fn fork(&self, birthplace: Birthplace) -> Result<Child, LaunchError> {
        let (reply, answer) = oneshot::channel();
        let request = Request { birthplace, reply };
        self.0.send(request).map_err(|_| LaunchError::LauncherGone)?;
        answer.await.unwrap_or(Err(LaunchError::LauncherGone))
    }
}

async fn serve(socket: AsyncOwnedFd, mut requests: mpsc::UnboundedReceiver<Request>, unburied: Unburied) {
    while let Some(Request { birthplace, reply }) = requests.recv().await {
        if reply.is_closed() {
            discard(birthplace);
            continue;
        }
        let forked = fork(&socket, birthplace, &unburied).await;
        let gone = matches!(forked, Err(LaunchError::LauncherGone));
        // Where nobody waits any more the child is dropped, which kills it.
        let _ = reply.send(forked);
        if gone {
            // All who wait, and all who ask from now on, hear that it is gone.
            return;
        }
    }
}

async fn fork(socket: &AsyncOwnedFd, birthplace: Birthplace, unburied: &Unburied) -> Result<Child, LaunchError> {
    match ask(socket, &birthplace).await {
        Ok((pid, pidfd, childs_socket)) => {
            let cgroup = match birthplace {
                Birthplace::Own(cgroup) => Some(cgroup),
                Birthplace::Launcher | Birthplace::Foreign(_) => None,
            };
            Child::new(pid, pidfd, childs_socket, cgroup, unburied.clone())
        }
        Err(error) => {
            discard(birthplace);
            Err(error)
        }
    }
}

/// Removes the cgroup that no child was born in.
fn discard(birthplace: Birthplace) {
    if let Birthplace::Own(cgroup) = birthplace {
        // Empty, so this can only fail where somebody else put something there.
        let _ = cgroup.remove();
    }
}

async fn ask(socket: &AsyncOwnedFd, birthplace: &Birthplace) -> Result<(u32, OwnedFd, OwnedFd), LaunchError> {
    let gone = |_: io::Error| LaunchError::LauncherGone;
    let opened;
    let cgroup = match birthplace {
        Birthplace::Launcher => None,
        Birthplace::Own(cgroup) => {
            opened = cgroup.open().map_err(|error| LaunchError::fork(&error))?;
            Some(opened.as_fd())
        }
        Birthplace::Foreign(cgroup) => Some(cgroup.as_fd()),
    };
    send(socket, cgroup).await.map_err(gone)?;
    let mut buffer = [0; Reply::SIZE + 1];
    let received = socket
        .async_io(Interest::READABLE, |socket| recv_with(socket.as_fd(), &mut buffer, 3))
        .await
        .map_err(gone)?;
    let reply = buffer.get(..received.len).and_then(Reply::decode);
    let mut descriptors = received.fds.into_iter();
    match (reply, descriptors.next(), descriptors.next(), descriptors.next()) {
        (Some(Reply(Ok(pid))), Some(pidfd), Some(socket), None) => Ok((pid, pidfd, socket)),
        (Some(Reply(Err(errno))), None, ..) => Err(LaunchError::Fork { errno }),
        // It is no longer the program that we started, or it has ended: nothing that it says is of use.
        _ => Err(LaunchError::LauncherGone),
    }
}

async fn send(socket: &AsyncOwnedFd, cgroup: Option<BorrowedFd<'_>>) -> io::Result<usize> {
    let send = |socket: &OwnedFd| send_with(socket.as_fd(), &REQUEST, cgroup.as_slice(), None);
    socket.async_io(Interest::WRITABLE, send).await
}
