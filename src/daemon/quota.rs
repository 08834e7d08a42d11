//! What one user can hold at once: connections, running commands, bytes; and what all can. Some of all of it is kept for root, so that
//! Reload and GetStatus get through whatever the others do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::config::Settings;
use crate::protocol::io_rootwrap::{CallerStatus, Counters};

/// Bytes of requests and captured output that one user can have the service hold.
const BYTES_PER_UID: usize = 64 * 1024 * 1024;
/// And all users together.
const BYTES: usize = 512 * 1024 * 1024;
/// One in this many of every limit is kept for root.
const RESERVE: u32 = 16;
/// Idle users whose counters are kept for GetStatus.
const REMEMBERED: usize = 1024;

/// What can run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Connections.
    Connections,
    /// Running commands.
    Commands,
    /// Bytes held.
    Bytes,
}

impl Limit {
    /// As in `Busy` and in the journal.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Commands => "commands",
            Self::Bytes => "bytes",
        }
    }
}

/// A limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Which.
    pub limit: Limit,
    /// Its value.
    pub value: u32,
}

/// Counts what is held, per user and in all. Cheap to clone: all clones count together.
#[derive(Clone, Debug, Default)]
pub struct Quota(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    books: Mutex<Books>,
    /// Something was given back.
    returned: Notify,
}

#[derive(Debug, Default)]
struct Books {
    all: Usage,
    by_uid: HashMap<u32, Usage>,
    by_filter: HashMap<String, u32>,
}

#[derive(Clone, Debug, Default)]
struct Usage {
    connections: u32,
    commands: u32,
    bytes: usize,
    counters: Counters,
}

impl Usage {
    fn held(&mut self, limit: Limit) -> Held<'_> {
        match limit {
            Limit::Connections => Held::Count(&mut self.connections),
            Limit::Commands => Held::Count(&mut self.commands),
            Limit::Bytes => Held::Bytes(&mut self.bytes),
        }
    }

    fn is_idle(&self) -> bool {
        self.connections == 0 && self.commands == 0 && self.bytes == 0
    }
}

enum Held<'a> {
    Count(&'a mut u32),
    Bytes(&'a mut usize),
}

impl Held<'_> {
    fn get(&self) -> usize {
        match self {
            Self::Count(count) => usize::try_from(**count).unwrap_or(usize::MAX),
            Self::Bytes(bytes) => **bytes,
        }
    }

    fn set(&mut self, value: usize) {
        match self {
            Self::Count(count) => **count = u32::try_from(value).unwrap_or(u32::MAX),
            Self::Bytes(bytes) => **bytes = value,
        }
    }
}

impl Quota {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more connection of this user.
    ///
    /// # Errors
    /// [`Exceeded`].
    pub fn connection(&self, uid: u32, settings: &Settings) -> Result<Slot, Exceeded> {
        let limits = (settings.max_connections_per_uid, settings.max_connections);
        self.slot(uid, Limit::Connections, 1, limits)
    }

    /// One more running command of this user.
    ///
    /// # Errors
    /// [`Exceeded`].
    pub fn command(&self, uid: u32, settings: &Settings) -> Result<Slot, Exceeded> {
        let limits = (settings.max_commands_per_uid, settings.max_commands);
        self.slot(uid, Limit::Commands, 1, limits)
    }

    /// An account for bytes that the service holds for this user; nothing yet.
    #[must_use]
    pub fn bytes(&self, uid: u32) -> Slot {
        Slot {
            quota: self.clone(),
            uid,
            limit: Limit::Bytes,
            amount: 0,
        }
    }

    fn slot(&self, uid: u32, limit: Limit, amount: usize, limits: (u32, u32)) -> Result<Slot, Exceeded> {
        let mut slot = Slot {
            quota: self.clone(),
            uid,
            limit,
            amount: 0,
        };
        let (own, all) = limits;
        slot.grow(amount, own as usize, all as usize)?;
        Ok(slot)
    }

