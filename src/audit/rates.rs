//! Which records that callers can cause at will are kept to a rate.

use super::{Event, Kind, Limiter, Suppressed};

/// One second's denials and bad requests, and the limits that were hit.
#[derive(Debug)]
pub struct Rates {
    denied: Limiter,
    bad_requests: Limiter,
    limits: Limiter<(u32, &'static str, u32)>,
}

impl Rates {
    /// `per_second` denials, and as many bad requests, of each uid.
    pub fn new(per_second: u32) -> Self {
        Self {
            denied: Limiter::new(per_second),
            bad_requests: Limiter::new(per_second),
            limits: Limiter::new(1),
        }
    }

    /// Changes the rate.
    pub fn set(&mut self, per_second: u32) {
        self.denied.set_rate(per_second);
        self.bad_requests.set_rate(per_second);
    }

    /// Whether this event is written now; otherwise it is counted.
    pub fn admit(&mut self, event: &Event) -> bool {
        match event {
            Event::Denied { caller, .. } => self.denied.admit(caller.uid),
            Event::BadRequest { caller, .. } => self.bad_requests.admit(caller.uid),
            Event::LimitHit {
                uid: Some(uid),
                limit,
                value,
                count: 1,
            } => self.limits.admit((*uid, limit, *value)),
            _ => true,
        }
    }

    /// Whether there is something to report at the end of an interval.
    pub fn is_idle(&self) -> bool {
        self.denied.is_idle() && self.bad_requests.is_idle() && self.limits.is_idle()
    }

    /// The aggregates of the last second; with `limits` also those of the limits, which have a longer interval.
    pub fn end_interval(&mut self, limits: bool) -> Vec<Event> {
        let mut events = Vec::new();
        for (kind, limiter) in [(Kind::Denied, &mut self.denied), (Kind::BadRequest, &mut self.bad_requests)] {
            let held_back = limiter.end_interval().into_iter();
            events.extend(held_back.map(|suppressed| Event::Suppressed { kind, suppressed }));
        }
        if limits {
            events.extend(self.limits.end_interval().into_iter().map(limit_hit));
        }
        events
    }
}

fn limit_hit(suppressed: Suppressed<(u32, &'static str, u32)>) -> Event {
    let (uid, limit, value) = match suppressed.key {
        Some((uid, limit, value)) => (Some(uid), limit, value),
        None => (None, "several limits", 0),
    };
    Event::LimitHit {
        uid,
        limit,
        value,
        count: suppressed.count,
    }
}
