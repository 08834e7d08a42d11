//! Captured output: as much as the limit allows is kept, the rest is read and dropped, so that the command never waits for us.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::Interest;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::task::coop::consume_budget;

use super::quota::Slot;
use crate::sys::async_fd::AsyncOwnedFd;

/// What was captured of one stream.
#[derive(Debug, Default)]
pub struct Captured {
    /// The first bytes, up to the limit.
    pub bytes: Vec<u8>,
    /// There was more.
    pub truncated: bool,
    /// The bytes' place in the caller's quota.
    account: Option<Slot>,
}

/// A stream being captured by a task of its own.
#[derive(Debug)]
pub struct Capture {
    reader: JoinHandle<Captured>,
    finish: oneshot::Sender<()>,
}

impl Capture {
    /// A pipe: the end for the command, and the capture of what it writes, at most `limit` bytes and as many as `account` takes.
    ///
    /// # Errors
    /// EMFILE and the like.
    pub fn start(limit: usize, account: Slot) -> io::Result<(OwnedFd, Self)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: a command does not expect its output to be nonblocking.
        let flags = rustix::fs::fcntl_getfl(&read)?;
        rustix::fs::fcntl_setfl(&read, flags | rustix::fs::OFlags::NONBLOCK)?;
        let read = AsyncOwnedFd::register(read, Interest::READABLE)?;
        let (finish, finished) = oneshot::channel();
        let reader = tokio::spawn(read_all(read, limit, account, finished));
        Ok((write, Self { reader, finish }))
    }

    /// What was written until now. Called when the command has ended: a descendant that still holds the pipe is not waited for.
    pub async fn finish(self) -> Captured {
        // The reader may be at the end already.
        let _ = self.finish.send(());
        self.reader.await.unwrap_or_default()
    }
}

async fn read_all(pipe: AsyncOwnedFd, limit: usize, account: Slot, mut finished: oneshot::Receiver<()>) -> Captured {
    let mut captured = Captured {
        account: Some(account),
        ..Captured::default()
    };
    let mut buffer = vec![0_u8; 16 * 1024];
    loop {
        // A command that writes all the time must not keep the others waiting.
        consume_budget().await;
        let last = tokio::select! {
            biased;
            // First: a descendant of the command that writes without end must not keep us from stopping.
            _ = &mut finished => true,
            ready = pipe.readable() => match ready {
                Ok(mut guard) => match read_some(&pipe, &mut buffer, limit, &mut captured) {
                    Some(true) => false,
                    Some(false) => { guard.clear_ready(); false }
                    None => return captured,
                },
                Err(_) => return captured,
            },
        };
        if last {
            // Readiness may not have been told yet; what is in the pipe is taken, at most as much as a pipe can hold.
            for _ in 0..1024 {
                if read_some(&pipe, &mut buffer, limit, &mut captured) != Some(true) {
                    break;
                }
            }
            return captured;
        }
    }
}

/// One read. `Some(false)`: nothing there now; `None`: the end.
fn read_some(pipe: &AsyncOwnedFd, buffer: &mut [u8], limit: usize, captured: &mut Captured) -> Option<bool> {
    match rustix::io::read(pipe, &mut *buffer) {
        Ok(0) => None,
        Ok(length) => {
            captured.keep(buffer.get(..length).unwrap_or_default(), limit);
            Some(true)
        }
        Err(Errno::INTR) => Some(true),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

impl Captured {
    fn keep(&mut self, piece: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.bytes.len()).min(piece.len());
        let total = self.bytes.len().saturating_add(room);
        let affordable = !self.truncated && self.account.as_mut().is_none_or(|account| account.set_bytes(total).is_ok());
        match piece.get(..room) {
            Some(kept) if affordable => {
                self.bytes.extend_from_slice(kept);
                self.truncated = room < piece.len();
            }
            _ => self.truncated = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::quota::Quota;

    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test)
    }

    fn writer(write: OwnedFd, length: usize) -> JoinHandle<()> {
        tokio::task::spawn_blocking(move || {
            let mut sent = 0;
            while sent < length {
                sent += rustix::io::write(&write, &vec![b'x'; (length - sent).min(4096)]).unwrap();
            }
        })
    }

    #[test]
    fn given_less_than_the_limit_then_all_of_it_is_there() {
        run(async {
            let (write, capture) = Capture::start(1000, Quota::default().bytes(1)).unwrap();
            writer(write, 1000).await.unwrap();
            let captured = capture.finish().await;
            assert_eq!((captured.bytes.len(), captured.truncated), (1000, false));
        });
    }

    #[test]
    fn given_far_more_than_the_limit_then_the_command_is_not_blocked_and_it_says_so() {
        run(async {
            let quota = Quota::default();
            let (write, capture) = Capture::start(1000, quota.bytes(1)).unwrap();
            writer(write, 5_000_000).await.unwrap();
            let captured = capture.finish().await;
            assert_eq!((captured.bytes.len(), captured.truncated), (1000, true));
        });
    }

    #[test]
    fn given_a_descendant_that_keeps_the_pipe_then_nobody_waits_for_it() {
        run(async {
            let (write, capture) = Capture::start(1000, Quota::default().bytes(1)).unwrap();
            let kept = write.try_clone().unwrap();
            writer(write, 10).await.unwrap();
            assert_eq!(capture.finish().await.bytes.len(), 10);
            drop(kept);
        });
    }
}
