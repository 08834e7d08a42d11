//! Hands records to the journal: bounded, in order, never blocking the service.
//!
//! [`Sink::record`] is for what must be in the journal before something happens: it returns once the record is queued with
//! journald, or with [`Unavailable`] when the deadline is over; the record is then withdrawn. After one such failure every further
//! call fails at once until the journal takes a record again, so that waiting requests do not pile up. [`Sink::post`] is for the
//! rest: what does not fit into the queue is counted, and the count is recorded as soon as the journal takes records again.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::Interest;
use tokio::sync::{Notify, oneshot};

use super::journal::{Journal, SendError};
use super::queue::{Pending, Queue};
use super::rates::Rates;
use super::{Event, Kind};
use crate::sys::async_fd::AsyncOwnedFd;

/// A socket that should become writable is looked at again after this time all the same: it may have died in between.
const RECHECK: Duration = Duration::from_millis(500);
/// Between attempts to reach a journal that is not there: from this, doubled, to [`RECHECK`].
const FIRST_RETRY: Duration = Duration::from_millis(20);
/// Records that one flush hands over, at most.
const AT_ONCE: usize = 256;
/// Denials are aggregated by this interval.
const INTERVAL: Duration = Duration::from_secs(1);
/// Limits that were hit are aggregated by this many intervals.
const LIMIT_INTERVALS: u32 = 10;

/// The journal did not take a record in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal does not take records; see: systemctl status systemd-journald.service")]
pub struct Unavailable;

/// The way into the journal. Shared by all tasks of the service.
#[derive(Debug)]
pub struct Sink {
    socket: AsyncOwnedFd,
    state: Mutex<State>,
    queued: Notify,
    counted: Notify,
}

#[derive(Debug)]
struct State {
    journal: Journal,
    queue: Queue,
    rates: Rates,
    /// A record had to be withdrawn, and none was taken since.
    stalled: bool,
}

/// How a flush ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushed {
    All,
    /// The journal takes them, and the others in this process have their turn first.
    More,
    Full,
    Unreachable,
}

impl Sink {
    /// A sink on a socket of [`super::open`], and the tasks that serve it. Call inside the runtime.
    ///
    /// # Errors
    /// When the runtime does not take the socket.
    pub fn start(socket: OwnedFd, path: &Path, denials_per_second: u32) -> std::io::Result<Arc<Self>> {
        let sink = Arc::new(Self {
            socket: AsyncOwnedFd::register(socket, Interest::WRITABLE)?,
            state: Mutex::new(State {
                journal: Journal::new(path),
                queue: Queue::default(),
                rates: Rates::new(denials_per_second),
                stalled: false,
            }),
            queued: Notify::new(),
            counted: Notify::new(),
        });
        tokio::spawn(Arc::clone(&sink).serve_queue());
        tokio::spawn(Arc::clone(&sink).serve_rates());
        Ok(sink)
    }

    /// Changes how many denials a second of each uid get a record of their own.
    pub fn set_denials_per_second(&self, rate: u32) {
        self.lock().rates.set(rate);
    }

    /// Hands a record to the journal within `deadline`.
    ///
    /// # Errors
    /// [`Unavailable`]: it was not handed over, and will not be.
    pub async fn record(&self, event: &Event, deadline: Duration) -> Result<(), Unavailable> {
        let receiver = match self.try_record(event)? {
            None => return Ok(()),
            Some(receiver) => receiver,
        };
        self.queued.notify_one();
        if let Ok(Ok(())) = tokio::time::timeout(deadline, receiver).await {
            return Ok(());
        }
        self.lock().stalled = true;
        Err(Unavailable)
    }

    /// One attempt; `Some`: the record waits in the queue.
    fn try_record(&self, event: &Event) -> Result<Option<oneshot::Receiver<()>>, Unavailable> {
        let mut state = self.lock();
        let bytes = event.encode();
        if state.flush(self.socket.as_fd()) == Flushed::All && state.send(self.socket.as_fd(), &bytes).is_ok() {
            return Ok(None);
        }
        let (sender, receiver) = oneshot::channel();
        let pending = Pending {
            kind: event.kind(),
            bytes,
            waiter: Some(sender),
        };
        if state.stalled || !state.queue.push(pending) {
            return Err(Unavailable);
        }
        Ok(Some(receiver))
    }

