//! A launcher, filters and cgroups for tests.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rootwrap::config::trusted::open_executable;
use rootwrap::launch::{Exit, Job, JobContext, JobDescriptors, LaunchError, Launcher, LauncherProcess, Running, Target};
use rootwrap::policy::facts::Facts;
use rootwrap::policy::spec::{
    Callers, Capabilities, CommandSpec, Cwd, Element, ElementKind, Execution, FilterSpec, Ids, OnDisconnect, Placement, PolicySpec, RunAs,
    Span, Stdin, UserRule,
};
use rootwrap::policy::{Outcome, Permit, Policy, Request, Subject, decide};

/// Long enough for a loaded machine; nothing waits for it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Capabilities by number.
pub const CHOWN: u64 = 1 << 0;
pub const DAC_OVERRIDE: u64 = 1 << 1;
pub const NET_ADMIN: u64 = 1 << 12;
pub const NET_RAW: u64 = 1 << 13;
pub const SETPCAP: u64 = 1 << 8;

/// A launcher inside a runtime, with a cgroup tree that is gone afterwards.
pub fn with_launcher<F: AsyncFnOnce(&Launcher, &Path)>(parked: u32, test: F) {
    with_launcher_process(parked, async |launcher, root, _pid| test(launcher, root).await);
}

pub fn with_launcher_process<F: AsyncFnOnce(&Launcher, &Path, u32)>(parked: u32, test: F) {
    needs_root();
    let root = TestCgroup::new();
    let process = LauncherProcess::start(Path::new(env!("CARGO_BIN_EXE_rootwrap-launcher"))).unwrap();
    let pid = process.pid();
    runtime().block_on(async {
        let launcher = process.into_launcher(parked, Some(&root.0)).unwrap();
        test(&launcher, &root.0, pid).await;
        launcher.close().await;
    });
    assert_eq!(subdirectories(&root.0.join("jobs")), Vec::<PathBuf>::new(), "cgroups are left");
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the launcher is left");
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub fn needs_root() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    assert!(
        status.contains("\nUid:\t0\t0\t0\t0\n"),
        "these tests start privileged children: run them as root"
    );
}

static COUNT: AtomicU32 = AtomicU32::new(0);

fn unique(name: &str) -> String {
    format!("rootwrap-{name}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A cgroup2 directory of this test.
pub struct TestCgroup(pub PathBuf);

impl TestCgroup {
    pub fn new() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
        let mount = mount.expect("these tests need a cgroup2 mount").split(' ').nth(4).unwrap();
        let path = Path::new(mount).join(unique("test"));
        fs::create_dir(&path).expect("these tests make cgroups");
        Self(path)
    }

    pub fn descriptor(&self) -> OwnedFd {
        fs::File::open(&self.0).unwrap().into()
    }

    pub fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap();
    }

    pub fn processes(&self) -> String {
        fs::read_to_string(self.0.join("cgroup.procs")).unwrap()
    }
}

impl Drop for TestCgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        eventually(|| {
            let below = subdirectories(&self.0);
            below
                .iter()
                .rev()
                .chain([&self.0])
                .for_each(|directory| drop(fs::remove_dir(directory)));
            !self.0.exists()
        });
    }
}

/// All directories below, parents first.
pub fn subdirectories(path: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.push(entry.path());
            all.extend(subdirectories(&entry.path()));
        }
    }
    all
}

/// For what the kernel does in its own time and tells nobody about.
pub fn eventually(mut done: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "it did not come to pass");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// As [`eventually`], while the runtime goes on.
pub async fn eventually_in_runtime(mut done: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "it did not come to pass");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A directory that every user can enter and only root can write, below directories of the same kind.
pub struct TrustedDirectory(pub PathBuf);

