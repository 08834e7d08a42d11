//! What is recorded, in typed fields, and how it becomes a record.

use std::sync::Arc;
use std::time::Duration;

use super::argv;
use super::record::Record;
use super::{Kind, Suppressed};
use crate::policy::capability;
use crate::policy::spec::Capabilities;

/// Longest ROOTWRAP_ARGV, in bytes: far above what the largest message can hold, however it is escaped.
const ARGV_LIMIT: usize = 8 * 1024 * 1024;
/// Longest ROOTWRAP_ARGV of a request that was refused: anybody can have such records made, and their bytes take the place of older ones.
const REFUSED_ARGV_LIMIT: usize = 64 * 1024;
/// Who asked, as the kernel said when it connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Effective uid.
    pub uid: u32,
    /// Effective gid.
    pub gid: u32,
    /// Process id; 0 where the process is in a foreign pid namespace.
    pub pid: u32,
    /// /proc/PID/comm: a name that the process chose.
    pub comm: Option<Vec<u8>>,
    /// The systemd unit.
    pub unit: Option<String>,
    /// Who logged in, audit(7); `None` where it is not set.
    pub loginuid: Option<u32>,
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Names the request in all its records.
    pub request_id: String,
    /// The command and its arguments, secrets already replaced by `***`.
    pub masked_argv: Vec<Vec<u8>>,
    /// SHA-256 of the policy that was asked, in hexadecimal.
    pub policy: Option<String>,
    /// The profile that the caller named.
    pub profile: Option<String>,
}

/// What a filter gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its name.
    pub filter: String,
    /// `file:line`.
    pub filter_source: String,
    /// The filter of the inner command.
    pub inner_filter: Option<String>,
    /// What is executed; `None` where a signal is sent instead.
    pub executable: Option<Vec<u8>>,
    /// As which user.
    pub run_as_uid: Option<u32>,
    /// With which capabilities.
    pub capabilities: Capabilities,
}

/// Records that were lost, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many of each kind; kinds of which none was lost are absent.
    pub by_kind: std::collections::BTreeMap<Kind, u64>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its process id.
    pub pid: u32,
    /// Exit status.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Wall time.
    pub duration: Duration,
    /// User and system time.
    pub cpu: Duration,
    /// Largest resident set, KiB.
    pub max_rss: u64,
    /// Why the service ended it (`timed-out`, `caller-gone`, `stopping`); `None`: it ended by itself.
    pub reason: Option<&'static str>,
}

