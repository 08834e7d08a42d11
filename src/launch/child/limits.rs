//! Resource limits of a fresh login, see setrlimit(2): what the kernel gives to its first process, with systemd's limits of open
//! descriptors and no core dumps.
//!
//! A default that is above what this process may set (a container without CAP_SYS_RESOURCE) is lowered to that; what a filter
//! demands is not.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::launch::launcher::Host;

const UNLIMITED: Option<u64> = None;

/// Sets all limits to their defaults.
pub(super) fn reset(host: &Host) -> io::Result<()> {
    for (resource, soft, hard) in defaults(host) {
        let wanted = Rlimit {
            current: soft,
            maximum: hard,
        };
        match setrlimit(resource, wanted) {
            Err(Errno::PERM) => setrlimit(resource, lowered(wanted, getrlimit(resource)))?,
            other => other?,
        }
    }
    Ok(())
}

/// Sets both limits of open descriptors.
pub(super) fn set_nofile(limit: u64) -> io::Result<()> {
    let demanded = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    Ok(setrlimit(Resource::Nofile, demanded)?)
}

fn defaults(host: &Host) -> [(Resource, Option<u64>, Option<u64>); 16] {
    let processes = Some(host.threads_max / 2);
    [
        (Resource::As, UNLIMITED, UNLIMITED),
        (Resource::Core, Some(0), Some(0)),
        (Resource::Cpu, UNLIMITED, UNLIMITED),
        (Resource::Data, UNLIMITED, UNLIMITED),
        (Resource::Fsize, UNLIMITED, UNLIMITED),
        (Resource::Locks, UNLIMITED, UNLIMITED),
        (Resource::Memlock, Some(8 << 20), Some(8 << 20)),
        (Resource::Msgqueue, Some(819_200), Some(819_200)),
        (Resource::Nice, Some(0), Some(0)),
        (Resource::Nofile, Some(1024), Some(524_288)),
        (Resource::Nproc, processes, processes),
        (Resource::Rss, UNLIMITED, UNLIMITED),
        (Resource::Rtprio, Some(0), Some(0)),
        (Resource::Rttime, UNLIMITED, UNLIMITED),
        (Resource::Sigpending, processes, processes),
        (Resource::Stack, Some(8 << 20), UNLIMITED),
    ]
}

/// As much of `wanted` as the hard limit allows.
fn lowered(wanted: Rlimit, now: Rlimit) -> Rlimit {
    let smaller = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    };
    let maximum = smaller(wanted.maximum, now.maximum);
    Rlimit {
        current: smaller(wanted.current, maximum),
        maximum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(current: Option<u64>, maximum: Option<u64>) -> Rlimit {
        Rlimit { current, maximum }
    }

    #[test]
    fn what_cannot_be_raised_is_lowered_to_the_hard_limit() {
        let cases = [
            (
                limit(Some(1024), Some(524_288)),
                limit(Some(100), Some(20_000)),
                limit(Some(1024), Some(20_000)),
            ),
            (limit(UNLIMITED, UNLIMITED), limit(Some(1), Some(5)), limit(Some(5), Some(5))),
            (limit(Some(8), UNLIMITED), limit(Some(1), Some(5)), limit(Some(5), Some(5))),
            (limit(Some(8), Some(8)), limit(UNLIMITED, UNLIMITED), limit(Some(8), Some(8))),
        ];
        for (wanted, now, expected) in cases {
            assert_eq!(lowered(wanted, now), expected);
        }
    }

    #[test]
    fn every_resource_has_a_default() {
        let host = Host {
            last_capability: 40,
            threads_max: 1000,
        };
        let mut named: Vec<_> = defaults(&host).iter().map(|(resource, ..)| *resource as u32).collect();
        named.sort_unstable();
        assert_eq!(named, (0..16).collect::<Vec<_>>());
    }
}
