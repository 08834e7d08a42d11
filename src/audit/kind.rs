//! The kinds of events, each with the message id under which the catalog explains it.

/// What happened. `systemd/rootwrap.catalog` has a text for each; the ids never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A command may run; written before it starts.
    Allowed,
    /// A request was refused.
    Denied,
    /// A command that was started has ended.
    Exited,
    /// An allowed command did not start.
    LaunchFailed,
    /// A new policy is in force.
    Reloaded,
    /// A new policy was refused; the one before stays in force.
    ReloadFailed,
    /// A caller reached one of the limits.
    LimitHit,
    /// The service answers.
    Started,
    /// The service ends.
    Stopped,
    /// Somebody spoke something else than the protocol.
    BadRequest,
    /// Records were lost while the journal took none.
    AuditLost,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Allowed,
        Self::Denied,
        Self::Exited,
        Self::LaunchFailed,
        Self::Reloaded,
        Self::ReloadFailed,
        Self::LimitHit,
        Self::Started,
        Self::Stopped,
        Self::BadRequest,
        Self::AuditLost,
    ];

    /// `MESSAGE_ID`: 128 bits in hexadecimal, sd_journal_print(3).
    #[must_use]
    pub fn message_id(self) -> &'static str {
        match self {
            Self::Allowed => "d1a9e649244942a5b2cb20d3553024e0",
            Self::Denied => "61d43f06f68c4eeca5f12d6c59aa770a",
            Self::Exited => "b925add217ba49f7970d6d0804f36935",
            Self::LaunchFailed => "69b2774a6137419e89b1e48db3903d11",
            Self::Reloaded => "f924ce90517545ae91d612b045f6bbac",
            Self::ReloadFailed => "534471fa4d8b4ecc8ed2f3786656d344",
            Self::LimitHit => "960427decf26435f9dc400418059bdca",
            Self::Started => "f1b2f6116f4949f69464ee0c28b9e444",
            Self::Stopped => "639eaa4fe8ce4951baee26bde77732f5",
            Self::BadRequest => "55bcb771d47445fab476e0937c40c3a0",
            Self::AuditLost => "00ae1c95accc4f86ba9f362c72f28c46",
        }
    }

    /// `ROOTWRAP_EVENT`: the kind in words, for people who query by hand.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Exited => "exited",
            Self::LaunchFailed => "launch-failed",
            Self::Reloaded => "reloaded",
            Self::ReloadFailed => "reload-failed",
            Self::LimitHit => "limit-hit",
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::BadRequest => "bad-request",
            Self::AuditLost => "audit-lost",
        }
    }

    /// `PRIORITY`: a level of syslog(3).
    #[must_use]
    pub fn priority(self) -> u8 {
        match self {
            Self::AuditLost => 2,
            Self::LaunchFailed | Self::ReloadFailed => 3,
            Self::Denied | Self::LimitHit | Self::BadRequest => 4,
            Self::Reloaded | Self::Started | Self::Stopped => 5,
            Self::Allowed | Self::Exited => 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_message_id_and_a_catalog_entry() {
        let catalog = include_str!("../../systemd/rootwrap.catalog");
        let mut seen = std::collections::HashSet::new();
        for kind in Kind::ALL {
            let id = kind.message_id();
            assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
            assert!(seen.insert(id), "{kind:?} shares its id");
            let entry = catalog.split("-- ").find(|entry| entry.starts_with(id));
            let entry = entry.unwrap_or_else(|| panic!("{kind:?} has no catalog entry"));
            assert!(entry.contains("Subject: "), "{kind:?}");
        }
        assert_eq!(
            catalog.matches("\n-- ").count() + usize::from(catalog.starts_with("-- ")),
            Kind::ALL.len()
        );
    }
}
