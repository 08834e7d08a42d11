//! The caller as a policy sees it.

/// A caller. The daemon makes it from the kernel's answers only; `check` and `explain` make it from names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Effective uid.
    pub uid: u32,
    /// Effective gid.
    pub gid: u32,
    /// Supplementary groups, as the kernel holds them.
    pub groups: Vec<u32>,
    /// The systemd unit, where it could be established.
    pub unit: Option<String>,
    /// The security label, where there is one.
    pub label: Option<Vec<u8>>,
    /// For `[[test]]`s that name no caller: any `[callers]` of this file (index into the policy's files) admits it. `None` in the daemon, always.
    pub assumed_by_file: Option<u32>,
}
