//! A double of the kernel that writes down what is asked of it, and can fail at any point: the order of the steps is tested here.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::privileged::{Privileged, Program};
use super::steps::{Failure, become_command, detach};
use crate::launch::Step;
use crate::launch::wire::CommandJob;

/// Full root in these tests.
const ALL: u64 = 0x1ff_ffff_ffff;

#[derive(Default)]
struct Recorder {
    calls: Vec<String>,
    /// Which call fails, counted from 0.
    fail_at: Option<usize>,
}

impl Recorder {
    fn record(&mut self, call: impl Into<String>) -> io::Result<()> {
        self.calls.push(call.into());
        if self.fail_at.is_some_and(|at| at + 1 == self.calls.len()) {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        Ok(())
    }
}

impl Privileged for Recorder {
    fn new_session(&mut self) -> io::Result<()> {
        self.record("setsid")
    }
    fn new_session_keyring(&mut self) -> io::Result<()> {
        self.record("keyring")
    }
    fn reset_signals(&mut self) -> io::Result<()> {
        self.record("signals")
    }
    fn place_descriptors(&mut self, stdio: [Option<BorrowedFd<'_>>; 3]) -> io::Result<()> {
        self.record(format!("descriptors {:?}", stdio.map(|fd| fd.is_some())))
    }
    fn set_umask(&mut self, umask: u32) -> io::Result<()> {
        self.record(format!("umask {umask:o}"))
    }
    fn reset_scheduling(&mut self) -> io::Result<()> {
        self.record("scheduling")
    }
    fn set_nice(&mut self, nice: i32) -> io::Result<()> {
        self.record(format!("nice {nice}"))
    }
    fn set_oom_score(&mut self, score: i32) -> io::Result<()> {
        self.record(format!("oom {score}"))
    }
    fn reset_limits(&mut self) -> io::Result<()> {
        self.record("limits")
    }
    fn set_nofile(&mut self, limit: u64) -> io::Result<()> {
        self.record(format!("nofile {limit}"))
    }
    fn check_digest(&mut self, _executable: BorrowedFd<'_>, expected: &[u8; 32]) -> io::Result<()> {
        self.record(format!("digest {}", expected[0]))
    }
    fn set_loginuid(&mut self, loginuid: u32) -> io::Result<()> {
        self.record(format!("loginuid {loginuid}"))
    }
    fn change_directory(&mut self, path: &CStr) -> io::Result<()> {
        self.record(format!("chdir {path:?}"))
    }
    fn change_directory_to(&mut self, _directory: BorrowedFd<'_>) -> io::Result<()> {
        self.record("fchdir")
    }
    fn limit_bounding_set(&mut self, to: u64) -> io::Result<()> {
        self.record(format!("bounding {to:x}"))
    }
    fn set_securebits(&mut self) -> io::Result<()> {
        self.record("securebits")
    }
    fn keep_capabilities(&mut self) -> io::Result<()> {
        self.record("keepcaps")
    }
    fn set_groups(&mut self, groups: &[u32]) -> io::Result<()> {
        self.record(format!("groups {groups:?}"))
    }
    fn set_gid(&mut self, gid: u32) -> io::Result<()> {
        self.record(format!("gid {gid}"))
    }
    fn set_uid(&mut self, uid: u32) -> io::Result<()> {
        self.record(format!("uid {uid}"))
    }
    fn permitted_capabilities(&mut self) -> io::Result<u64> {
        self.record("capget").map(|()| ALL)
    }
    fn set_capabilities(&mut self, permitted: u64, inheritable: u64) -> io::Result<()> {
        self.record(format!("capset {permitted:x} inheritable {inheritable:x}"))
    }
    fn set_ambient(&mut self, set: u64) -> io::Result<()> {
        self.record(format!("ambient {set:x}"))
    }
    fn set_no_new_privs(&mut self) -> io::Result<()> {
        self.record("no_new_privs")
    }
    fn check_executable(&mut self, path: &CStr, _executable: BorrowedFd<'_>) -> io::Result<()> {
        self.record(format!("check {path:?}"))
    }
    fn announce(&mut self) -> io::Result<()> {
        self.record("announce")
    }
    fn execute(&mut self, program: Program<'_>, argv: &[CString], environment: &[CString]) -> io::Error {
        let how = match program {
            Program::Path(path) => format!("{path:?}"),
            Program::Descriptor(_) => "descriptor".to_owned(),
        };
        // A real exec does not come back; here it says so with an errno that no other call gives.
        match self.record(format!("exec {how} {argv:?} {environment:?}")) {
            Ok(()) => io::Error::from_raw_os_error(libc::ENOEXEC),
            Err(error) => error,
        }
    }
}

/// As a plain user with one capability, everything optional left out.
fn job() -> CommandJob {
    CommandJob {
        path: b"/usr/sbin/ip".to_vec(),
        args: vec![b"link".to_vec()],
        environment: vec![b"PATH=/x".to_vec()],
        inner: None,
        sha256: None,
        stdio: [false; 3],
        cwd: Some(b"/".to_vec()),
        umask: 0o022,
        nice: 0,
        oom_score: 0,
        nofile: None,
        loginuid: None,
        uid: 1000,
        gid: 100,
        groups: vec![7, 8],
        capabilities: Some(0x1000),
        no_new_privs: true,
    }
}

fn descriptors(count: usize) -> Vec<OwnedFd> {
    let open = || std::fs::File::open("/dev/null").unwrap().into();
    (0..count).map(|_| open()).collect()
}

fn calls(job: &CommandJob, given: usize) -> Vec<String> {
    let mut kernel = Recorder::default();
    detach(&mut kernel).unwrap();
    let failure = become_command(&mut kernel, job, &descriptors(given));
    assert_eq!(
        failure,
        Failure {
            step: Step::Exec,
            errno: libc::ENOEXEC
        }
    );
    kernel.calls
}

/// The part that gives up privileges.
fn drop_calls(job: &CommandJob) -> Vec<String> {
    let all = calls(job, 1);
    let start = all.iter().position(|call| call.starts_with("chdir")).unwrap() + 1;
    let end = all.iter().position(|call| call.starts_with("check")).unwrap();
    all[start..end].to_vec()
}

#[test]
fn a_plain_user_with_a_capability_takes_every_step_in_order() {
    assert_eq!(
        calls(&job(), 1),
        [
            "setsid",
            "keyring",
            "signals",
            "scheduling",
            "limits",
            "descriptors [false, false, false]",
            "umask 22",
            "nice 0",
            "oom 0",
            "chdir \"/\"",
            "bounding 1000",
            "securebits",
            "keepcaps",
            "groups [7, 8]",
            "gid 100",
            "uid 1000",
            "capset 1000 inheritable 1000",
            "ambient 1000",
            "no_new_privs",
            "check \"/usr/sbin/ip\"",
            "announce",
            "exec \"/usr/sbin/ip\" [\"/usr/sbin/ip\", \"link\"] [\"PATH=/x\"]",
        ]
    );
}

#[test]
fn root_with_a_capability_has_it_ambient_too() {
    let job = CommandJob {
        uid: 0,
        gid: 0,
        groups: vec![],
        ..job()
    };
    assert_eq!(
        drop_calls(&job),
        [
            "bounding 1000",
            "securebits",
            "groups []",
            "gid 0",
            "uid 0",
            "capset 1000 inheritable 1000",
            "ambient 1000",
            "no_new_privs"
        ]
    );
}

#[test]
fn without_capabilities_every_set_is_emptied() {
    for uid in [0, 1000] {
        let job = CommandJob {
            uid,
            capabilities: Some(0),
            ..job()
        };
        let calls = drop_calls(&job);
        for expected in ["bounding 0", "securebits", "capset 0 inheritable 0", "ambient 0"] {
            assert!(calls.iter().any(|call| call == expected), "{uid}: {expected}: {calls:?}");
        }
    }
}

#[test]
fn full_root_keeps_securebits_and_nothing_inheritable() {
    let job = CommandJob {
        uid: 0,
        capabilities: None,
        ..job()
    };
    assert_eq!(
        drop_calls(&job),
        [
            "groups [7, 8]",
            "gid 100",
            "uid 0",
            "capget",
            "capset 1ffffffffff inheritable 0",
            "ambient 0",
            "no_new_privs"
        ]
    );
}

#[test]
fn another_user_with_all_capabilities_has_them_ambient() {
    let job = CommandJob {
        capabilities: None,
        no_new_privs: false,
        ..job()
    };
    assert_eq!(
        drop_calls(&job),
        [
            "keepcaps",
            "groups [7, 8]",
            "gid 100",
            "uid 1000",
            "capget",
            "capset 1ffffffffff inheritable 1ffffffffff",
            "ambient 1ffffffffff"
        ]
    );
}

#[test]
fn what_a_filter_asks_for_comes_at_its_place() {
    let job = CommandJob {
        inner: Some(b"/usr/sbin/dnsmasq".to_vec()),
        stdio: [true, false, true],
        cwd: None,
        nofile: Some(64),
        loginuid: Some(1000),
        nice: 5,
        oom_score: 500,
        ..job()
    };
    let all = calls(&job, 5);
    assert_eq!(
        all[5..11],
        [
            "descriptors [true, false, true]",
            "umask 22",
            "nice 5",
            "oom 500",
            "nofile 64",
            "loginuid 1000"
        ]
    );
    assert_eq!(all[11], "fchdir");
    let checks: Vec<_> = all.iter().filter(|call| call.starts_with("check")).collect();
    assert_eq!(checks, ["check \"/usr/sbin/ip\"", "check \"/usr/sbin/dnsmasq\""]);
}

#[test]
fn a_pinned_file_is_hashed_with_privilege_and_executed_by_descriptor() {
    let job = CommandJob {
        sha256: Some([9; 32]),
        ..job()
    };
    let all = calls(&job, 1);
    let digest = all.iter().position(|call| call == "digest 9").unwrap();
    assert!(digest < all.iter().position(|call| call.starts_with("bounding")).unwrap());
    assert!(all.last().unwrap().starts_with("exec descriptor"));
    assert!(all.iter().all(|call| !call.starts_with("check")));
}

#[test]
fn whichever_call_fails_nothing_is_executed_and_its_step_is_named() {
    let everything = CommandJob {
        sha256: None,
        inner: Some(b"/i".to_vec()),
        loginuid: Some(1),
        ..job()
    };
    let full_root = CommandJob {
        capabilities: None,
        ..job()
    };
    let pinned = CommandJob {
        sha256: Some([9; 32]),
        ..job()
    };
    for (job, given) in [(everything, 2), (full_root, 1), (pinned, 1)] {
        let complete = calls(&job, given);
        let mut steps = Vec::new();
        for fail_at in 0..complete.len() - 1 {
            let mut kernel = Recorder {
                fail_at: Some(fail_at),
                ..Recorder::default()
            };
            let outcome = detach(&mut kernel).and_then(|()| Err::<Infallible, _>(become_command(&mut kernel, &job, &descriptors(given))));
            let Err(Failure { step, errno }) = outcome;
            assert_eq!(errno, libc::EPERM, "{}", complete[fail_at]);
            assert_eq!(kernel.calls, complete[..=fail_at], "nothing comes after the failure");
            assert!(!kernel.calls.iter().any(|call| call.starts_with("exec")));
            steps.push(step);
        }
        assert!(steps.is_sorted_by_key(|step| *step as u8), "steps in their order: {steps:?}");
    }
}

#[test]
fn descriptors_that_are_missing_or_too_many_stop_the_job_before_its_first_step() {
    for given in [0, 2, 3] {
        let mut kernel = Recorder::default();
        assert_eq!(become_command(&mut kernel, &job(), &descriptors(given)).step, Step::Receive);
        assert_eq!(kernel.calls, Vec::<String>::new());
    }
}

#[test]
fn a_nul_byte_stops_the_job_before_its_first_step() {
    let job = CommandJob {
        args: vec![b"a\0b".to_vec()],
        ..job()
    };
    let mut kernel = Recorder::default();
    assert_eq!(become_command(&mut kernel, &job, &descriptors(1)).step, Step::Receive);
    assert!(kernel.calls.is_empty());
}
