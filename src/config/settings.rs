//! `/etc/rootwrap/rootwrap.toml` and `rootwrap.toml.d/*.toml`: the service's own settings, all optional.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::document::Document;
use super::reader::{Reader, Table};
use super::report::Report;
use super::trusted::Untrusted;
use super::trusted::walk::{Owners, walk};
use super::{Diagnostic, directories, duration, paths};

/// Whether a command may run without its record in the journal's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// No.
    Required,
    /// Yes.
    BestEffort,
}

/// The settings, defaults filled in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `filter_dirs`.
    pub filter_dirs: Vec<PathBuf>,
    /// `exec_dirs`: where bare names are looked up; absolute.
    pub exec_dirs: Vec<PathBuf>,
    /// `audit`.
    pub audit: Audit,
    /// `audit_timeout`: how long a command waits for its record to be queued.
    pub audit_timeout: Duration,
    /// `message_size`: bytes of one protocol message, at most.
    pub message_size: usize,
    /// `capture_size`: bytes of captured output per stream, at most.
    pub capture_size: usize,
    /// `request_timeout`: from a message's first byte to its last, and for a reply to be taken.
    pub request_timeout: Duration,
    /// `max_connections`: all callers.
    pub max_connections: u32,
    /// `max_connections_per_uid`.
    pub max_connections_per_uid: u32,
    /// `max_commands`: all callers.
    pub max_commands: u32,
    /// `max_commands_per_uid`.
    pub max_commands_per_uid: u32,
    /// `drain_timeout`.
    pub drain_timeout: Duration,
    /// `idle_timeout`; zero: never.
    pub idle_timeout: Duration,
    /// `parked_children`.
    pub parked_children: u32,
    /// `denials_per_second`: single records of denials per uid; more are aggregated.
    pub denials_per_second: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            filter_dirs: ["/usr/lib", "/run", "/etc"]
                .iter()
                .map(|d| PathBuf::from(format!("{d}/rootwrap/filters.d")))
                .collect(),
            exec_dirs: ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
                .iter()
                .map(PathBuf::from)
                .collect(),
            audit: Audit::Required,
            audit_timeout: Duration::from_millis(1500),
            message_size: 256 * 1024,
            capture_size: 1024 * 1024,
            request_timeout: Duration::from_secs(5),
            max_connections: 4096,
            max_connections_per_uid: 512,
            max_commands: 2048,
            max_commands_per_uid: 512,
            drain_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(600),
            parked_children: 4,
            denials_per_second: 50,
        }
    }
}

/// All keys, in the order of the fields of [`Settings`].
const KEYS: &[&str] = &[
    "filter_dirs",
    "exec_dirs",
    "audit",
    "audit_timeout",
    "message_size",
    "capture_size",
    "request_timeout",
    "max_connections",
    "max_connections_per_uid",
    "max_commands",
    "max_commands_per_uid",
    "drain_timeout",
    "idle_timeout",
    "parked_children",
    "denials_per_second",
];

const HOUR: Duration = Duration::from_secs(3600);

