//! A disposable machine: `tests/box` as a type. It ends with its value, and with the test process whatever happens to it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::stage::{TREE, build, stage};

/// Where the programs of the tests' own lie in every machine.
pub const TOOLS: &str = "/srv/tests";

/// What a command inside gave.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
    what: String,
}

impl Outcome {
    /// The exit code; a signal counts as a shell counts it.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .or_else(|| self.status.signal().map(|signal| 128 + signal))
            .expect("ended")
    }

    /// Standard output, of a command that must have exited with 0.
    #[track_caller]
    pub fn ok(self) -> String {
        self.expect(0).text()
    }

    /// The outcome of a command that must have exited so.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code(),
            code,
            "`{}` exited so; its output: {}its errors: {}",
            self.what,
            String::from_utf8_lossy(&self.stdout),
            self.stderr
        );
        self
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A machine with the package installed, the users alice and bob, and `rootwrap.socket` listening.
pub struct Machine {
    name: String,
    root: PathBuf,
}

impl Machine {
    /// Boots over this host's own root.
    pub fn boot() -> Self {
        Self::over(None)
    }

    /// Boots over a Debian release of its own, as `tests/box root` makes it.
    pub fn boot_suite(suite: &str) -> Self {
        let output = Command::new(tool())
            .args(["root", suite])
            .stderr(Stdio::inherit())
            .output()
            .expect("tests/box");
        assert!(output.status.success(), "no root directory for {suite}");
        Self::over(Some(Path::new(String::from_utf8_lossy(&output.stdout).trim())))
    }

    fn over(root: Option<&Path>) -> Self {
        let machine = Self::bare(root, Some(&stage()));
        machine.root(["systemctl", "start", "rootwrap.socket"]).ok();
        machine
    }

    /// Boots over `root` without starting anything; the tree `files` is copied over it.
    pub fn bare(root: Option<&Path>, files: Option<&Path>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(tool());
        command.args([
            &name,
            "up",
            "--owner",
            &std::process::id().to_string(),
            "--user",
            "alice",
            "--user",
            "bob",
        ]);
        command.arg("--bind").arg(format!("{TREE}/tests/integration/tools:{TOOLS}"));
        command.arg("--bind").arg(format!("{TREE}:/srv/tree"));
        command.arg("--bind").arg(format!("{}:/srv/build", build().display()));
        for (option, path) in [("--root", root), ("--files", files)] {
            if let Some(path) = path {
                command.arg(option).arg(path);
            }
        }
        let output = command.output().expect("tests/box");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut machine = Self {
            name,
            root: PathBuf::new(),
        };
        machine.root = PathBuf::from(format!("/proc/{}/root", machine.pid()));
        machine
    }

    /// The host's number of its PID 1.
    pub fn pid(&self) -> u32 {
        let output = Command::new(tool()).args([&self.name, "pid"]).output().expect("tests/box");
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("a pid")
    }

    /// A path inside, as this process sees it.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside.trim_start_matches('/'))
    }

    /// Runs a command inside as root.
    pub fn root<I: IntoIterator<Item: AsRef<OsStr>>>(&self, argv: I) -> Outcome {
        self.run("root", argv)
    }

    /// Runs a command inside as alice.
    pub fn alice<I: IntoIterator<Item: AsRef<OsStr>>>(&self, argv: I) -> Outcome {
        self.run("alice", argv)
    }

    /// Runs a command inside as a user, for at most two minutes: one that hangs fails its test.
    pub fn run<I: IntoIterator<Item: AsRef<OsStr>>>(&self, user: &str, argv: I) -> Outcome {
        let mut command = self.command(user, argv);
        let what = format!("{command:?}");
        let output = command.stdin(Stdio::null()).output().expect("tests/box");
        assert_ne!(output.status.signal(), Some(9), "{what} did not end");
        Outcome {
            status: output.status,
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            what,
        }
    }

    /// The same, not started yet.
    pub fn command<I: IntoIterator<Item: AsRef<OsStr>>>(&self, user: &str, argv: I) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["-s", "KILL", "120"])
            .arg(tool())
            .args([&self.name, "exec", "--user", user, "--"])
            .args(argv);
        command
    }

    /// Runs a shell script inside as a user.
    pub fn sh(&self, user: &str, script: &str) -> Outcome {
        self.run(user, ["bash", "-c", script])
    }

    /// Runs a command in a login session of a user.
    pub fn session<I: IntoIterator<Item: AsRef<OsStr>>>(&self, user: &str, argv: I) -> Outcome {
        let mut command = Command::new("timeout");
        command
            .args(["-s", "KILL", "120"])
            .arg(tool())
            .args([&self.name, "exec", "--session", "--user", user, "--"])
            .args(argv);
        let what = format!("{command:?}");
        let output = command.stdin(Stdio::null()).output().expect("tests/box");
        Outcome {
            status: output.status,
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            what,
        }
    }

    /// Writes a file inside (root's, mode 644), with the directories on the way.
    pub fn write(&self, inside: &str, content: impl AsRef<[u8]>) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().expect("a directory")).expect("mkdir");
        fs::write(&path, content).expect("write");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("chmod");
    }

    /// Puts filters in force.
    #[track_caller]
    pub fn filters(&self, toml: &str) {
        self.write("/etc/rootwrap/filters.d/50-test.toml", toml);
        if self.main_pid() != 0 {
            self.root(["systemctl", "reload", "rootwrap.service"]).ok();
        }
    }

    /// The service's process as the machine numbers it; 0 when it does not run.
    pub fn main_pid(&self) -> u32 {
        self.property("rootwrap.service", "MainPID").parse().expect("a number")
    }

    /// A property of a unit.
    pub fn property(&self, unit: &str, property: &str) -> String {
        self.root(["systemctl", "show", "--value", "-p", property, unit])
            .ok()
            .trim()
            .to_owned()
    }

    /// The journal, everything sent so far included.
    pub fn journalctl(&self, arguments: &[&str]) -> String {
        let output = Command::new(tool())
            .args([&self.name, "journal"])
            .args(arguments)
            .output()
            .expect("tests/box");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("journalctl writes UTF-8")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.journalctl(&["-n", "60", "-o", "short-monotonic"]);
            eprintln!("--- the end of the machine's journal\n{log}---");
        }
        let status = Command::new(tool()).args([&self.name, "down"]).status();
        assert!(
            status.is_ok_and(|status| status.success()) || std::thread::panicking(),
            "the machine {} is left",
            self.name
        );
    }
}

fn tool() -> PathBuf {
    Path::new(TREE).join("tests/box")
}
