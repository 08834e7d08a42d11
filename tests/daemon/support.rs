//! A service of the test's own: [`Daemon`], its callers ([`Peer`]), its journal ([`Journal`]).

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rootwrap::sys::socket::send_with;
use serde_json::{Value, json};

/// Longer than anything here takes: only a test that fails waits for it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An ordinary user, whom no system has.
pub const ALICE: u32 = 61_234;
/// Another one.
pub const BOB: u32 = 61_235;

/// Root and alice may run these.
pub const FILTERS: &str = r#"
[callers]
users = ["root", 61234]

[[filter]]
name = "echo"
command = "echo"
args = [{ repeat = { any = true, dash = true }, min = 0, max = 4096 }]
capabilities = []

[[filter]]
name = "cat"
command = "cat"
args = []
capabilities = []

[[filter]]
name = "sleep"
command = "sleep"
args = [{ int = [0, 100000] }]
capabilities = []

[[filter]]
name = "sleep-once"
command = "sleep"
args = ["--", { int = [0, 100000] }]
capabilities = []
max_concurrent = 1

[[filter]]
name = "head"
command = "head"
args = ["-c", { int = [0, 100000000] }, "/dev/zero"]
capabilities = []

[[filter]]
name = "kill"
command = "kill"
args = ["-USR1", { pid_of = ["/usr/bin/sleep"] }]
capabilities = ["kill"]
"#;

/// Fields of a record.
pub type Record = HashMap<String, Vec<u8>>;

/// A journal that keeps what it is sent.
pub struct Journal {
    path: PathBuf,
    kept: Arc<(Mutex<Vec<Record>>, Condvar)>,
}

impl Journal {
    /// Listens at this path and reads from now on.
    pub fn listen(path: &Path) -> Self {
        let journal = Self::deaf(path);
        journal.0.read_on(journal.1)
    }

    /// Listens, and reads nothing until [`read_on`](Self::read_on).
    pub fn deaf(path: &Path) -> (Self, UnixDatagram) {
        let _ = std::fs::remove_file(path);
        let socket = UnixDatagram::bind(path).expect("bind");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).expect("chmod");
        let journal = Self {
            path: path.to_owned(),
            kept: Arc::default(),
        };
        (journal, socket)
    }

    pub fn read_on(self, socket: UnixDatagram) -> Self {
        let kept = Arc::clone(&self.kept);
        std::thread::spawn(move || {
            while let Some(record) = receive(&socket) {
                let (records, arrived) = &*kept;
                records.lock().unwrap().push(record);
                arrived.notify_all();
            }
        });
        self
    }

    /// Waits for `count` records of this event; fails with all that came when they do not.
    #[track_caller]
    pub fn wait_for(&self, event: &str, count: usize) -> Vec<Record> {
        let (records, arrived) = &*self.kept;
        let deadline = Instant::now() + PATIENCE;
        let mut records = records.lock().unwrap();
        loop {
            let found: Vec<_> = records
                .iter()
                .filter(|record| text(record, "ROOTWRAP_EVENT") == event)
                .cloned()
                .collect();
            if found.len() >= count {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let events: Vec<_> = records.iter().map(|record| text(record, "MESSAGE")).collect();
            assert!(
                !left.is_zero(),
                "{} of {count} records of {event} in {}: {events:#?}",
                found.len(),
                self.path.display()
            );
            records = arrived.wait_timeout(records, left).unwrap().0;
        }
    }

    /// The records of this event until now.
    pub fn events(&self, event: &str) -> Vec<Record> {
        let records = self.kept.0.lock().unwrap();
        records
            .iter()
            .filter(|record| text(record, "ROOTWRAP_EVENT") == event)
            .cloned()
            .collect()
    }
}

/// A field as text; empty where it is missing.
pub fn text(record: &Record, field: &str) -> String {
    record
        .get(field)
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .unwrap_or_default()
}

fn receive(socket: &UnixDatagram) -> Option<Record> {
    let mut buffer = vec![0; 1 << 18];
    let received = rootwrap::sys::socket::recv_with(socket.as_fd(), &mut buffer, 1).ok()?;
    buffer.truncate(received.len);
    if let Some(file) = received.fds.into_iter().next() {
        let mut file = std::fs::File::from(file);
        std::io::Seek::rewind(&mut file).ok()?;
        buffer.clear();
        file.read_to_end(&mut buffer).ok()?;
    }
    Some(parse(&buffer))
}