    /// One more running command of this filter; `None`: as many run as it allows.
    #[must_use]
    pub fn filter(&self, name: &str, max_concurrent: u32) -> Option<FilterSlot> {
        let mut books = self.books();
        let running = books.by_filter.entry(name.to_owned()).or_default();
        if *running >= max_concurrent {
            return None;
        }
        *running += 1;
        Some(FilterSlot {
            quota: self.clone(),
            name: name.to_owned(),
        })
    }

    /// Counts something for GetStatus.
    pub fn count(&self, uid: u32, count: impl Fn(&mut Counters)) {
        let mut books = self.books();
        count(&mut books.all.counters);
        count(&mut books.by_uid.entry(uid).or_default().counters);
        books.forget_idle();
    }

    /// Open connections, of all users.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.books().all.connections
    }

    /// Running commands, of all users.
    #[must_use]
    pub fn commands(&self) -> u32 {
        self.books().all.commands
    }

    /// Waits until nobody holds a connection or a command.
    pub async fn until_unused(&self) {
        loop {
            let returned = self.0.returned.notified();
            if self.connections() == 0 && self.commands() == 0 {
                return;
            }
            returned.await;
        }
    }

    /// For GetStatus: the counters and users that this caller may see.
    #[must_use]
    pub fn status(&self, uid: u32) -> (Counters, Vec<CallerStatus>) {
        let books = self.books();
        let seen = books.by_uid.iter().filter(|(other, _)| uid == 0 || **other == uid);
        let mut callers: Vec<_> = seen.map(|(uid, usage)| usage.status(*uid)).collect();
        callers.sort_unstable_by_key(|caller| caller.uid);
        let counters = if uid == 0 {
            books.all.counters
        } else {
            callers.first().map_or_else(Counters::default, |caller| caller.counters)
        };
        (counters, callers)
    }
}

impl Usage {
    fn status(&self, uid: u32) -> CallerStatus {
        CallerStatus {
            uid,
            connections: self.connections,
            commands: self.commands,
            counters: self.counters,
        }
    }
}

impl Books {
    /// Users that hold nothing are only remembered up to a number.
    fn forget_idle(&mut self) {
        if self.by_uid.len() > REMEMBERED.saturating_mul(2) {
            let mut room = REMEMBERED;
            self.by_uid.retain(|_, usage| {
                let keep = !usage.is_idle() || room > 0;
                room = room.saturating_sub(usize::from(usage.is_idle()));
                keep
            });
        }
    }
}

/// Something held; given back when dropped.
#[derive(Debug)]
pub struct Slot {
    quota: Quota,
    uid: u32,
    limit: Limit,
    amount: usize,
}

impl Slot {
    /// Holds this many bytes from now on. Where that is more than allowed, nothing changes.
    ///
    /// # Errors
    /// [`Exceeded`].
    pub fn set_bytes(&mut self, amount: usize) -> Result<(), Exceeded> {
        match amount.checked_sub(self.amount) {
            Some(0) => Ok(()),
            Some(more) => self.grow(more, BYTES_PER_UID, BYTES),
            None => {
                self.give_back(self.amount.saturating_sub(amount));
                Ok(())
            }
        }
    }

    /// Bytes held.
    #[must_use]
    pub fn amount(&self) -> usize {
        self.amount
    }

    fn grow(&mut self, more: usize, own_limit: usize, all_limit: usize) -> Result<(), Exceeded> {
        let mut books = self.quota.books();
        let is_root = self.uid == 0;
        let all_limit = if is_root {
            all_limit
        } else {
            all_limit - all_limit.div_ceil(RESERVE as usize)
        };
        let own_limit = if is_root { all_limit } else { own_limit };
        let all = books.all.held(self.limit).get().saturating_add(more);
        let own = books
            .by_uid
            .get_mut(&self.uid)
            .map_or(0, |usage| usage.held(self.limit).get())
            .saturating_add(more);
        for (held, limit) in [(own, own_limit), (all, all_limit)] {
            if held > limit {
                return Err(Exceeded {
                    limit: self.limit,
                    value: u32::try_from(limit).unwrap_or(u32::MAX),
                });
            }
        }
        books.all.held(self.limit).set(all);
        books.by_uid.entry(self.uid).or_default().held(self.limit).set(own);
        books.forget_idle();
        self.amount = self.amount.saturating_add(more);
        Ok(())
    }