impl TrustedDirectory {
    pub fn new() -> Self {
        let path = Path::new("/var/lib").join(unique("files"));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, mode(0o755)).unwrap();
        Self(path)
    }

    pub fn copy(&self, of: &str, name: &str, permissions: u32) -> String {
        let path = self.0.join(name);
        fs::copy(of, &path).unwrap();
        fs::set_permissions(&path, mode(permissions)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for TrustedDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn mode(bits: u32) -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(bits)
}

/// What a filter's author would write: root with these capabilities, all else as it is by default.
pub fn root_with(capabilities: u64) -> Execution {
    Execution {
        run_as: user("root", 0, 0, &[]),
        capabilities: Capabilities::Set(capabilities),
        no_new_privs: true,
        env_allow: vec![],
        env_set: vec![],
        cwd: Cwd::Path("/".into()),
        stdin: Stdin::Caller,
        umask: 0o022,
        nice: 0,
        oom_score: 0,
        nofile: None,
        timeout: None,
        kill_after: Duration::from_secs(5),
        on_disconnect: OnDisconnect::Kill,
        placement: Placement::Own,
        sha256: None,
    }
}

pub fn nobody_with(capabilities: u64) -> Execution {
    Execution {
        run_as: user("nobody", 65534, 65534, &[]),
        ..root_with(capabilities)
    }
}

pub fn user(name: &str, uid: u32, gid: u32, groups: &[u32]) -> Arc<RunAs> {
    Arc::new(RunAs {
        ids: Some(Ids {
            uid,
            gid,
            groups: groups.to_vec(),
        }),
        user: name.into(),
        home: "/".into(),
        shell: "/usr/sbin/nologin".into(),
    })
}

fn filter(name: &str, argv: &[&str], execution: &Execution, args: Vec<ElementKind>) -> FilterSpec {
    let element = |kind| Element {
        span: Span::default(),
        kind,
        dash: true,
        secret: false,
    };
    FilterSpec {
        name: name.into(),
        span: Span::default(),
        line: 1,
        callers: Arc::new(Callers {
            users: vec![UserRule::Any],
            ..Callers::default()
        }),
        command: CommandSpec {
            spelled: vec![argv[0].into()],
            candidates: vec![argv[0].into()],
            span: Span::default(),
        },
        args: args.into_iter().map(element).collect(),
        execution: execution.clone(),
        message: None,
        inner_only: false,
        max_concurrent: None,
    }
}

fn literals(args: &[&str]) -> Vec<ElementKind> {
    args.iter().map(|arg| ElementKind::Literal(arg.as_bytes().to_vec())).collect()
}

/// Leave to run exactly this; argv\[0\] is an absolute path.
pub fn permit(execution: &Execution, argv: &[&str]) -> Permit {
    decided(vec![filter("test", argv, execution, literals(&argv[1..]))], argv)
}

/// Leave to run `inner` behind `outer`.
pub fn nested_permit(execution: &Execution, outer: &[&str], inner: &[&str]) -> Permit {
    let mut args = literals(&outer[1..]);
    args.push(ElementKind::Command(rootwrap::policy::spec::InnerFilters::Any));
    let filters = vec![
        filter("outer", outer, execution, args),
        filter("inner", inner, execution, literals(&inner[1..])),
    ];
    decided(filters, &[outer, inner].concat())
}

fn decided(filters: Vec<FilterSpec>, argv: &[&str]) -> Permit {
    let has_cwd = filters.iter().any(|filter| filter.execution.cwd == Cwd::Caller);
    let policy = Policy::build(PolicySpec {
        files: vec!["test.toml".into()],
        filters,
        hash: [0; 32],
    })
    .unwrap();
    let argv: Vec<Vec<u8>> = argv.iter().map(|arg| arg.as_bytes().to_vec()).collect();
    let request = Request {
        subject: &Subject::default(),
        argv: &argv,
        environment: &[],
        has_cwd,
        has_stdin: true,
        filter: None,
        profile: None,
    };
    match decide(&policy, &request, &Facts::new()) {
        Outcome::Allow(permit) => *permit,
        Outcome::Deny(denial) => panic!("the filter is for exactly this command: {}", denial.message),
        Outcome::Ask(questions) => panic!("nothing is open: {questions:?}"),
    }
}

pub fn job_with(permit: &Permit, argv: &[&str], context: JobContext, descriptors: JobDescriptors) -> Job {
    let executable = Arc::new(open_executable(Path::new(argv[0])).unwrap());
    Job::new(permit, executable, None, context, descriptors).unwrap()
}

pub fn context() -> JobContext {
    JobContext {
        caller_uid: 1234,
        request_id: "request".into(),
        loginuid: None,
        term: None,
    }
}

pub fn job(execution: &Execution, argv: &[&str], descriptors: JobDescriptors) -> Job {
    job_with(&permit(execution, argv), argv, context(), descriptors)
}

/// A job without descriptors of the caller.
pub fn quiet(execution: &Execution, argv: &[&str]) -> Job {
    job(execution, argv, JobDescriptors::default())
}

/// A command that runs, with our ends of its pipes.
pub struct Started {
    pub running: Running,
    pub stdin: fs::File,
    pub stdout: fs::File,
}

impl Started {
    /// The next line of output.
    pub fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.stdout.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// The rest of its output and its end, without its cgroup.
    pub async fn finish(mut self) -> (Exit, String) {
        drop(self.stdin);
        let mut output = String::new();
        self.stdout.read_to_string(&mut output).unwrap();
        let exit = self.running.wait().await;
        self.running.clean_up().await;
        (exit, output)
    }
}

pub async fn start_in(launcher: &Launcher, target: Target, execution: &Execution, argv: &[&str]) -> Result<Started, LaunchError> {
    let (childs_stdin, stdin) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let (stdout, childs_stdout) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let descriptors = JobDescriptors {
        stdin: Some(childs_stdin.into()),
        stderr: Some(childs_stdout.try_clone().unwrap().into()),
        stdout: Some(childs_stdout.into()),
        cwd: Some(fs::File::open("/usr").unwrap().into()),
    };
    let running = launcher.launch(job(execution, argv, descriptors), target, DEADLINE).await?;
    Ok(Started {
        running,
        stdin: stdin.into(),
        stdout: stdout.into(),
    })
}

pub async fn start(launcher: &Launcher, execution: &Execution, argv: &[&str]) -> Started {
    start_in(launcher, Target::Own, execution, argv).await.unwrap()
}

/// Runs a command to its end; its output, standard error with it.
pub async fn output(launcher: &Launcher, execution: &Execution, argv: &[&str]) -> String {
    start(launcher, execution, argv).await.finish().await.1
}

pub async fn shell(launcher: &Launcher, execution: &Execution, script: &str) -> String {
    output(launcher, execution, &["/bin/sh", "-c", script]).await
}

/// All capabilities that this machine gives.
pub fn all_capabilities() -> u64 {
    u64::from_str_radix(field(&fs::read_to_string("/proc/self/status").unwrap(), "CapBnd"), 16).unwrap()
}

/// A line of /proc/PID/status.
pub fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} is missing: {status}")).trim()
}

/// Runs a tool of the test itself.
pub fn tool(argv: &[&str]) {
    let status = Command::new(argv[0]).args(&argv[1..]).stdout(Stdio::null()).status();
    assert!(status.unwrap_or_else(|error| panic!("{argv:?}: {error}")).success(), "{argv:?}");
}