    /// Hands a record over when the journal takes it. Denials, bad requests and limits beyond their rate are counted instead.
    pub fn post(&self, event: &Event) {
        let mut state = self.lock();
        let admitted = state.rates.admit(event);
        if !state.rates.is_idle() {
            self.counted.notify_one();
        }
        if admitted {
            state.post(self.socket.as_fd(), event);
            if !state.queue.is_empty() || state.queue.lost.total() > 0 {
                self.queued.notify_one();
            }
        }
    }

    /// Waits until all records are handed over, at most this long. For the end of the service.
    pub async fn drain(&self, deadline: Duration) {
        let all = async {
            let mut retry = FIRST_RETRY;
            while self.flush_when_possible(&mut retry).await != Flushed::All {}
        };
        let aggregates = self.lock().rates.end_interval(true);
        aggregates.iter().for_each(|event| self.post(event));
        // What the journal did not take by then cannot be kept.
        let _ = tokio::time::timeout(deadline, all).await;
    }

    async fn serve_queue(self: Arc<Self>) {
        let mut retry = FIRST_RETRY;
        loop {
            if self.flush_when_possible(&mut retry).await == Flushed::All {
                self.queued.notified().await;
            }
        }
    }

    /// Flushes; where the journal took not everything, waits until another attempt makes sense.
    async fn flush_when_possible(&self, retry: &mut Duration) -> Flushed {
        let flushed = self.flush();
        match flushed {
            Flushed::All => *retry = FIRST_RETRY,
            Flushed::More => tokio::task::yield_now().await,
            Flushed::Unreachable => {
                tokio::time::sleep(*retry).await;
                *retry = retry.saturating_mul(2).min(RECHECK);
            }
            Flushed::Full => {
                if let Ok(Ok(mut guard)) = tokio::time::timeout(RECHECK, self.socket.writable()).await {
                    if self.flush() == Flushed::Full {
                        guard.clear_ready();
                    }
                }
            }
        }
        flushed
    }

    async fn serve_rates(self: Arc<Self>) {
        let mut interval = 0_u32;
        loop {
            self.counted.notified().await;
            while !self.lock().rates.is_idle() {
                tokio::time::sleep(INTERVAL).await;
                interval = interval.wrapping_add(1);
                let aggregates = self.lock().rates.end_interval(interval % LIMIT_INTERVALS == 0);
                aggregates.iter().for_each(|event| self.post(event));
            }
        }
    }

    fn flush(&self) -> Flushed {
        self.lock().flush(self.socket.as_fd())
    }

