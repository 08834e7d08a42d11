//! How a command runs: the keys that a filter and `[defaults]` share.

use std::sync::Arc;
use std::time::Duration;

use super::element::Elements;
use super::reader::{Node, Reader, Table};
use super::world::World;
use super::{duration, paths, run_as, unsupported, variables};
use crate::policy::spec::{Capabilities, Cwd, Element, Execution, OnDisconnect, Placement, RunAs, Span, Stdin};

/// Keys of `[defaults]`; a filter has these and its own.
pub(crate) const KEYS: &[&str] = &[
    "run_as",
    "env_allow",
    "env_set",
    "cwd",
    "stdin",
    "umask",
    "nice",
    "oom_score",
    "limits",
    "timeout",
    "kill_after",
    "on_disconnect",
    "placement",
    "no_new_privs",
    "sha256",
    "message",
    "max_concurrent",
    "inner_only",
    "netns",
    "tty",
    "write_paths",
    "seccomp",
    "apparmor",
    "selinux",
];

/// A day more than anybody waits, and no overflow anywhere.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// What one table says; a filter's own key takes the whole place of the default's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partial {
    pub run_as: Option<Arc<RunAs>>,
    pub env_allow: Option<Vec<(String, Element)>>,
    pub env_set: Option<Vec<(String, String)>>,
    pub cwd: Option<Cwd>,
    pub stdin: Option<Stdin>,
    pub umask: Option<u32>,
    pub nice: Option<i32>,
    pub oom_score: Option<i32>,
    pub nofile: Option<u64>,
    /// `Some(None)`: "infinity".
    pub timeout: Option<Option<Duration>>,
    pub kill_after: Option<Duration>,
    pub on_disconnect: Option<(OnDisconnect, Span)>,
    pub placement: Option<Placement>,
    pub no_new_privs: Option<bool>,
    pub sha256: Option<[u8; 32]>,
    pub message: Option<String>,
    pub max_concurrent: Option<u32>,
    pub inner_only: Option<bool>,
}

impl Partial {
    /// Reads all keys of [`KEYS`] that the table has; each that has errors is left out.
    pub fn read<'a>(table: Table<'a>, elements: &Elements<'a>, world: &World<'_>) -> Self {
        unsupported::report(table);
        let reader = table.reader;
        Self {
            run_as: table.read("run_as", |node| run_as::read(reader, node, world)),
            env_allow: table.read("env_allow", |node| variables::allowed(reader, node, elements)),
            env_set: table.read("env_set", |node| variables::set(reader, node)),
            cwd: table.read("cwd", |node| cwd(reader, node)),
            stdin: word(table, "stdin", &[("caller", Stdin::Caller), ("null", Stdin::Null)]),
            umask: table.read("umask", |node| umask(reader, node)),
            nice: integer(table, "nice", -20..=19),
            oom_score: integer(table, "oom_score", -1000..=1000),
            nofile: nofile(table),
            timeout: table.read("timeout", |node| timeout(reader, node)),
            kill_after: table.read("kill_after", |node| {
                duration::read(reader, node, "`kill_after`", Duration::ZERO..=LONGEST)
            }),
            on_disconnect: on_disconnect(table),
            placement: placement(table),
            no_new_privs: boolean(table, "no_new_privs"),
            sha256: table.read("sha256", |node| sha256(reader, node)),
            message: table.read("message", |node| message(reader, node)),
            max_concurrent: integer(table, "max_concurrent", 1..=1_000_000),
            inner_only: boolean(table, "inner_only"),
        }
    }

    /// This, and for what it does not say `other`.
    pub fn or(self, other: &Self) -> Self {
        Self {
            run_as: self.run_as.or_else(|| other.run_as.clone()),
            env_allow: self.env_allow.or_else(|| other.env_allow.clone()),
            env_set: self.env_set.or_else(|| other.env_set.clone()),
            cwd: self.cwd.or_else(|| other.cwd.clone()),
            stdin: self.stdin.or(other.stdin),
            umask: self.umask.or(other.umask),
            nice: self.nice.or(other.nice),
            oom_score: self.oom_score.or(other.oom_score),
            nofile: self.nofile.or(other.nofile),
            timeout: self.timeout.or(other.timeout),
            kill_after: self.kill_after.or(other.kill_after),
            on_disconnect: self.on_disconnect.or(other.on_disconnect),
            placement: self.placement.or(other.placement),
            no_new_privs: self.no_new_privs.or(other.no_new_privs),
            sha256: self.sha256.or(other.sha256),
            message: self.message.or_else(|| other.message.clone()),
            max_concurrent: self.max_concurrent.or(other.max_concurrent),
            inner_only: self.inner_only.or(other.inner_only),
        }
    }

    /// With the language's own defaults for what nobody said.
    pub fn complete(self, capabilities: Capabilities, world: &World<'_>) -> Execution {
        Execution {
            run_as: self.run_as.unwrap_or_else(|| run_as::root(world)),
            capabilities,
            no_new_privs: self.no_new_privs.unwrap_or(true),
            env_allow: self.env_allow.unwrap_or_default(),
            env_set: self.env_set.unwrap_or_default(),
            cwd: self.cwd.unwrap_or_else(|| Cwd::Path("/".into())),
            stdin: self.stdin.unwrap_or(Stdin::Caller),
            umask: self.umask.unwrap_or(0o022),
            nice: self.nice.unwrap_or(0),
            oom_score: self.oom_score.unwrap_or(0),
            nofile: self.nofile,
            timeout: self.timeout.flatten(),
            kill_after: self.kill_after.unwrap_or(Duration::from_secs(5)),
            on_disconnect: self.on_disconnect.map_or(OnDisconnect::Kill, |(value, _)| value),
            placement: self.placement.unwrap_or(Placement::Own),
            sha256: self.sha256,
        }
    }
}