fn parse(mut bytes: &[u8]) -> Record {
    let mut fields = Record::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
        let (name, value);
        if let Some(equals) = line.iter().position(|byte| *byte == b'=') {
            (name, value, bytes) = (&line[..equals], &line[equals + 1..], rest);
        } else {
            let length = usize::try_from(u64::from_le_bytes(rest[..8].try_into().unwrap())).unwrap();
            (name, value, bytes) = (line, &rest[8..8 + length], &rest[9 + length..]);
        }
        let repeated = fields.insert(String::from_utf8(name.to_vec()).unwrap(), value.to_vec());
        assert!(repeated.is_none(), "{} stands twice", String::from_utf8_lossy(name));
    }
    fields
}

/// How a [`Daemon`] is started.
pub struct Setup {
    pub settings: String,
    pub filters: String,
    pub journal: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            settings: String::new(),
            filters: FILTERS.to_owned(),
            journal: true,
        }
    }
}

/// A running rootwrapd, killed when dropped.
pub struct Daemon {
    pub directory: tempfile::TempDir,
    pub journal: Option<Journal>,
    process: Child,
}

/// A directory below one that only root can write, as policies need, and that others can look into.
pub fn directory() -> tempfile::TempDir {
    let directory = tempfile::Builder::new()
        .prefix("rootwrap-test-")
        .tempdir_in("/run")
        .expect("the tests need root");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    directory
}

/// The service's command line for files in this directory.
pub fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rootwrapd"));
    command
        .arg("--config")
        .arg(directory.join("rootwrap.toml"))
        .arg("--filters")
        .arg(directory.join("filters"))
        .arg("--journal-socket")
        .arg(directory.join("journal"))
        .stdin(Stdio::null());
    command
}

pub fn write_files(directory: &Path, setup: &Setup) {
    std::fs::create_dir(directory.join("filters")).expect("mkdir");
    std::fs::write(directory.join("rootwrap.toml"), &setup.settings).expect("write");
    std::fs::write(directory.join("filters/50-test.toml"), &setup.filters).expect("write");
}

impl Daemon {
    pub fn start() -> Self {
        Self::with(Setup::default())
    }

    pub fn with_settings(settings: &str) -> Self {
        Self::with(Setup {
            settings: settings.into(),
            ..Setup::default()
        })
    }

    pub fn with(setup: Setup) -> Self {
        let directory = directory();
        write_files(directory.path(), &setup);
        let journal = setup.journal.then(|| Journal::listen(&directory.path().join("journal")));
        let process = command(directory.path())
            .arg("--socket")
            .arg(directory.path().join("socket"))
            .spawn()
            .expect("spawn");
        let mut daemon = Self {
            directory,
            journal,
            process,
        };
        daemon.until_it_answers();
        daemon
    }

