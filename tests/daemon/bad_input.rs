//! Whatever is sent: a typed error or the end of the connection, a record, and nothing left behind.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};

use rootwrap::sys::socket::send_with;
use serde_json::{Value, json};

use crate::support::{Daemon, error, output, text};

const RUN: &str = r#"{"method":"io.rootwrap.Run","parameters":{"argv":["echo","x"]}}"#;

fn run(argv: &str) -> Vec<u8> {
    format!(r#"{{"method":"io.rootwrap.Run","parameters":{{"argv":{argv}}}}}"#).into_bytes()
}

#[test]
fn given_messages_that_make_no_sense_then_each_is_refused_with_a_type_and_recorded() {
    let daemon = Daemon::start();
    let before = daemon.settled();
    let deep = "[".repeat(100_000).into_bytes();
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (b"".to_vec(), "BadRequest", "malformed"),
        (b"garbage".to_vec(), "BadRequest", "malformed"),
        (b"{}".to_vec(), "BadRequest", "malformed"),
        (b"[]".to_vec(), "BadRequest", "malformed"),
        (b"{\"method\":\"\xff\"}".to_vec(), "BadRequest", "malformed"),
        (br#"{"method":"io.rootwrap.Run","method":"x"}"#.to_vec(), "BadRequest", "malformed"),
        (br#"{"method":5}"#.to_vec(), "BadRequest", "malformed"),
        (br#"{"method":"io.rootwrap.Run","oneway":1}"#.to_vec(), "BadRequest", "malformed"),
        (deep, "BadRequest", "malformed"),
        (run(r#"["echo","a\u0000b"]"#), "BadRequest", "malformed"),
        (br#"{"method":"io.rootwrap.Nope"}"#.to_vec(), "MethodNotFound", "unknown-method"),
        (br#"{"method":"org.example.X"}"#.to_vec(), "InterfaceNotFound", "unknown-method"),
        (
            br#"{"method":"io.rootwrap.GetStatus","upgrade":true}"#.to_vec(),
            "BadRequest",
            "invalid-parameter",
        ),
        (br#"{"method":"io.rootwrap.Run"}"#.to_vec(), "InvalidParameter", "invalid-parameter"),
        (run("[]"), "BadRequest", "invalid-parameter"),
        (run("[1]"), "InvalidParameter", "invalid-parameter"),
        (run(r#"["echo"],"unknown":1"#), "InvalidParameter", "invalid-parameter"),
        (run(r#"["echo"],"timeoutUSec":0"#), "InvalidParameter", "invalid-parameter"),
        (run(r#"["echo"],"stdoutFileDescriptor":4"#), "InvalidParameter", "invalid-parameter"),
        (run(r#"["echo"],"stdoutFileDescriptor":0"#), "InvalidParameter", "descriptors"),
        (
            run(&format!("[{}]", vec!["\"x\""; 4097].join(","))),
            "BadRequest",
            "invalid-parameter",
        ),
        (
            run(&format!("[\"echo\",\"{}\"]", "x".repeat(300 * 1024))),
            "BadRequest",
            "too-large",
        ),
    ];
    for (index, (message, expected, reason)) in cases.iter().enumerate() {
        let shown = String::from_utf8_lossy(&message[..message.len().min(80)]).into_owned();
        let mut peer = daemon.connect();
        peer.send_bytes(&[&message[..], b"\0"].concat());
        assert_eq!(peer.reply().map(|reply| error(&reply)).as_deref(), Some(*expected), "{shown}");
        let records = daemon.journal().wait_for("bad-request", index + 1);
        assert_eq!(text(&records[index], "ROOTWRAP_REASON"), *reason, "{shown}");
    }
    daemon.has_again(before);
    assert_eq!(output(&daemon.connect().run(&["echo", "x"]), "stdout"), "x\n");
    assert_eq!(daemon.journal().events("allowed").len(), 3, "only what was asked properly ran");
}

#[test]
fn given_an_argument_list_of_an_empty_name_or_of_bytes_then_it_is_judged_like_any_other() {
    let daemon = Daemon::start();
    assert_eq!(error(&daemon.connect().run(&[""])), "NotPermitted");
    let bytes = json!({"argv": [], "argvBase64": ["ZWNobw==", "/w=="]});
    let reply = daemon.connect().call("io.rootwrap.Run", &bytes);
    assert_eq!(reply["parameters"]["stdout"], "/wo=");
    assert_eq!(
        text(&daemon.journal().wait_for("allowed", 1)[0], "ROOTWRAP_ARGV"),
        r#"["echo","\u0000ff"]"#
    );
    let nul = json!({"argv": [], "argvBase64": ["ZWNobw==", "AA=="]});
    assert_eq!(error(&daemon.connect().call("io.rootwrap.Run", &nul)), "InvalidParameter");
}

#[test]
fn given_descriptors_that_nothing_names_then_the_call_is_refused_and_all_are_closed() {
    let daemon = Daemon::start();
    let before = daemon.settled();
    let null = std::fs::File::open("/dev/null").unwrap();
    for count in [1, 3, 4, 5, 253] {
        let mut peer = daemon.connect();
        let message: Value = serde_json::from_str(RUN).unwrap();
        peer.send_with(&message, &vec![null.as_fd(); count]);
        assert_eq!(error(&peer.reply().unwrap()), "BadRequest", "{count}");
        peer.send_with(&json!({"method": "io.rootwrap.GetStatus"}), &vec![null.as_fd(); count]);
        assert_eq!(error(&peer.reply().unwrap()), "BadRequest", "{count}");
        assert_eq!(
            error(&peer.call("io.rootwrap.GetStatus", &json!({}))),
            "",
            "the connection is still of use"
        );
    }
    assert!(
        daemon
            .journal()
            .wait_for("bad-request", 10)
            .iter()
            .all(|record| text(record, "ROOTWRAP_REASON") == "descriptors")
    );
    daemon.has_again(before);
    assert_eq!(daemon.journal().events("allowed").len(), 2);
}

#[test]
fn given_descriptors_in_the_middle_of_a_message_or_twice_then_refused() {
    let daemon = Daemon::start();
    let before = daemon.settled();
    let null = std::fs::File::open("/dev/null").unwrap();
    let mut peer = daemon.connect();
    let bytes = [RUN.as_bytes(), b"\0"].concat();
    peer.stream().write_all(&bytes[..10]).unwrap();
    send_with(peer.stream().as_fd(), &bytes[10..], &[null.as_fd()], None).unwrap();
    assert_eq!(error(&peer.reply().unwrap()), "BadRequest");
    let twice =
        json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["echo"], "stdoutFileDescriptor": 0, "stderrFileDescriptor": 0}});
    peer.send_with(&twice, &[null.as_fd()]);
    assert_eq!(error(&peer.reply().unwrap()), "InvalidParameter");
    drop(peer);
    daemon.has_again(before);
}

#[test]
fn given_descriptors_that_a_command_must_not_be_led_to_then_refused() {
    let daemon = Daemon::start();
    let open = |path: &str, flags: rustix::fs::OFlags| rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap();
    let bad: Vec<OwnedFd> = vec![
        open("/etc/passwd", rustix::fs::OFlags::PATH),
        open("/", rustix::fs::OFlags::RDONLY),
        open("/proc/self/comm", rustix::fs::OFlags::RDWR),
    ];
    for descriptor in bad {
        let mut peer = daemon.connect();
        let run = json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["cat"], "stdinFileDescriptor": 0}});
        peer.send_with(&run, &[descriptor.as_fd()]);
        assert_eq!(error(&peer.reply().unwrap()), "BadRequest");
    }
    assert!(daemon.journal().events("allowed").is_empty());
}

#[test]
fn given_half_a_message_and_silence_then_the_connection_is_ended_after_its_time() {
    let daemon = Daemon::with_settings("request_timeout = \"200ms\"\n");
    let before = daemon.settled();
    let null = std::fs::File::open("/dev/null").unwrap();
    let mut peer = daemon.connect();
    send_with(peer.stream().as_fd(), &RUN.as_bytes()[..20], &[null.as_fd(); 4], None).unwrap();
    assert_eq!(error(&peer.reply().unwrap()), "BadRequest");
    assert_eq!(peer.reply(), None);
    assert_eq!(
        text(&daemon.journal().wait_for("bad-request", 1)[0], "ROOTWRAP_REASON"),
        "half-message"
    );
    drop(peer);
    daemon.has_again(before);
}

#[test]
fn given_one_byte_after_the_other_then_the_whole_message_has_one_time_limit() {
    let daemon = Daemon::with_settings("request_timeout = \"200ms\"\n");
    let mut peer = daemon.connect();
    let drip = peer.stream().try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        let mut drip = drip;
        // Far more bytes than fit into the time, far fewer than the limit of a message.
        while drip.write_all(b" ").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    assert_eq!(error(&peer.reply().unwrap()), "BadRequest");
    dripping.join().unwrap();
    assert_eq!(
        text(&daemon.journal().wait_for("bad-request", 1)[0], "ROOTWRAP_REASON"),
        "half-message"
    );
}

#[test]
fn given_replies_that_nobody_takes_then_the_connection_is_ended_and_others_are_served() {
    let daemon = Daemon::with_settings("request_timeout = \"300ms\"\n");
    let before = daemon.settled();
    let peer = daemon.connect();
    let call = b"{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":\"io.rootwrap\"}}\0";
    let ended = loop {
        if let Err(error) = peer.stream().write_all(call) {
            break error;
        }
    };
    assert!(
        matches!(ended.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
        "{ended}"
    );
    assert_eq!(
        text(&daemon.journal().wait_for("bad-request", 1)[0], "ROOTWRAP_REASON"),
        "reply-unread"
    );
    drop(peer);
    assert_eq!(error(&daemon.connect().run(&["echo", "x"])), "");
    daemon.has_again(before);
}

#[test]
fn given_connections_that_come_and_go_at_any_moment_then_nothing_is_left() {
    let daemon = Daemon::start();
    let before = daemon.settled();
    let null = std::fs::File::open("/dev/null").unwrap();
    let bytes = [RUN.as_bytes(), b"\0"].concat();
    for round in 0..300 {
        let peer = daemon.connect();
        let end = round % (bytes.len() + 1);
        if end > 0 {
            // What the service makes of it nobody waits for.
            let _ = send_with(peer.stream().as_fd(), &bytes[..end], &vec![null.as_fd(); round % 5], None);
        }
    }
    daemon.has_again(before);
    assert_eq!(error(&daemon.connect().run(&["echo", "x"])), "");
}

#[test]
fn given_floods_of_bad_input_then_memory_stays() {
    let daemon = Daemon::start();
    daemon.settled();
    let resident = || -> u64 {
        let size = &daemon.status()["VmRSS"];
        size.split_whitespace().next().unwrap().parse().unwrap()
    };
    let flood = || {
        for _ in 0..40 {
            let mut peer = daemon.connect();
            peer.send_bytes(&vec![b'['; 1 << 20]);
            peer.reply();
            let mut peer = daemon.connect();
            peer.send_bytes(&[&run(&format!("[{}]", "0,".repeat(100_000)))[..], b"\0"].concat());
            peer.reply();
        }
    };
    flood();
    let after_one = resident();
    flood();
    flood();
    assert!(resident() < after_one + 4096, "{after_one} KiB, then {} KiB", resident());
}