fn word<T: Copy>(table: Table<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
    table.read(key, |node| table.reader.word(node, &format!("`{key}`"), words))
}

fn boolean(table: Table<'_>, key: &str) -> Option<bool> {
    table.read(key, |node| table.reader.boolean(node, &format!("`{key}`")))
}

fn integer<T: TryFrom<i64>>(table: Table<'_>, key: &str, range: std::ops::RangeInclusive<i64>) -> Option<T> {
    table.read(key, |node| {
        let number = table.reader.integer(node, &format!("`{key}`"), range)?;
        T::try_from(number).ok()
    })
}

fn cwd<'a>(reader: Reader<'a>, node: Node<'a>) -> Option<Cwd> {
    match node.value.as_str() {
        Some("caller") => Some(Cwd::Caller),
        _ => paths::absolute(reader, node, "`cwd`").map(Cwd::Path),
    }
}

/// `"0022"` or `0o022`: a decimal number would be a trap.
fn umask(reader: Reader<'_>, node: Node<'_>) -> Option<u32> {
    let digits = match (node.value.as_str(), node.value.as_integer()) {
        (Some(text), _) if text.len() >= 3 && text.bytes().all(|byte| byte.is_ascii_digit()) => Some(text),
        (_, Some(number)) if number.radix() == 8 => Some(number.as_str()),
        _ => None,
    };
    let mask = digits
        .and_then(|digits| u32::from_str_radix(digits, 8).ok())
        .filter(|mask| *mask <= 0o777);
    if mask.is_none() {
        let hint = "write it in octal, as in umask = \"0022\" or umask = 0o022";
        reader.error(node.span, "bad-umask", "`umask` is no file mode creation mask", hint);
    }
    mask
}

fn nofile(table: Table<'_>) -> Option<u64> {
    let limits = table.read("limits", |node| table.reader.table(node, "`limits`"))?;
    limits.only("limits", unsupported::LIMITS);
    integer(limits, "nofile", 3..=1_048_576)
}

fn timeout<'a>(reader: Reader<'a>, node: Node<'a>) -> Option<Option<Duration>> {
    if node.value.as_str() == Some("infinity") {
        return Some(None);
    }
    duration::read(reader, node, "`timeout`", Duration::from_millis(1)..=LONGEST).map(Some)
}

fn on_disconnect(table: Table<'_>) -> Option<(OnDisconnect, Span)> {
    let words = [("kill", OnDisconnect::Kill), ("detach", OnDisconnect::Detach)];
    Some((word(table, "on_disconnect", &words)?, table.get("on_disconnect")?.span))
}

/// `"service"` is a word of the language that this build has no answer to: [`unsupported`] says so.
fn placement(table: Table<'_>) -> Option<Placement> {
    let words = [
        ("own", Some(Placement::Own)),
        ("caller", Some(Placement::Caller)),
        ("service", None),
    ];
    word(table, "placement", &words).flatten()
}

fn sha256<'a>(reader: Reader<'a>, node: Node<'a>) -> Option<[u8; 32]> {
    let text = reader.string(node, "`sha256`")?;
    let mut digest = [0; 32];
    let valid = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = text
            .get(at..at + 2)
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
            .unwrap_or_default();
    }
    if !valid {
        let hint = "write the 64 hexadecimal digits that sha256sum(1) prints";
        reader.error(node.span, "bad-digest", "`sha256` is no SHA-256 digest", hint);
    }
    valid.then_some(digest)
}

fn message<'a>(reader: Reader<'a>, node: Node<'a>) -> Option<String> {
    let text = reader.string(node, "`message`")?;
    if text.is_empty() || text.len() > 1024 || text.contains(char::is_control) {
        let hint = "write one line of at most 1024 bytes, without control characters";
        reader.error(node.span, "bad-message", "`message` is not one printable line", hint);
        return None;
    }
    Some(text.to_owned())
}
