//! What a filter says, as plain data: the output of `config`, the input of [`Policy::build`](super::Policy::build).
//!
//! Names are already numbers here (users, groups), `use` is already replaced by what it names, defaults are already merged.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A range of bytes in one of the policy's files, for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Index into [`PolicySpec::files`].
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// Everything that a policy is compiled from.
#[derive(Clone, Debug, Default)]
pub struct PolicySpec {
    /// The files, in the order of their names; a [`Span`] points here.
    pub files: Vec<PathBuf>,
    /// The filters in the order in which they are tried: file name, then position. Disabled ones are already gone.
    pub filters: Vec<FilterSpec>,
    /// SHA-256 over the names and contents of all files, and `exec_dirs`: the hash that every journal record carries.
    pub hash: [u8; 32],
}

/// One `[[filter]]`.
#[derive(Clone, Debug)]
pub struct FilterSpec {
    /// Unique in the policy.
    pub name: String,
    /// Where the name stands.
    pub span: Span,
    /// Line of the filter's name, from 1: together with the file this is `ROOTWRAP_FILTER_SOURCE`.
    pub line: u32,
    /// Who may use it.
    pub callers: Arc<Callers>,
    /// What it runs.
    pub command: CommandSpec,
    /// The arguments after the command: they must be covered exactly. [`Policy::build`](super::Policy::build) takes them out
    /// (it keeps what it compiled): empty in the filters of a policy.
    pub args: Vec<Element>,
    /// How it runs.
    pub execution: Execution,
    /// Shown to a caller that a filter of this command refused.
    pub message: Option<String>,
    /// Only usable behind another filter's `command` element.
    pub inner_only: bool,
    /// Running commands of this filter at once, over all callers.
    pub max_concurrent: Option<u32>,
}

/// The command of a filter.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// As the file spells it, all of them; a caller says one of these, or its last component.
    pub spelled: Vec<String>,
    /// Absolute paths in the order in which they are tried; the first that exists is run, and is its argv\[0\].
    pub candidates: Vec<PathBuf>,
    /// Where the command stands.
    pub span: Span,
}

/// Who may use a filter: (users or groups) and units and labels. Empty lists ask nothing; all empty never happens.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    /// By effective uid.
    pub users: Vec<UserRule>,
    /// By effective gid or supplementary group, as the kernel holds them.
    pub groups: Vec<GroupRule>,
    /// By systemd unit.
    pub units: Vec<UnitRule>,
    /// By security label (SO_PEERSEC), byte for byte.
    pub labels: Vec<String>,
}

/// A user in `[callers]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserRule {
    /// `"any"`.
    Any,
    /// A number, or a name that was resolved.
    Uid(u32),
    /// A name that does not exist (yet): never matches.
    Unknown(String),
}

/// A group in `[callers]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRule {
    /// A number, or a name that was resolved.
    Gid(u32),
    /// A name that does not exist (yet): never matches.
    Unknown(String),
}

/// A unit in `[callers]`: a whole name, or `name@*.service` for all instances of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitRule {
    /// `nova-compute.service`.
    Name(String),
    /// `worker@*.service`, split at the star; at least one byte must stand in its place.
    Instances {
        /// Up to and with `@`.
        prefix: String,
        /// From the dot on.
        suffix: String,
    },
}

/// A part of `args`.
#[derive(Clone, Debug)]
pub struct Element {
    /// Where it stands.
    pub span: Span,
    /// What it matches.
    pub kind: ElementKind,
    /// May match an argument that begins with `-`.
    pub dash: bool,
    /// Logged as `***`.
    pub secret: bool,
}