    /// Held for one attempt, never across an await. A panic in between leaves nothing half done that matters here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn send(&mut self, socket: std::os::fd::BorrowedFd<'_>, record: &[u8]) -> Result<(), SendError> {
        self.journal.send(socket, record)?;
        self.stalled = false;
        Ok(())
    }

    fn flush(&mut self, socket: std::os::fd::BorrowedFd<'_>) -> Flushed {
        for _ in 0..AT_ONCE {
            let Some(pending) = self.queue.front() else {
                return self.report_lost(socket);
            };
            match self.journal.send(socket, &pending.bytes) {
                Ok(()) => self.stalled = false,
                Err(SendError::Full) => return Flushed::Full,
                Err(SendError::Unreachable(_)) => return Flushed::Unreachable,
            }
            if let Some(waiter) = self.queue.pop().and_then(|pending| pending.waiter) {
                // The receiver cannot have gone since `front` looked: nothing else ran.
                let _ = waiter.send(());
            }
        }
        Flushed::More
    }

    fn report_lost(&mut self, socket: std::os::fd::BorrowedFd<'_>) -> Flushed {
        if self.queue.lost.total() == 0 {
            return Flushed::All;
        }
        let report = Event::AuditLost(self.queue.lost.clone()).encode();
        match self.send(socket, &report) {
            Ok(()) => {
                self.queue.lost = super::Lost::default();
                Flushed::All
            }
            Err(SendError::Full) => Flushed::Full,
            Err(SendError::Unreachable(_)) => Flushed::Unreachable,
        }
    }

    fn post(&mut self, socket: std::os::fd::BorrowedFd<'_>, event: &Event) {
        let bytes = event.encode();
        if self.flush(socket) == Flushed::All && self.send(socket, &bytes).is_ok() {
            return;
        }
        let kind: Kind = event.kind();
        self.queue.push(Pending { kind, bytes, waiter: None });
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::audit::Caller;
    use crate::audit::record::parse;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(10);

    fn started() -> Event {
        Event::Started { policy: None, filters: 0 }
    }

    fn denied(uid: u32) -> Event {
        Event::Denied {
            caller: Arc::new(Caller { uid, ..Caller::default() }),
            command: None,
            reason: "no-filter",
            detail: String::new(),
        }
    }

    /// Reads what there is; the ids of the messages.
    fn read_all(server: &UnixDatagram) -> Vec<String> {
        server.set_nonblocking(true).unwrap();
        let mut buffer = vec![0; 1 << 20];
        std::iter::from_fn(|| server.recv(&mut buffer).ok().map(|n| buffer[..n].to_vec()))
            .map(|record| parse(&record).into_iter().find(|f| f.0 == "MESSAGE_ID").unwrap().1)
            .map(|id| String::from_utf8(id).unwrap())
            .collect()
    }

    fn run<F: Future>(test: impl FnOnce(std::path::PathBuf) -> F) -> F::Output {
        let directory = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test(directory.path().join("socket")))
    }

    fn sink(path: &Path) -> Arc<Sink> {
        Sink::start(super::super::open().unwrap(), path, 50).unwrap()
    }

    async fn fill(sink: &Sink) {
        while sink.record(&started(), SHORT).await.is_ok() {}
    }

    #[test]
    fn given_a_stalled_journal_then_one_call_waits_and_the_next_fail_at_once_and_it_recovers() {
        run(|path| async move {
            let server = UnixDatagram::bind(&path).unwrap();
            let sink = sink(&path);
            fill(&sink).await;
            // Would wait for a minute if it waited.
            for _ in 0..1000 {
                assert_eq!(sink.record(&started(), LONG).await, Err(Unavailable));
            }
            let taken = read_all(&server).len();
            assert!(taken > 0);
            assert_eq!(sink.record(&started(), LONG).await, Ok(()));
            assert_eq!(read_all(&server).len(), 1, "withdrawn records must not appear");
        });
    }

    #[test]
    fn given_a_reader_that_comes_back_then_a_waiting_record_is_handed_over() {
        run(|path| async move {
            let server = UnixDatagram::bind(&path).unwrap();
            let sink = sink(&path);
            while sink.try_record(&started()).unwrap().is_none() {}
            let waiting = tokio::spawn({
                let sink = Arc::clone(&sink);
                async move { sink.record(&started(), LONG).await }
            });
            tokio::task::yield_now().await;
            read_all(&server);
            assert_eq!(waiting.await.unwrap(), Ok(()));
        });
    }

    #[test]
    fn given_no_journal_then_posted_records_wait_and_arrive_when_it_is_there() {
        run(|path| async move {
            let sink = sink(&path);
            sink.post(&started());
            sink.post(&denied(1));
            let server = UnixDatagram::bind(&path).unwrap();
            sink.drain(LONG).await;
            assert_eq!(read_all(&server), [Kind::Started.message_id(), Kind::Denied.message_id()]);
        });
    }

    #[test]
    fn given_more_than_the_queue_holds_then_the_loss_is_counted_in_a_record() {
        run(|path| async move {
            let sink = sink(&path);
            for _ in 0..20_000 {
                sink.post(&started());
            }
            let lost = sink.lock().queue.lost.total();
            assert!(lost > 0);
            let server = UnixDatagram::bind(&path).unwrap();
            let reader = std::thread::spawn(move || {
                server.set_read_timeout(Some(LONG)).unwrap();
                let mut buffer = vec![0; 1 << 16];
                let mut read = 0_u64;
                loop {
                    let length = server.recv(&mut buffer).unwrap();
                    let fields = parse(&buffer[..length]);
                    let value = |name: &str| fields.iter().find(|f| f.0 == name).map(|f| String::from_utf8(f.1.clone()).unwrap());
                    if value("MESSAGE_ID").unwrap() == Kind::AuditLost.message_id() {
                        return (read, value("ROOTWRAP_COUNT").unwrap().parse::<u64>().unwrap());
                    }
                    read += 1;
                }
            });
            sink.drain(LONG).await;
            let (read, reported) = reader.join().unwrap();
            assert_eq!((read + reported, reported), (20_000, lost));
        });
    }

    #[test]
    fn given_many_denials_of_one_uid_then_the_rest_is_one_record_with_the_count() {
        run(|path| async move {
            let server = UnixDatagram::bind(&path).unwrap();
            let sink = sink(&path);
            sink.set_denials_per_second(3);
            for _ in 0..10 {
                sink.post(&denied(1000));
            }
            sink.post(&denied(0));
            sink.drain(LONG).await;
            assert_eq!(read_all(&server).len(), 3 + 1 + 1);
        });
    }
}
