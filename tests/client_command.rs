//! The client command against a service that this test plays: statuses, signals, descriptors, messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use rootwrap::protocol::run::{RunReply, RunState};
use rootwrap::protocol::{Error, Method, Reply};
use support::{Peer, Service, exited, started};

fn rootwrap(service: &Service) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rootwrap"));
    command.env("ROOTWRAP_SOCKET", service.path()).stdin(Stdio::null());
    command
}

/// Runs the command line against one answer.
fn answered(line: &[&str], answer: impl FnOnce(Peer) + Send + 'static) -> Output {
    let service = Service::start(answer);
    rootwrap(&service).args(line).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn given_an_exit_status_then_it_is_mirrored() {
    for code in [0, 1, 42, 255] {
        let output = answered(&["ip", "link"], move |mut peer| {
            let (run, _fds) = peer.run();
            assert_eq!(run.wanted.argv, [b"ip".to_vec(), b"link".to_vec()]);
            peer.reply_more(&started("r1"));
            peer.reply(&RunReply {
                exit_code: Some(code),
                ..RunReply::new(RunState::Exited, "r1")
            });
        });
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn given_a_signal_then_the_client_dies_of_it_without_core() {
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV, libc::SIGPIPE, libc::SIGABRT, 34] {
        let output = answered(&["x"], move |mut peer| {
            peer.run();
            peer.reply(&RunReply {
                exit_signal: Some(signal),
                ..RunReply::new(RunState::Exited, "r1")
            });
        });
        assert_eq!(output.status.signal(), Some(signal), "{output:?}");
        assert!(!output.status.core_dumped());
    }
}

#[test]
fn given_refusals_then_status_and_message_say_why_and_what_to_do() {
    let not_permitted = |reason: &str, message: &str| Error::NotPermitted {
        reason: reason.into(),
        message: message.into(),
    };
    for (error, status, says) in [
        (
            not_permitted("no-filter", ""),
            126,
            "rootwrap: no filter for `ip link del 'v 0'` allows you; see: rootwrapctl explain -- ip link del 'v 0'\n",
        ),
        (
            not_permitted("arguments-mismatch", "Ask the network team."),
            126,
            "rootwrap: Ask the network team; see: rootwrapctl explain -- ip link del 'v 0'\n",
        ),
        (
            not_permitted("no-filter", "no filter for `ip` allows you; see: rootwrapctl explain -- ip ***"),
            126,
            "rootwrap: no filter for `ip` allows you; see: rootwrapctl explain -- ip ***\n",
        ),
        (
            not_permitted("environment-mismatch", "variable A\u{1b}[2J is not allowed"),
            126,
            "rootwrap: variable A\u{fffd}[2J is not allowed; see: rootwrapctl explain -- ip link del 'v 0'\n",
        ),
        (
            not_permitted("stdin-mismatch", ""),
            126,
            "rootwrap: the filter takes no standard input: run it with < /dev/null; see: rootwrapctl explain -- ip link del 'v 0'\n",
        ),
        (Error::NoSuchExecutable { command: "ip".into() }, 127, "not installed"),
        (Error::TimedOut { timeout_usec: 1_500_000 }, 124, "ended after 1.5 s"),
        (
            Error::LaunchFailed {
                step: "exec".into(),
                errno: libc::ENOEXEC,
            },
            126,
            "exec: Exec format error",
        ),
        (
            Error::Busy { what: "commands".into() },
            125,
            "busy: too many commands are running; try again later",
        ),
        (Error::Busy { what: "filter".into() }, 125, "(max_concurrent); try again later"),
        (
            not_permitted("no-such-filter", "you have no filter `x`; see: rootwrap --list"),
            126,
            "rootwrap: you have no filter `x`; see: rootwrap --list\n",
        ),
        (Error::PolicyUnavailable {}, 125, "rootwrapctl check"),
        (Error::AuditUnavailable {}, 125, "journal"),
        (Error::OutcomeUnknown { message: "m".into() }, 125, "unknown"),
        (Error::bad_request("argv is odd"), 125, "argv is odd"),
    ] {
        let reply = Reply::from(&error);
        let output = answered(&["ip", "link", "del", "v 0"], move |mut peer| {
            peer.run();
            peer.send(&reply);
        });
        assert_eq!(output.status.code(), Some(status), "{error:?}");
        assert!(stderr(&output).contains(says), "{error:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1);
    }
}

#[test]
fn given_a_service_that_vanishes_then_125_and_unknown() {
    let output = answered(&["x"], |mut peer| {
        peer.run();
        peer.reply_more(&started("r1"));
    });
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("unknown"), "{}", stderr(&output));
}

#[test]
fn given_a_refusal_before_the_request_is_read_then_its_reason_is_shown() {
    let output = answered(&["x"], |mut peer| {
        peer.send(&Reply::from(&Error::Busy {
            what: "connections".into(),
        }));
    });
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr(&output).contains("busy: there are too many connections"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn given_no_service_then_125_and_how_to_enable_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_rootwrap"))
        .args(["--socket", "/nonexistent/rootwrap.sock", "ip"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("systemctl status rootwrap.socket"));
}

#[test]
fn given_wrong_options_then_125_and_nothing_is_sent() {
    for line in [
        &["--bogus", "ip"][..],
        &[],
        &["--timeout", "soon", "ip"],
        &["-D", "/nonexistent", "ip"],
        &["--env", "=", "ip"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_rootwrap"))
            .args(line)
            .env("ROOTWRAP_SOCKET", "/nonexistent/rootwrap.sock")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(125), "{line:?}");
        assert!(
            !stderr(&output).contains("/nonexistent/rootwrap.sock"),
            "{line:?}: {}",
            stderr(&output)
        );
    }
    for line in [["--help"], ["--version"]] {
        assert!(
            Command::new(env!("CARGO_BIN_EXE_rootwrap"))
                .args(line)
                .output()
                .unwrap()
                .status
                .success()
        );
    }
}

#[test]
fn given_options_then_all_of_them_reach_the_service() {
    let service = Service::start(|mut peer| {
        let (run, fds) = peer.run();
        assert_eq!(run.wanted.argv, [b"-x".to_vec(), b"--".to_vec()]);
        assert_eq!(run.wanted.filter.as_deref(), Some("f"));
        assert_eq!(run.wanted.profile.as_deref(), Some("p"));
        assert_eq!(run.timeout_usec, Some(90_000_000));
        let pair = |n: &str, v: &str| (n.as_bytes().to_vec(), v.as_bytes().to_vec());
        assert_eq!(run.wanted.environment, [pair("A", "b"), pair("FROM_HERE", "yes")]);
        let claimed = run.claim(fds).unwrap();
        let cwd = std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(claimed.cwd.as_ref().unwrap()));
        let directory = std::fs::read_link(format!("/proc/self/fd/{cwd}")).unwrap();
        assert_eq!(directory, std::path::Path::new("/usr"));
        assert!(claimed.stdin.is_none(), "/dev/null is not passed");
        peer.reply(&exited("r1"));
    });
    let output = rootwrap(&service)
        .args([
            "--filter",
            "f",
            "--profile=p",
            "--timeout",
            "1min 30s",
            "-D",
            "/usr",
            "--env",
            "A=b",
            "--env",
            "FROM_HERE",
        ])
        .args(["--env", "NOT_SET_ANYWHERE", "--", "-x", "--"])
        .env("FROM_HERE", "yes")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn given_its_own_descriptors_then_the_command_has_the_same_files() {
    let service = Service::start(|mut peer| {
        let (run, fds) = peer.run();
        let claimed = run.claim(fds).unwrap();
        let mut text = String::new();
        std::fs::File::from(std::os::fd::OwnedFd::from(claimed.stdin.unwrap()))
            .read_to_string(&mut text)
            .unwrap();
        std::fs::File::from(std::os::fd::OwnedFd::from(claimed.stdout.unwrap()))
            .write_all(format!("out {text}").as_bytes())
            .unwrap();
        std::fs::File::from(std::os::fd::OwnedFd::from(claimed.stderr.unwrap()))
            .write_all(b"err")
            .unwrap();
        peer.reply(&exited("r1"));
    });
    let mut child = rootwrap(&service)
        .arg("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"in").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out in"[..], &b"err"[..]));
}

#[test]
fn given_closed_descriptors_and_no_arguments_at_all_then_it_does_not_crash() {
    let service = Service::start(|mut peer| {
        let (run, fds) = peer.run();
        let claimed = run.claim(fds).unwrap();
        assert!(claimed.stdin.is_none() && claimed.stdout.is_some() && claimed.stderr.is_some());
        peer.reply(&exited("r1"));
    });
    let closed = Command::new("sh")
        .args(["-c", "exec \"$0\" true <&- >&- 2>&-", env!("CARGO_BIN_EXE_rootwrap")])
        .env("ROOTWRAP_SOCKET", service.path())
        .status()
        .unwrap();
    assert!(closed.success());
    // Python's os.execve passes an empty argv on, as few programs do.
    let empty = Command::new("python3")
        .args([
            "-c",
            "import ctypes,sys; c=ctypes.CDLL(None); a=(ctypes.c_char_p*1)(None); c.execve(sys.argv[1].encode(), a, a)",
        ])
        .arg(env!("CARGO_BIN_EXE_rootwrap"))
        .output()
        .unwrap();
    assert_eq!(empty.status.code(), Some(125), "{empty:?}");
}

/// The forwarded signals, in the order in which they are sent; each is waited for, so nothing here depends on time.
#[test]
fn given_signals_then_they_reach_the_command_over_the_same_connection() {
    let (pid_out, pid_in) = std::sync::mpsc::channel::<i32>();
    let service = Service::start(move |mut peer| {
        peer.run();
        peer.reply_more(&started("r1"));
        let pid = pid_in.recv().unwrap();
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGCONT,
        ] {
            kill(pid, signal);
            assert_eq!(peer.signal(), ("r1".into(), signal));
        }
        kill(pid, libc::SIGTSTP);
        assert_eq!(peer.signal(), ("r1".into(), libc::SIGSTOP));
        wait_until_stopped(pid);
        kill(pid, libc::SIGCONT);
        assert_eq!(peer.signal(), ("r1".into(), libc::SIGCONT));
        peer.reply(&RunReply {
            exit_signal: Some(libc::SIGTERM),
            ..RunReply::new(RunState::Exited, "r1")
        });
    });
    let mut child = rootwrap(&service).arg("sleep").spawn().unwrap();
    // The signals are blocked by the time the call arrives, and the service has it before it asks for the pid.
    pid_out.send(i32::try_from(child.id()).unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
}

#[test]
fn given_nohup_then_sighup_stays_ignored() {
    let (pid_out, pid_in) = std::sync::mpsc::channel::<i32>();
    let service = Service::start(move |mut peer| {
        peer.run();
        peer.reply_more(&started("r1"));
        let pid = pid_in.recv().unwrap();
        kill(pid, libc::SIGHUP);
        kill(pid, libc::SIGUSR1);
        assert_eq!(peer.signal(), ("r1".into(), libc::SIGUSR1));
        peer.reply(&exited("r1"));
    });
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" sleep", env!("CARGO_BIN_EXE_rootwrap")])
        .env("ROOTWRAP_SOCKET", service.path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    pid_out.send(i32::try_from(child.id()).unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn given_a_service_that_never_starts_the_command_then_sigterm_still_ends_the_client() {
    let (pid_out, pid_in) = std::sync::mpsc::channel::<i32>();
    let service = Service::start(move |mut peer| {
        peer.run();
        kill(pid_in.recv().unwrap(), libc::SIGTERM);
        assert!(peer.next_call().is_none(), "the connection must end");
    });
    let mut child = rootwrap(&service).arg("sleep").spawn().unwrap();
    pid_out.send(i32::try_from(child.id()).unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
}

#[test]
fn given_a_socket_of_a_stranger_then_nothing_is_sent() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can play two users; run as root to see this case");
        return;
    }
    // The socket belongs to root here; the client runs as somebody else who trusts root or itself, and the listener is a third.
    let service = Service::start_as(4242, |mut peer| assert!(peer.next_call().is_none(), "nothing may be sent"));
    let output = Command::new(env!("CARGO_BIN_EXE_rootwrap"))
        .args(["--socket", service.path().to_str().unwrap(), "ip"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("uid 4242"), "{}", stderr(&output));
}

#[test]
fn given_no_new_privs_and_no_groups_then_it_works() {
    let service = Service::start(|mut peer| {
        peer.run();
        peer.reply(&exited("r1"));
    });
    let mut command = Command::new("setpriv");
    command.args(["--no-new-privs"]);
    if rustix::process::geteuid().is_root() {
        command.arg("--clear-groups");
    }
    let status = command
        .arg(env!("CARGO_BIN_EXE_rootwrap"))
        .arg("true")
        .env("ROOTWRAP_SOCKET", service.path())
        .status()
        .unwrap();
    assert!(status.success());
}

/// In a user namespace without a map, and in one where the caller is root: ids cannot be sent, and the service's root is not to be seen.
#[test]
fn given_a_user_namespace_then_the_kernel_says_who_it_is() {
    for options in ["-U", "-Ur"] {
        let service = Service::start(|mut peer| {
            peer.run();
            peer.reply(&exited("r1"));
        });
        let output = Command::new("unshare")
            .args([options, env!("CARGO_BIN_EXE_rootwrap"), "true"])
            .env("ROOTWRAP_SOCKET", service.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{options}: {}", stderr(&output));
    }
}

#[test]
fn given_list_then_a_line_for_every_filter() {
    let output = answered(&["-l"], |mut peer| {
        assert_eq!(peer.method(), Method::ListFilters);
        peer.reply(&serde_json::json!({"filters": [{
            "name": "set-mtu", "source": "/etc/x.toml:3", "command": ["/usr/sbin/ip"], "arguments": "link set dev INTERFACE\nmtu 68..65535",
            "privileges": {"runAs": "root", "capabilities": ["net_admin"]}
        }, {
            "name": "show", "source": "/etc/x.toml:9", "command": ["ip"], "arguments": "addr",
            "privileges": {"runAs": "root", "capabilities": []}, "innerOnly": true
        }]}));
    });
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "set-mtu: /usr/sbin/ip link set dev INTERFACE mtu 68..65535\nshow: ip addr  (only behind another filter's command)\n"
    );
}

#[test]
fn given_list_without_filters_then_it_says_so_and_succeeds() {
    let output = answered(&["-l"], |mut peer| {
        peer.next_call();
        peer.reply(&serde_json::json!({"filters": []}));
    });
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(stderr(&output).contains("no filter admits you"), "{}", stderr(&output));
}

/// As chdir(2): to name a directory is not to have the right to enter it.
#[test]
fn given_a_directory_that_the_caller_may_not_enter_then_125() {
    use std::os::unix::fs::PermissionsExt;
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can make a directory of another user; run as root to see this case");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(directory.path(), Some(4242), None).unwrap();
    let output = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_rootwrap"), "-D"])
        .args([directory.path(), std::path::Path::new("true")])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(
        stderr(&output).contains("cannot change to") && stderr(&output).contains("Permission denied"),
        "{}",
        stderr(&output)
    );
}

fn kill(pid: i32, signal: i32) {
    let pid = nix::unistd::Pid::from_raw(pid);
    // Signals above are all named ones.
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::try_from(signal).unwrap()).unwrap();
}

fn wait_until_stopped(pid: i32) {
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    let status = waitpid(nix::unistd::Pid::from_raw(pid), Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert!(
        matches!(status, WaitStatus::Stopped(_, nix::sys::signal::Signal::SIGSTOP)),
        "{status:?}"
    );
}

/// The kernel puts an empty name where a program is executed without any argument, its name included.
#[test]
fn given_no_name_of_its_own_then_the_client_says_how_it_is_used() {
    use std::os::unix::process::CommandExt;
    for name in ["", "\u{1b}[31m", "-rootwrap"] {
        let output = Command::new(env!("CARGO_BIN_EXE_rootwrap")).arg0(name).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{name:?}: {output:?}");
        assert!(stderr(&output).contains("rootwrap"), "{output:?}");
        assert!(!stderr(&output).contains('\u{1b}'), "{output:?}");
    }
}
