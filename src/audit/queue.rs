//! Records that wait for the journal: bounded in number and bytes.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::{Kind, Lost};

/// Most records that wait.
const RECORDS: usize = 8192;
/// Most bytes that wait. One record may be as large as the largest argument list and always finds room in an empty queue.
const BYTES: usize = 16 * 1024 * 1024;

/// A record that waits.
#[derive(Debug)]
pub struct Pending {
    /// What it is about.
    pub kind: Kind,
    /// The record.
    pub bytes: Vec<u8>,
    /// Told when it was handed over; where the other end is gone, the record must not be sent any more.
    pub waiter: Option<oneshot::Sender<()>>,
}

impl Pending {
    /// Its command was refused in the meantime: a record that it was allowed would be a lie.
    pub fn is_withdrawn(&self) -> bool {
        self.waiter.as_ref().is_some_and(oneshot::Sender::is_closed)
    }
}

/// First in, first out.
#[derive(Debug, Default)]
pub struct Queue {
    records: VecDeque<Pending>,
    bytes: usize,
    /// What did not fit.
    pub lost: Lost,
}

impl Queue {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The oldest record that is still wanted.
    pub fn front(&mut self) -> Option<&Pending> {
        while self.records.front().is_some_and(Pending::is_withdrawn) {
            self.pop();
        }
        self.records.front()
    }

    /// Takes the oldest record.
    pub fn pop(&mut self) -> Option<Pending> {
        let pending = self.records.pop_front()?;
        self.bytes = self.bytes.saturating_sub(pending.bytes.len());
        Some(pending)
    }

    /// Adds a record; where it does not fit, drops it and says so. One that nobody waits for is then counted as lost.
    pub fn push(&mut self, pending: Pending) -> bool {
        let fits = self.records.len() < RECORDS && (self.is_empty() || self.bytes.saturating_add(pending.bytes.len()) <= BYTES);
        if fits {
            self.bytes = self.bytes.saturating_add(pending.bytes.len());
            self.records.push_back(pending);
        } else if pending.waiter.is_none() {
            self.lost.add(pending.kind, 1);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(size: usize) -> Pending {
        Pending {
            kind: Kind::Denied,
            bytes: vec![0; size],
            waiter: None,
        }
    }

    #[test]
    fn given_too_many_records_then_the_rest_is_counted() {
        let mut queue = Queue::default();
        let fitted = (0..RECORDS + 7).filter(|_| queue.push(pending(1))).count();
        assert_eq!((fitted, queue.lost.total()), (RECORDS, 7));
        queue.pop();
        assert!(queue.push(pending(1)));
    }

    #[test]
    fn given_too_many_bytes_then_the_rest_is_counted() {
        let mut queue = Queue::default();
        assert!(queue.push(pending(BYTES + 1)));
        assert!(!queue.push(pending(1)));
        assert_eq!(queue.lost.by_kind.get(&Kind::Denied), Some(&1));
    }

    #[test]
    fn a_record_whose_command_was_refused_is_never_sent() {
        let mut queue = Queue::default();
        let (sender, receiver) = oneshot::channel();
        let mut withdrawn = pending(1);
        withdrawn.waiter = Some(sender);
        queue.push(withdrawn);
        queue.push(pending(2));
        drop(receiver);
        assert_eq!(queue.front().unwrap().bytes.len(), 2);
    }
}