/// One event.
#[derive(Clone, Debug)]
pub enum Event {
    /// [`Kind::Allowed`].
    Allowed {
        /// Who.
        caller: Arc<Caller>,
        /// What.
        command: Arc<Command>,
        /// How.
        grant: Arc<Grant>,
    },
    /// [`Kind::Denied`].
    Denied {
        /// Who.
        caller: Arc<Caller>,
        /// What; `None` for a verb that is no command (`Reload`).
        command: Option<Arc<Command>>,
        /// Code: `no-filter`.
        reason: &'static str,
        /// In words.
        detail: String,
    },
    /// [`Kind::Denied`] or [`Kind::BadRequest`], for many at once.
    Suppressed {
        /// Of which kind.
        kind: Kind,
        /// Whose and how many.
        suppressed: Suppressed,
    },
    /// [`Kind::Exited`].
    Exited {
        /// Who.
        caller: Arc<Caller>,
        /// What.
        command: Arc<Command>,
        /// How it ran.
        grant: Arc<Grant>,
        /// How it ended.
        ended: Ended,
    },
    /// [`Kind::LaunchFailed`].
    LaunchFailed {
        /// Who.
        caller: Arc<Caller>,
        /// What.
        command: Arc<Command>,
        /// How it should have run.
        grant: Arc<Grant>,
        /// Code: the step that failed, or `outcome-unknown`.
        reason: String,
        /// errno, where the kernel gave one.
        errno: Option<i32>,
    },
    /// [`Kind::Reloaded`].
    Reloaded {
        /// Who asked; `None`: SIGHUP.
        caller: Option<Arc<Caller>>,
        /// Hash of the new policy.
        policy: String,
        /// How many filters it has.
        filters: usize,
        /// How many warnings it gave.
        warnings: usize,
    },
    /// [`Kind::ReloadFailed`], also for the first load.
    ReloadFailed {
        /// Who asked; `None`: SIGHUP or start.
        caller: Option<Arc<Caller>>,
        /// The policy that stays in force; `None`: there is none, and everything is refused.
        policy: Option<String>,
        /// How many errors.
        errors: usize,
        /// The errors, one after the other, rendered.
        detail: String,
    },
    /// [`Kind::LimitHit`].
    LimitHit {
        /// Whose requests were refused; `None`: of more users than are told apart.
        uid: Option<u32>,
        /// Which limit: `connections`, `commands`.
        limit: &'static str,
        /// Its value.
        value: u32,
        /// How often it was hit since the last record.
        count: u64,
    },
    /// [`Kind::Started`].
    Started {
        /// The policy; `None`: there is none, and everything is refused.
        policy: Option<String>,
        /// How many filters it has.
        filters: usize,
    },
    /// [`Kind::Stopped`].
    Stopped {
        /// Why: `signal`, `idle`, `launcher-gone`.
        reason: &'static str,
    },
    /// [`Kind::BadRequest`].
    BadRequest {
        /// Who.
        caller: Arc<Caller>,
        /// Code: `too-large`.
        reason: &'static str,
        /// In words, printable.
        detail: String,
    },
    /// [`Kind::AuditLost`].
    AuditLost(Lost),
}

impl Event {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Allowed { .. } => Kind::Allowed,
            Self::Denied { .. } => Kind::Denied,
            Self::Suppressed { kind, .. } => *kind,
            Self::Exited { .. } => Kind::Exited,
            Self::LaunchFailed { .. } => Kind::LaunchFailed,
            Self::Reloaded { .. } => Kind::Reloaded,
            Self::ReloadFailed { .. } => Kind::ReloadFailed,
            Self::LimitHit { .. } => Kind::LimitHit,
            Self::Started { .. } => Kind::Started,
            Self::Stopped { .. } => Kind::Stopped,
            Self::BadRequest { .. } => Kind::BadRequest,
            Self::AuditLost(_) => Kind::AuditLost,
        }
    }

    /// The record for the journal.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut record = Record::new(self.kind(), &self.message());
        self.put_context(&mut record);
        self.put_own(&mut record);
        record.finish()
    }

    fn put_context(&self, record: &mut Record) {
        let (caller, command, grant) = match self {
            Self::Allowed { caller, command, grant }
            | Self::Exited {
                caller, command, grant, ..
            }
            | Self::LaunchFailed {
                caller, command, grant, ..
            } => (Some(caller), Some(command), Some(grant)),
            Self::Denied { caller, command, .. } => (Some(caller), command.as_ref(), None),
            Self::BadRequest { caller, .. } => (Some(caller), None, None),
            Self::Reloaded { caller, .. } | Self::ReloadFailed { caller, .. } => (caller.as_ref(), None, None),
            _ => (None, None, None),
        };
        if let Some(caller) = caller {
            caller.put(record);
        }
        if let Some(command) = command {
            let limit = if grant.is_some() { ARGV_LIMIT } else { REFUSED_ARGV_LIMIT };
            command.put(record, limit);
        }
        if let Some(grant) = grant {
            grant.put(record);
        }
    }

    fn put_own(&self, record: &mut Record) {
        match self {
            Self::Allowed { .. } => record.text("ROOTWRAP_DECISION", "allowed"),
            Self::Denied { reason, .. } => {
                record.text("ROOTWRAP_DECISION", "denied");
                record.text("ROOTWRAP_REASON", reason);
            }
            Self::Suppressed { kind, suppressed } => {
                if *kind == Kind::Denied {
                    record.text("ROOTWRAP_DECISION", "denied");
                }
                record.text("ROOTWRAP_REASON", "rate-limited");
                record.number("ROOTWRAP_COUNT", suppressed.count);
                if let Some(uid) = suppressed.key {
                    record.number("ROOTWRAP_CALLER_UID", uid);
                }
            }
            Self::Exited { ended, .. } => ended.put(record),
            Self::LaunchFailed { reason, errno, .. } => {
                record.text("ROOTWRAP_REASON", reason);
                if let Some(errno) = errno {
                    record.number("ERRNO", errno);
                }
            }
            Self::Reloaded {
                policy, filters, warnings, ..
            } => {
                record.text("ROOTWRAP_POLICY", policy);
                record.number("ROOTWRAP_FILTERS", filters);
                record.number("ROOTWRAP_WARNINGS", warnings);
            }
            Self::ReloadFailed {
                policy, errors, detail, ..
            } => {
                record.optional("ROOTWRAP_POLICY", policy.as_ref());
                record.number("ROOTWRAP_ERRORS", errors);
                record.text("ROOTWRAP_DIAGNOSTICS", detail);
            }
            Self::LimitHit { uid, limit, value, count } => {
                record.text("ROOTWRAP_REASON", limit);
                if let Some(uid) = uid {
                    record.number("ROOTWRAP_CALLER_UID", uid);
                }
                record.number("ROOTWRAP_LIMIT", value);
                record.number("ROOTWRAP_COUNT", count);
            }
            Self::Started { policy, filters } => {
                record.optional("ROOTWRAP_POLICY", policy.as_ref());
                record.number("ROOTWRAP_FILTERS", filters);
                record.text("ROOTWRAP_VERSION", env!("CARGO_PKG_VERSION"));
            }
            Self::Stopped { reason } => record.text("ROOTWRAP_REASON", reason),
            Self::BadRequest { reason, .. } => record.text("ROOTWRAP_REASON", reason),
            Self::AuditLost(lost) => record.number("ROOTWRAP_COUNT", lost.total()),
        }
    }
}

