//! Names and numbers of capabilities, as in capabilities(7) and `linux/capability.h`.
//!
//! Names are lower case without `cap_`, as filters write them.

use super::spec::Capabilities;

/// By number.
const NAMES: [&str; 41] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];

/// The highest number that has a name here.
pub const LAST: u8 = 40;

/// The name of a capability, `None` above [`LAST`].
#[must_use]
pub fn name(number: u8) -> Option<&'static str> {
    NAMES.get(usize::from(number)).copied()
}

/// The number of a capability: `net_admin`, also `CAP_NET_ADMIN`, in any case.
#[must_use]
pub fn number(name: &str) -> Option<u8> {
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_prefix("cap_").unwrap_or(&lower);
    (0..=LAST).find(|n| self::name(*n) == Some(bare))
}

/// All names, by number.
pub fn all() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter()
}

/// The names in a set, by number; `["all"]` for everything. Bits without a name come as nothing: no file can ask for them.
#[must_use]
pub fn names(set: Capabilities) -> Vec<&'static str> {
    match set {
        Capabilities::All => vec!["all"],
        Capabilities::Set(bits) => (0..=LAST).filter(|n| bits & (1 << n) != 0).filter_map(name).collect(),
    }
}

impl Capabilities {
    /// What either set holds.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Set(a), Self::Set(b)) => Self::Set(a | b),
            _ => Self::All,
        }
    }
}

impl std::fmt::Display for Capabilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match names(*self).as_slice() {
            [] => f.write_str("none"),
            names => f.write_str(&names.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_name_and_back() {
        for n in 0..=LAST {
            assert_eq!(number(name(n).unwrap()), Some(n));
        }
        assert_eq!(
            (number("chown"), number("net_admin"), number("sys_admin")),
            (Some(0), Some(12), Some(21))
        );
        assert_eq!((number("bpf"), number("CAP_CHECKPOINT_RESTORE")), (Some(39), Some(40)));
        assert_eq!((name(41), number("cap_cap_kill"), number("")), (None, None, None));
    }

    #[test]
    fn sets_are_shown_by_name() {
        assert_eq!(Capabilities::Set(1 << 12 | 1 << 13).to_string(), "net_admin net_raw");
        assert_eq!(Capabilities::Set(0).to_string(), "none");
        assert_eq!(Capabilities::All.to_string(), "all");
    }

    #[test]
    fn a_union_with_everything_is_everything() {
        assert_eq!(Capabilities::Set(1).union(Capabilities::Set(4)), Capabilities::Set(5));
        assert_eq!(Capabilities::Set(1).union(Capabilities::All), Capabilities::All);
    }
}