/// The kinds of [`Element`]; `rootwrap.filters(5)` describes each.
#[derive(Clone, Debug)]
pub enum ElementKind {
    /// That one argument, byte for byte.
    Literal(Vec<u8>),
    /// One after the other.
    Sequence(Vec<Element>),
    /// One argument that is not empty.
    Any,
    /// One argument that the whole expression matches.
    Regex(String),
    /// A decimal number without leading zeros or plus sign.
    Int {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// An IP address.
    Ip {
        /// Which family.
        family: IpFamily,
        /// With a prefix length or without.
        prefix: Prefix,
        /// Networks of which one must hold it; empty: any.
        within: Vec<Cidr>,
    },
    /// Six hexadecimal pairs with colons.
    Mac,
    /// 8-4-4-4-12 hexadecimal digits.
    Uuid,
    /// A host name or an IP address.
    Host,
    /// A network interface's name.
    Interface,
    /// A path strictly below `base`.
    PathUnder {
        /// Absolute, normal.
        base: PathBuf,
        /// The last component need not exist.
        new: bool,
        /// Where symlinks may lead besides below `base`.
        links_to: Vec<PathBuf>,
        /// Accepted although callers can write there.
        caller_writable: bool,
    },
    /// The pid of a process that runs one of these executables.
    PidOf {
        /// Absolute.
        executables: Vec<PathBuf>,
        /// The process must be in the caller's unit.
        same_unit: bool,
    },
    /// One argument made of parts.
    Concat(Vec<Element>),
    /// One argument made of items with separators.
    List {
        /// Each item.
        item: Box<Element>,
        /// Between items; one byte or more.
        separator: String,
    },
    /// The first that fits.
    OneOf(Vec<Element>),
    /// It or nothing.
    Optional(Box<Element>),
    /// It, several times.
    Repeat {
        /// What.
        item: Box<Element>,
        /// At least.
        min: u32,
        /// At most.
        max: Option<u32>,
    },
    /// Options in any order.
    Options(Vec<OptionSpec>),
    /// The rest is a command that must be allowed itself.
    Command(InnerFilters),
}

/// One entry of an `options` element.
#[derive(Clone, Debug)]
pub struct OptionSpec {
    /// The spellings; one that ends in `=` has its value joined.
    pub keys: Vec<String>,
    /// Its value; `None`: it takes none.
    pub value: Option<Element>,
    /// Must be there.
    pub required: bool,
    /// May be there more than once.
    pub many: bool,
    /// Where it stands.
    pub span: Span,
}

/// Which filters may allow the inner command.
#[derive(Clone, Debug)]
pub enum InnerFilters {
    /// Any that the caller may use.
    Any,
    /// These.
    Named(Vec<(String, Span)>),
}

/// Which addresses an `ip` element takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpFamily {
    /// Both.
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Whether an `ip` element takes a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefix {
    /// It must not be there.
    No,
    /// It must be there.
    Yes,
    /// As the caller likes.
    Maybe,
}

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    /// Its address.
    pub address: std::net::IpAddr,
    /// Length of the prefix in bits.
    pub prefix: u8,
}

/// How a command runs: everything of a filter but who and what.
#[derive(Clone, Debug)]
pub struct Execution {
    /// As whom; shared, because most filters say the same.
    pub run_as: Arc<RunAs>,
    /// With which capabilities.
    pub capabilities: Capabilities,
    /// PR_SET_NO_NEW_PRIVS.
    pub no_new_privs: bool,
    /// Variables that the caller may set, each with the pattern of its value (an element of exactly one argument).
    pub env_allow: Vec<(String, Element)>,
    /// Variables that are always set.
    pub env_set: Vec<(String, String)>,
    /// Working directory.
    pub cwd: Cwd,
    /// Standard input.
    pub stdin: Stdin,
    /// File mode creation mask.
    pub umask: u32,
    /// -20 to 19.
    pub nice: i32,
    /// /proc/PID/oom_score_adj, -1000 to 1000.
    pub oom_score: i32,
    /// RLIMIT_NOFILE, soft and hard; `None`: the default of a fresh login.
    pub nofile: Option<u64>,
    /// The command is ended after this time.
    pub timeout: Option<Duration>,
    /// Between SIGTERM and SIGKILL.
    pub kill_after: Duration,
    /// What happens to it when its caller is gone.
    pub on_disconnect: OnDisconnect,
    /// In which cgroup it runs.
    pub placement: Placement,
    /// The executable's contents must have this SHA-256.
    pub sha256: Option<[u8; 32]>,
}

/// As whom a command runs. Numbers only matter; names are for the environment and for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunAs {
    /// Real, effective and saved uid; `None`: the user or group does not exist (yet), the filter never matches.
    pub ids: Option<Ids>,
    /// As the file names it.
    pub user: String,
    /// HOME.
    pub home: String,
    /// SHELL.
    pub shell: String,
}

/// Numbers of [`RunAs`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ids {
    /// uid.
    pub uid: u32,
    /// gid.
    pub gid: u32,
    /// Supplementary groups, exactly these.
    pub groups: Vec<u32>,
}

/// A set of capabilities; bit N is capability number N of capabilities(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capabilities {
    /// `"all"`: full root, securebits untouched.
    All,
    /// Exactly these.
    Set(u64),
}

/// Working directory of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cwd {
    /// A path, absolute.
    Path(PathBuf),
    /// The caller's, as a descriptor.
    Caller,
}

/// Standard input of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// The caller's descriptor or data.
    Caller,
    /// /dev/null.
    Null,
}

/// What happens to a command whose caller is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDisconnect {
    /// It is ended.
    Kill,
    /// It runs on; only with [`Placement::Caller`].
    Detach,
}

/// Where a command lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A fresh cgroup below the service's.
    Own,
    /// The caller's cgroup.
    Caller,
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