impl Caller {
    fn put(&self, record: &mut Record) {
        record.number("ROOTWRAP_CALLER_UID", self.uid);
        record.number("ROOTWRAP_CALLER_GID", self.gid);
        record.number("ROOTWRAP_CALLER_PID", self.pid);
        record.optional("ROOTWRAP_CALLER_COMM", self.comm.as_ref());
        record.optional("ROOTWRAP_CALLER_UNIT", self.unit.as_ref());
        if let Some(loginuid) = self.loginuid {
            record.number("ROOTWRAP_CALLER_LOGINUID", loginuid);
        }
    }
}

impl Command {
    fn put(&self, record: &mut Record, limit: usize) {
        let (json, cut) = argv::encode_within(&self.masked_argv, limit);
        record.text("ROOTWRAP_REQUEST_ID", &self.request_id);
        record.limited("ROOTWRAP_ARGV", &json, cut);
        record.number("ROOTWRAP_ARGC", self.masked_argv.len());
        record.optional("ROOTWRAP_POLICY", self.policy.as_ref());
        record.optional("ROOTWRAP_PROFILE", self.profile.as_ref());
    }
}

impl Grant {
    fn put(&self, record: &mut Record) {
        record.text("ROOTWRAP_FILTER", &self.filter);
        record.text("ROOTWRAP_FILTER_SOURCE", &self.filter_source);
        record.optional("ROOTWRAP_INNER_FILTER", self.inner_filter.as_ref());
        record.optional("ROOTWRAP_EXECUTABLE", self.executable.as_ref());
        if let Some(uid) = self.run_as_uid {
            record.number("ROOTWRAP_RUN_AS_UID", uid);
        }
        record.text("ROOTWRAP_CAPABILITIES", capability_names(self.capabilities));
    }
}