    fn until_it_answers(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while UnixStream::connect(self.socket()).is_err() {
            assert!(self.process.try_wait().expect("wait").is_none(), "it did not start");
            assert!(Instant::now() < deadline, "it does not answer");
            std::thread::yield_now();
        }
        self.connect().call("io.rootwrap.GetStatus", &json!({}));
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn journal(&self) -> &Journal {
        self.journal.as_ref().expect("a journal")
    }

    pub fn connect(&self) -> Peer {
        Peer::connect(&self.socket())
    }

    pub fn set_filters(&self, filters: &str) {
        std::fs::write(self.directory.path().join("filters/50-test.toml"), filters).expect("write");
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.process), signal).expect("kill");
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait().expect("wait")
    }

    /// Fields of /proc/PID/status.
    pub fn status(&self) -> HashMap<String, String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("status");
        let fields = status.lines().filter_map(|line| line.split_once(':'));
        fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
    }

    /// Open descriptors and children, once they have come down to what they were before; the last seen when they do not.
    #[track_caller]
    pub fn has_again(&self, before: (usize, usize)) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = self.holds();
            if now == before {
                return;
            }
            assert!(Instant::now() < deadline, "descriptors and children: {now:?}, before: {before:?}");
            std::thread::yield_now();
        }
    }

    /// Open descriptors and children, when both hold still.
    pub fn holds(&self) -> (usize, usize) {
        let pid = self.pid();
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("fd").count();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("children");
        (descriptors, children.split_whitespace().count())
    }

    /// As [`holds`](Self::holds), once the parked children are all there.
    pub fn settled(&self) -> (usize, usize) {
        // What was executed once is kept open.
        self.connect().run(&["echo", "warm"]);
        self.connect().run(&["sleep", "0"]);
        let deadline = Instant::now() + PATIENCE;
        // Launcher and four parked children, two descriptors for each of these and what is always open.
        while self.holds().1 != 5 {
            assert!(Instant::now() < deadline, "descriptors and children: {:?}", self.holds());
            std::thread::yield_now();
        }
        let mut last = self.holds();
        loop {
            // The last connection may still be closing.
            std::thread::sleep(Duration::from_millis(20));
            let now = self.holds();
            if now == last {
                return now;
            }
            last = now;
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program of the test, killed when dropped.
pub struct Program(pub Child);

impl Program {
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().expect("spawn"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A caller that speaks the protocol by hand.
pub struct Peer {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Peer {
    pub fn connect(path: &Path) -> Self {
        Self::on(UnixStream::connect(path).expect("connect"))
    }

    pub fn on(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("timeout");
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\0").as_bytes());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        // The service may have closed it already: then the reply is what counts.
        let _ = self.stream.write_all(bytes);
    }

    pub fn send_with(&mut self, message: &Value, fds: &[BorrowedFd<'_>]) {
        send_with(self.stream.as_fd(), format!("{message}\0").as_bytes(), fds, None).expect("send");
    }

    /// The next reply; `None`: the connection was closed.
    #[track_caller]
    pub fn reply(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&message[..end]).expect("JSON"));
            }
            let mut piece = [0; 65536];
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(length) => self.buffer.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no reply: {error}"),
            }
        }
    }

    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.send(&json!({"method": method, "parameters": parameters}));
        self.reply().expect("a reply")
    }

    #[track_caller]
    pub fn run(&mut self, argv: &[&str]) -> Value {
        self.call("io.rootwrap.Run", &json!({"argv": argv}))
    }

    /// Begins a Run with `more`; the id and pid of the command that has started.
    #[track_caller]
    pub fn begin(&mut self, parameters: &Value) -> (String, u32) {
        self.send(&json!({"method": "io.rootwrap.Run", "parameters": parameters, "more": true}));
        let started = self.reply().expect("a reply");
        assert_eq!(started["parameters"]["state"], "started", "{started}");
        assert_eq!(started["continues"], true, "{started}");
        let id = started["parameters"]["id"].as_str().expect("id").to_owned();
        let pid = started["parameters"]["pid"].as_u64().expect("pid");
        (id, u32::try_from(pid).expect("pid"))
    }
}

/// The error's name without its interface; empty: success.
pub fn error(reply: &Value) -> String {
    let name = reply["error"].as_str().unwrap_or_default();
    name.rsplit('.').next().unwrap_or_default().to_owned()
}

/// Captured output as text.
pub fn output(reply: &Value, stream: &str) -> String {
    use base64::Engine;
    let encoded = reply["parameters"][stream]
        .as_str()
        .unwrap_or_else(|| panic!("no {stream}: {reply}"));
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64")).expect("UTF-8")
}

/// Does something as another user without supplementary groups.
pub fn as_user<T: Send>(uid: u32, act: impl FnOnce() -> T + Send) -> T {
    as_member(uid, uid, &[], act)
}

/// Does something as another user with these groups, in a thread of its own (the ids of a thread are its own in the kernel).
pub fn as_member<T: Send>(uid: u32, gid: u32, groups: &[u32], act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let acting = scope.spawn(|| {
            use rustix::process::{Gid, Uid};
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            let groups: Vec<Gid> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
            rustix::thread::set_thread_groups(&groups).expect("setgroups");
            rustix::thread::set_thread_res_gid(gid, gid, gid).expect("setresgid");
            rustix::thread::set_thread_res_uid(uid, uid, uid).expect("setresuid");
            act()
        });
        acting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
