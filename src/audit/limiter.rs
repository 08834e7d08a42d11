//! Records that a caller can cause at will, kept to a rate per uid; what is beyond it is counted.

use std::collections::HashMap;
use std::hash::Hash;

/// How many keys are told apart in one interval; the others share one count.
const TRACKED: usize = 1024;

/// What was held back in one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppressed<K = u32> {
    /// Whose; `None`: of all those beyond the number that is told apart.
    pub key: Option<K>,
    /// How many records.
    pub count: u64,
}

/// Counts records per key and interval. It has no clock: who owns it says when an interval is over.
#[derive(Debug)]
pub struct Limiter<K = u32> {
    per_interval: u32,
    seen: HashMap<K, u64>,
    others: u64,
}

impl<K: Copy + Eq + Hash + Ord> Limiter<K> {
    /// Lets `per_interval` records of each key through.
    #[must_use]
    pub fn new(per_interval: u32) -> Self {
        Self {
            per_interval,
            seen: HashMap::new(),
            others: 0,
        }
    }

    /// Changes the rate, from now on.
    pub fn set_rate(&mut self, per_interval: u32) {
        self.per_interval = per_interval;
    }

    /// Whether this record is written; otherwise it is counted.
    pub fn admit(&mut self, key: K) -> bool {
        let limit = u64::from(self.per_interval);
        if let Some(count) = self.seen.get_mut(&key) {
            *count = count.saturating_add(1);
            return *count <= limit;
        }
        if self.seen.len() < TRACKED {
            self.seen.insert(key, 1);
            return limit > 0;
        }
        self.others = self.others.saturating_add(1);
        self.others <= limit
    }

    /// Whether nothing was seen since the last interval: no timer is needed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.seen.is_empty() && self.others == 0
    }

    /// Ends the interval: what was held back, in the order of the keys.
    pub fn end_interval(&mut self) -> Vec<Suppressed<K>> {
        let limit = u64::from(self.per_interval);
        let mut over: Vec<_> = self.seen.drain().filter(|(_, count)| *count > limit).collect();
        over.sort_unstable();
        let mut held_back: Vec<_> = over
            .into_iter()
            .map(|(key, count)| Suppressed {
                key: Some(key),
                count: count.saturating_sub(limit),
            })
            .collect();
        let others = std::mem::take(&mut self.others).saturating_sub(limit);
        if others > 0 {
            held_back.push(Suppressed { key: None, count: others });
        }
        held_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_more_than_the_rate_then_the_rest_is_counted_for_that_uid_only() {
        let mut limiter = Limiter::new(2);
        let admitted: Vec<_> = (0..5).map(|_| limiter.admit(1000)).collect();
        assert_eq!(admitted, [true, true, false, false, false]);
        assert!(limiter.admit(1001));
        let expected = [Suppressed { key: Some(1000), count: 3 }];
        assert_eq!(limiter.end_interval(), expected);
        assert!(limiter.is_idle() && limiter.admit(1000));
    }

    #[test]
    fn given_very_many_uids_then_memory_is_bounded_and_all_are_counted() {
        let mut limiter = Limiter::new(1);
        let admitted = (0..100_000u32).filter(|uid| limiter.admit(*uid)).count();
        assert_eq!(limiter.seen.len(), TRACKED);
        let held_back: u64 = limiter.end_interval().iter().map(|s| s.count).sum();
        assert_eq!(admitted as u64 + held_back, 100_000);
    }
}