impl Ended {
    fn put(&self, record: &mut Record) {
        if let Some(code) = self.code {
            record.number("ROOTWRAP_EXIT_CODE", code);
        }
        if let Some(signal) = self.signal {
            record.number("ROOTWRAP_EXIT_SIGNAL", signal);
        }
        record.number("ROOTWRAP_DURATION_USEC", self.duration.as_micros());
        record.number("ROOTWRAP_CPU_USEC", self.cpu.as_micros());
        record.number("ROOTWRAP_MAX_RSS", self.max_rss);
        record.number("OBJECT_PID", self.pid);
        record.optional("ROOTWRAP_REASON", self.reason);
    }
}

impl Lost {
    /// Adds records.
    pub fn add(&mut self, kind: Kind, count: u64) {
        let sum = self.by_kind.entry(kind).or_default();
        *sum = sum.saturating_add(count);
    }

    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_kind.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// `all`, `none`, or the names as filters spell them, separated by blanks; a number where this build knows no name.
#[must_use]
pub fn capability_names(capabilities: Capabilities) -> String {
    let bits = match capabilities {
        Capabilities::All => return "all".to_owned(),
        Capabilities::Set(0) => return "none".to_owned(),
        Capabilities::Set(bits) => bits,
    };
    let held = (0..64_u8).filter(|bit| bits >> bit & 1 == 1);
    let names = held.map(|bit| capability::name(bit).map_or_else(|| bit.to_string(), str::to_owned));
    names.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::record::parse;

    fn fields(event: &Event) -> std::collections::HashMap<String, String> {
        let parsed = parse(&event.encode());
        let count = parsed.len();
        let map: std::collections::HashMap<_, _> = parsed.into_iter().map(|(k, v)| (k, String::from_utf8(v).unwrap())).collect();
        assert_eq!(map.len(), count, "a field was repeated");
        map
    }

    fn caller() -> Arc<Caller> {
        Arc::new(Caller {
            uid: 991,
            gid: 990,
            pid: 77,
            comm: Some(b"neutron-l3".to_vec()),
            unit: Some("neutron-l3-agent.service".into()),
            loginuid: Some(1000),
        })
    }

    fn command(argv: &[&[u8]]) -> Arc<Command> {
        Arc::new(Command {
            request_id: "abc".into(),
            masked_argv: argv.iter().map(|a| a.to_vec()).collect(),
            policy: Some("00ff".into()),
            profile: None,
        })
    }

    fn grant() -> Arc<Grant> {
        Arc::new(Grant {
            filter: "set-mtu".into(),
            filter_source: "/etc/rootwrap/filters.d/50-l3.toml:12".into(),
            inner_filter: None,
            executable: Some(b"/usr/sbin/ip".to_vec()),
            run_as_uid: Some(0),
            capabilities: Capabilities::Set(1 << 12),
        })
    }

    #[test]
    fn an_allowed_command_is_recorded_with_all_that_it_gets() {
        let event = Event::Allowed {
            caller: caller(),
            command: command(&[b"ip", b"link", b"\xff"]),
            grant: grant(),
        };
        let fields = fields(&event);
        let expected = [
            ("MESSAGE_ID", Kind::Allowed.message_id()),
            ("PRIORITY", "6"),
            ("SYSLOG_IDENTIFIER", "rootwrapd"),
            ("ROOTWRAP_DECISION", "allowed"),
            ("ROOTWRAP_REQUEST_ID", "abc"),
            ("ROOTWRAP_FILTER", "set-mtu"),
            ("ROOTWRAP_FILTER_SOURCE", "/etc/rootwrap/filters.d/50-l3.toml:12"),
            ("ROOTWRAP_POLICY", "00ff"),
            ("ROOTWRAP_ARGV", r#"["ip","link","\u0000ff"]"#),
            ("ROOTWRAP_ARGC", "3"),
            ("ROOTWRAP_EXECUTABLE", "/usr/sbin/ip"),
            ("ROOTWRAP_RUN_AS_UID", "0"),
            ("ROOTWRAP_CAPABILITIES", "net_admin"),
            ("ROOTWRAP_CALLER_UID", "991"),
            ("ROOTWRAP_CALLER_GID", "990"),
            ("ROOTWRAP_CALLER_PID", "77"),
            ("ROOTWRAP_CALLER_COMM", "neutron-l3"),
            ("ROOTWRAP_CALLER_UNIT", "neutron-l3-agent.service"),
            ("ROOTWRAP_CALLER_LOGINUID", "1000"),
            (
                "MESSAGE",
                "uid 991 (neutron-l3-agent.service) may run ip link '\\xff' (filter set-mtu)",
            ),
        ];
        for (name, value) in expected {
            assert_eq!(fields.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn a_denial_with_newlines_and_field_names_in_its_arguments_stays_one_record() {
        let event = Event::Denied {
            caller: caller(),
            command: Some(command(&[b"ip\nROOTWRAP_DECISION=allowed", b"\x1b[2J\xe2\x80\xae"])),
            reason: "no-filter",
            detail: "no filter\nfor it".into(),
        };
        let fields = fields(&event);
        assert_eq!(fields["ROOTWRAP_DECISION"], "denied");
        assert_eq!(fields["ROOTWRAP_REASON"], "no-filter");
        assert_eq!(
            argv::decode(&fields["ROOTWRAP_ARGV"]).unwrap(),
            [b"ip\nROOTWRAP_DECISION=allowed".to_vec(), b"\x1b[2J\xe2\x80\xae".to_vec()]
        );
        assert!(fields["MESSAGE"].chars().all(crate::audit::text::is_printable));
    }

    #[test]
    fn an_end_is_recorded_in_numbers() {
        let event = Event::Exited {
            caller: caller(),
            command: command(&[b"ip"]),
            grant: grant(),
            ended: Ended {
                pid: 4711,
                code: None,
                signal: Some(9),
                duration: Duration::from_millis(12),
                cpu: Duration::from_micros(345),
                max_rss: 2048,
                reason: Some("timed-out"),
            },
        };
        let fields = fields(&event);
        for (name, value) in [
            ("ROOTWRAP_EXIT_SIGNAL", "9"),
            ("ROOTWRAP_DURATION_USEC", "12000"),
            ("ROOTWRAP_CPU_USEC", "345"),
            ("ROOTWRAP_MAX_RSS", "2048"),
            ("OBJECT_PID", "4711"),
            ("ROOTWRAP_REASON", "timed-out"),
        ] {
            assert_eq!(fields[name], value, "{name}");
        }
        assert!(!fields.contains_key("ROOTWRAP_EXIT_CODE"));
    }

    #[test]
    fn a_refused_request_leaves_a_small_record_and_an_allowed_one_all_of_it() {
        let large = vec![b'x'; 200_000];
        let denied = fields(&Event::Denied {
            caller: caller(),
            command: Some(command(&[b"ip", &large])),
            reason: "no-filter",
            detail: String::new(),
        });
        assert_eq!(
            (denied["ROOTWRAP_ARGV"].as_str(), denied["ROOTWRAP_ARGC"].as_str()),
            ("[\"ip\"]", "2")
        );
        assert_eq!(denied["ROOTWRAP_TRUNCATED"], "ROOTWRAP_ARGV");
        let allowed = fields(&Event::Allowed {
            caller: caller(),
            command: command(&[b"ip", &large]),
            grant: grant(),
        });
        assert!(allowed["ROOTWRAP_ARGV"].len() > 200_000 && !allowed.contains_key("ROOTWRAP_TRUNCATED"));
    }

    #[test]
    fn capabilities_are_spelled_as_in_filters() {
        assert_eq!(capability_names(Capabilities::All), "all");
        assert_eq!(capability_names(Capabilities::Set(0)), "none");
        assert_eq!(capability_names(Capabilities::Set(1 | 1 << 21 | 1 << 60)), "chown sys_admin 60");
    }
}
