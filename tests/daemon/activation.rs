//! Sockets that a manager passes, what the manager is told, and what makes the service refuse to start.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Journal, PATIENCE, Peer, Setup, command, directory, error, text, write_files};

/// The service with `descriptor` as its descriptor 3, as a manager would start it; `variables` may use `$$`.
fn activated(directory: &Path, descriptor: OwnedFd, variables: &str) -> Command {
    let service = command(directory);
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(format!("export {variables}; exec 3<&0 </dev/null; exec \"$@\""))
        .arg("sh")
        .arg(service.get_program())
        .args(service.get_args())
        .stdin(Stdio::from(descriptor));
    shell
}

fn refusal(directory: &Path, descriptor: OwnedFd, variables: &str) -> String {
    let output = activated(directory, descriptor, variables).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

/// Reads until a datagram holds `what`.
fn told(manager: &UnixDatagram, what: &str) -> String {
    let mut buffer = [0; 4096];
    let mut all = String::new();
    while !all.contains(what) {
        let length = manager
            .recv(&mut buffer)
            .unwrap_or_else(|error| panic!("{what}: {error} after {all}"));
        all.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    all
}

#[test]
fn given_a_passed_socket_then_it_serves_tells_the_manager_and_ends_when_idle() {
    for names in ["LISTEN_FDNAMES=rootwrap", "LISTEN_FDNAMES=rootwrap.socket", "UNRELATED=1"] {
        let directory = directory();
        write_files(
            directory.path(),
            &Setup {
                settings: "idle_timeout = \"400ms\"\n".into(),
                ..Setup::default()
            },
        );
        let journal = Journal::listen(&directory.path().join("journal"));
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        // As PassCredentials=yes does, before anybody connects.
        rootwrap::sys::socket::set_pass_credentials(listener.as_fd(), true).unwrap();
        let manager = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        // Connected before it is started: that is what starts it.
        let mut early = Peer::connect(&socket);
        early.send(&json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["echo", "early"]}}));
        let variables = format!(
            "LISTEN_PID=$$ LISTEN_FDS=1 {names} NOTIFY_SOCKET={} WATCHDOG_USEC=200000 WATCHDOG_PID=$$",
            directory.path().join("notify").display()
        );
        let mut service = activated(directory.path(), listener.into(), &variables).spawn().unwrap();
        assert_eq!(error(&early.reply().unwrap()), "");
        let ready = told(&manager, "READY=1");
        assert!(ready.contains("STATUS=6 filters in force"), "{ready}");
        told(&manager, "WATCHDOG=1");
        assert_eq!(error(&early.call("io.rootwrap.Reload", &json!({}))), "");
        told(&manager, "RELOADING=1");
        told(&manager, "READY=1");
        drop(early);
        told(&manager, "STOPPING=1");
        assert!(service.wait().unwrap().success());
        assert_eq!(text(&journal.wait_for("stopped", 1)[0], "ROOTWRAP_REASON"), "idle");
    }
}

#[test]
fn given_anything_but_listening_unix_stream_sockets_then_it_refuses_to_start_and_says_why() {
    let directory = directory();
    write_files(directory.path(), &Setup::default());
    let listener = |name: &str| OwnedFd::from(UnixListener::bind(directory.path().join(name)).unwrap());
    let own = "LISTEN_PID=$$ LISTEN_FDS=1";
    for (descriptor, variables, says) in [
        (listener("a"), "LISTEN_PID=1 LISTEN_FDS=1", "LISTEN_PID is 1"),
        (
            listener("b"),
            "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=a:b",
            "LISTEN_FDNAMES names 2",
        ),
        (
            listener("c"),
            "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=stored",
            "FileDescriptorName=rootwrap",
        ),
        (listener("d"), "LISTEN_PID=$$ LISTEN_FDS=2", "LISTEN_FDS"),
        (listener("e"), "UNRELATED=1", "no socket was passed"),
        (std::fs::File::open("/dev/null").unwrap().into(), own, "not a socket"),
        (
            std::net::TcpListener::bind("127.0.0.1:0").unwrap().into(),
            own,
            "not a unix(7) socket",
        ),
        (
            UnixDatagram::bind(directory.path().join("f")).unwrap().into(),
            own,
            "not a stream socket",
        ),
        (std::os::unix::net::UnixStream::pair().unwrap().0.into(), own, "not listening"),
    ] {
        let refusal = refusal(directory.path(), descriptor, variables);
        assert!(refusal.contains(says), "{variables}: {refusal}");
    }
}

#[test]
fn given_a_directory_that_others_can_write_then_no_socket_is_bound_there() {
    let directory = directory();
    write_files(directory.path(), &Setup::default());
    let shared = directory.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let output = command(directory.path()).arg("--socket").arg(shared.join("s")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("others can write"), "{output:?}");
    assert!(!shared.join("s").exists());
}

#[test]
fn given_a_user_namespace_then_it_refuses_to_start() {
    let directory = directory();
    write_files(directory.path(), &Setup::default());
    let service = command(directory.path());
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user"])
        .arg(service.get_program())
        .args(service.get_args())
        .arg("--socket")
        .arg(directory.path().join("s"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--allow-userns"), "{output:?}");
}

#[test]
fn given_a_launcher_that_is_not_there_then_it_says_so() {
    let directory = directory();
    write_files(directory.path(), &Setup::default());
    let output = command(directory.path())
        .arg("--socket")
        .arg(directory.path().join("s"))
        .args(["--launcher", "/usr/bin/no-such-launcher"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-launcher"), "{output:?}");
}