    fn give_back(&mut self, less: usize) {
        let mut books = self.quota.books();
        let mut all = books.all.held(self.limit);
        let rest = all.get().saturating_sub(less);
        all.set(rest);
        if let Some(usage) = books.by_uid.get_mut(&self.uid) {
            let mut own = usage.held(self.limit);
            let rest = own.get().saturating_sub(less);
            own.set(rest);
        }
        drop(books);
        self.amount = self.amount.saturating_sub(less);
        self.quota.0.returned.notify_waiters();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.give_back(self.amount);
    }
}

/// A running command of a filter with `max_concurrent`.
#[derive(Debug)]
pub struct FilterSlot {
    quota: Quota,
    name: String,
}

impl Drop for FilterSlot {
    fn drop(&mut self) {
        let mut books = self.quota.books();
        if let Some(running) = books.by_filter.get_mut(&self.name) {
            *running = running.saturating_sub(1);
            if *running == 0 {
                books.by_filter.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            max_connections: 16,
            max_connections_per_uid: 4,
            ..Settings::default()
        }
    }

    #[test]
    fn given_one_user_at_the_limit_then_others_are_served() {
        let (quota, settings) = (Quota::default(), settings());
        let held: Vec<_> = (0..4).map(|_| quota.connection(1000, &settings).unwrap()).collect();
        let exceeded = quota.connection(1000, &settings).unwrap_err();
        assert_eq!((exceeded.limit, exceeded.value), (Limit::Connections, 4));
        let other = quota.connection(1001, &settings).unwrap();
        assert_eq!(quota.connections(), 5);
        drop((held, other));
        assert_eq!(quota.connections(), 0);
        quota.connection(1000, &settings).unwrap();
    }

    #[test]
    fn given_all_users_at_the_limit_then_root_is_served() {
        let (quota, settings) = (Quota::default(), settings());
        let held: Vec<_> = (1000..1100).filter_map(|uid| quota.connection(uid, &settings).ok()).collect();
        assert_eq!(held.len(), 15);
        let root = quota.connection(0, &settings).unwrap();
        assert!(quota.connection(0, &settings).is_err());
        drop(root);
    }

    #[test]
    fn given_bytes_then_growing_and_shrinking_is_counted_and_bounded() {
        let quota = Quota::default();
        let mut account = quota.bytes(1000);
        account.set_bytes(BYTES_PER_UID).unwrap();
        assert_eq!(account.set_bytes(BYTES_PER_UID + 1).unwrap_err().limit, Limit::Bytes);
        let mut second = quota.bytes(1000);
        assert!(second.set_bytes(1).is_err());
        account.set_bytes(10).unwrap();
        second.set_bytes(1).unwrap();
        drop((account, second));
        assert_eq!(quota.books().all.bytes, 0);
    }

    #[test]
    fn given_a_filter_with_max_concurrent_then_the_next_one_waits_for_nobody() {
        let quota = Quota::default();
        let first = quota.filter("f", 1).unwrap();
        assert!(quota.filter("f", 1).is_none());
        drop(first);
        assert!(quota.filter("f", 1).is_some());
    }

    #[test]
    fn given_very_many_users_then_idle_ones_are_forgotten_and_the_sum_stays() {
        let quota = Quota::default();
        for uid in 1..100_000 {
            quota.count(uid, |counters| counters.denied += 1);
        }
        assert!(quota.books().by_uid.len() <= 2 * REMEMBERED + 1);
        assert_eq!(quota.status(0).0.denied, 99_999);
    }
}