impl Settings {
    /// Reads the service's settings: `main` (absent is fine) and the `*.toml` of `main` + `.d`, whose keys take the place of
    /// earlier ones.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn load(main: &Path, check_owners: bool) -> Result<Self, Vec<Diagnostic>> {
        Self::load_with_warnings(main, check_owners).map(|(settings, _)| settings)
    }

    /// As [`Settings::load`], with the warnings where there is no error.
    ///
    /// # Errors
    /// Everything that is wrong, warnings included.
    pub fn load_with_warnings(main: &Path, check_owners: bool) -> Result<(Self, Vec<Diagnostic>), Vec<Diagnostic>> {
        let owners = if check_owners { Owners::Root } else { Owners::Anybody };
        let report = Report::new();
        let mut drop_ins = main.as_os_str().to_owned();
        drop_ins.push(".d");
        let mut files = Vec::new();
        if !matches!(rustix::fs::lstat(main), Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR)) {
            files.extend(directories::read_file(main, owners, &report));
        }
        files.extend(directories::read(&[drop_ins.into()], owners, &report));
        let documents: Vec<Document> = (0u32..)
            .zip(files)
            .map(|(file, (path, bytes))| Document::new(file, &path, bytes, &report))
            .collect();
        let mut settings = Self::default();
        for (file, document) in (0u32..).zip(&documents) {
            if let Some(parsed) = document.parse(file, &report) {
                settings.read(Reader { file, report: &report }.root(&parsed), owners);
            }
        }
        let failed = report.errors() > 0;
        let diagnostics = report.into_diagnostics(&documents);
        if failed { Err(diagnostics) } else { Ok((settings, diagnostics)) }
    }

    fn read(&mut self, table: Table<'_>, owners: Owners) {
        table.only("rootwrap.toml", KEYS);
        set(&mut self.filter_dirs, directories_of(table, "filter_dirs"));
        if let Some(directories) = directories_of(table, "exec_dirs") {
            check_exec_dirs(table, &directories, owners);
            self.exec_dirs = directories;
        }
        let audits = [("required", Audit::Required), ("best-effort", Audit::BestEffort)];
        let audit = table.read("audit", |node| table.reader.word(node, "`audit`", &audits));
        set(&mut self.audit, audit);
        let second = Duration::from_secs(1);
        set(&mut self.audit_timeout, time(table, "audit_timeout", second / 100..=60 * second));
        set(&mut self.message_size, number(table, "message_size", 4096..=16 * 1024 * 1024));
        set(&mut self.capture_size, number(table, "capture_size", 0..=64 * 1024 * 1024));
        set(
            &mut self.request_timeout,
            time(table, "request_timeout", second / 10..=300 * second),
        );
        set(&mut self.max_connections, number(table, "max_connections", 1..=1_000_000));
        set(
            &mut self.max_connections_per_uid,
            number(table, "max_connections_per_uid", 1..=1_000_000),
        );
        set(&mut self.max_commands, number(table, "max_commands", 1..=1_000_000));
        set(&mut self.max_commands_per_uid, number(table, "max_commands_per_uid", 1..=1_000_000));
        set(&mut self.drain_timeout, time(table, "drain_timeout", Duration::ZERO..=24 * HOUR));
        set(
            &mut self.idle_timeout,
            time(table, "idle_timeout", Duration::ZERO..=24 * 366 * HOUR),
        );
        set(&mut self.parked_children, number(table, "parked_children", 0..=64));
        set(&mut self.denials_per_second, number(table, "denials_per_second", 1..=100_000));
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn time(table: Table<'_>, key: &str, range: std::ops::RangeInclusive<Duration>) -> Option<Duration> {
    table.read(key, |node| duration::read(table.reader, node, &format!("`{key}`"), range))
}

fn number<T: TryFrom<i64>>(table: Table<'_>, key: &str, range: std::ops::RangeInclusive<i64>) -> Option<T> {
    table.read(key, |node| {
        let number = table.reader.integer(node, &format!("`{key}`"), range)?;
        T::try_from(number).ok()
    })
}

fn directories_of(table: Table<'_>, key: &str) -> Option<Vec<PathBuf>> {
    table.read(key, |node| paths::list(table.reader, node, &format!("`{key}`")))
}

/// Whoever can write to one of these chooses what runs as root.
fn check_exec_dirs(table: Table<'_>, directories: &[PathBuf], owners: Owners) {
    let Some(items) = table.get("exec_dirs").and_then(|node| table.reader.array(node, "`exec_dirs`")) else {
        return;
    };
    for (directory, node) in directories.iter().zip(items) {
        match walk(directory, owners) {
            Ok(found) if found.is_directory() => {}
            Ok(_) => table.reader.error(
                node.span,
                "not-a-directory",
                &format!("`{}` is no directory", directory.display()),
                "name the directory that holds the programs",
            ),
            Err(Untrusted::Missing(_)) => table.reader.warning(
                node.span,
                "missing-directory",
                &format!("there is no `{}`", directory.display()),
                "nothing is found there until there is",
            ),
            Err(error) => table.reader.error(
                node.span,
                "unsafe-owner",
                &format!("programs in `{}` cannot be trusted: {error}", directory.display()),
                "give it and every directory above it to root (chown root, chmod go-w)",
            ),
        }
    }
}
