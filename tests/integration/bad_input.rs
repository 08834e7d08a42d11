//! Whatever is sent to the socket: a typed error or the end of the connection, a record, and nothing left behind.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::common::Machine;
use crate::{LINKS, machine_with_links};

const RUN: &str = r#"{"method":"io.rootwrap.Run","parameters":{"argv":["cat","/proc/self/status"]}}"#;

/// A machine whose service gives up on half a message after a second.
fn machine() -> Machine {
    let machine = Machine::boot();
    machine.write("/etc/rootwrap/rootwrap.toml", "request_timeout = \"1s\"\n");
    machine.filters(LINKS);
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    machine
}

/// Sends bytes and descriptors, and gives back the name of the error; `None` when the connection was closed.
#[track_caller]
fn refused(machine: &Machine, bytes: &[u8], descriptors: u32) -> Option<String> {
    let mut peer = machine.command("alice", ["/srv/tests/peer", "raw", &descriptors.to_string()]);
    let mut peer = peer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("spawn");
    peer.stdin.take().expect("stdin").write_all(bytes).expect("write");
    let output = peer.wait_with_output().expect("wait");
    let reply: Value = serde_json::from_slice(&output.stdout).expect("a reply in JSON");
    if reply["closed"] == true {
        return None;
    }
    let error = reply["error"].as_str();
    Some(
        error
            .unwrap_or_else(|| panic!("{} is not refused: {reply}", String::from_utf8_lossy(bytes)))
            .to_owned(),
    )
}

/// Descriptors and children of the service and its launcher, once what is on its way has come to an end.
fn resources(machine: &Machine) -> String {
    let script = r#"
        count() { for pid in $(cat /sys/fs/cgroup/system.slice/rootwrap.service/daemon/cgroup.procs); do ls /proc/$pid/fd | wc -l; done; }
        for try in $(seq 100); do now=$(count); sleep 0.05; [ "$now" = "$(count)" ] && break; done
        echo $now"#;
    machine.sh("root", script).ok()
}

#[test]
fn given_malformed_messages_then_each_is_refused_and_others_are_served() {
    let machine = machine();
    let before = resources(&machine);
    let run = |argv: &str| format!(r#"{{"method":"io.rootwrap.Run","parameters":{{"argv":{argv}}}}}"#).into_bytes();
    let mut messages = vec![
        b"".to_vec(),
        b"garbage".to_vec(),
        b"{}".to_vec(),
        b"[]".to_vec(),
        br#"{"method":5}"#.to_vec(),
        br#"{"method":"io.rootwrap.NoSuchMethod"}"#.to_vec(),
        br#"{"method":"org.example.Other"}"#.to_vec(),
        br#"{"method":"io.rootwrap.Run"}"#.to_vec(),
        run("[]"),
        run(r#""cat""#),
        run("[1]"),
        run(r#"["cat","a\u0000b"]"#),
        run(r#"["cat","/proc/self/status"],"unknown":true"#),
        run(r#"["cat","/proc/self/status"],"stdoutFileDescriptor":0"#),
        run(r#"["cat","/proc/self/status"],"cwdFileDescriptor":-1"#),
        "[".repeat(100_000).into_bytes(),
    ];
    messages.push([&run(r#"["cat","x"#)[..], b"\xff\xfe\"]}}"].concat());
    messages.push(run(&format!("[\"cat\",\"{}\"]", "x".repeat(300 * 1024))));
    for message in messages {
        refused(&machine, &[&message[..], b"\0"].concat(), 0);
    }
    for (message, error) in [
        (
            &b"{\"method\":\"io.rootwrap.NoSuchMethod\"}\0"[..],
            "org.varlink.service.MethodNotFound",
        ),
        (b"{\"method\":\"org.example.Other\"}\0", "org.varlink.service.InterfaceNotFound"),
    ] {
        assert_eq!(refused(&machine, message, 0).as_deref(), Some(error));
    }
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    assert!(!machine.events("bad-request").is_empty());
    assert_eq!(resources(&machine), before);
    assert_eq!(machine.decided("allowed").len(), 2, "only what was asked properly ran");
}

#[test]
fn given_descriptors_that_no_message_names_then_they_are_closed_and_the_call_is_refused() {
    let machine = machine();
    let before = resources(&machine);
    for descriptors in [1, 3, 4, 253] {
        refused(&machine, &[RUN.as_bytes(), b"\0"].concat(), descriptors);
        refused(&machine, b"\0", descriptors);
    }
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    assert_eq!(resources(&machine), before);
    assert_eq!(machine.decided("allowed").len(), 2);
}

#[test]
fn given_half_a_message_and_silence_then_the_connection_ends_by_itself() {
    let machine = machine();
    let before = resources(&machine);
    let error = refused(&machine, &RUN.as_bytes()[..40], 3);
    assert!(error.is_none() || error.is_some_and(|error| error.starts_with("io.rootwrap.")));
    assert_eq!(resources(&machine), before);
}

#[test]
fn given_a_caller_that_takes_no_reply_then_others_are_served() {
    let machine = machine_with_links();
    let mut flood = machine.command("bob", ["/srv/tests/peer", "deaf", "20000"]);
    let mut flood = flood.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("spawn");
    for _ in 0..20 {
        machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    }
    flood.kill().expect("kill");
    flood.wait().expect("wait");
}
