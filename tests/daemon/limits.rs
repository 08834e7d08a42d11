//! One caller cannot hurt another.

use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::support::{ALICE, BOB, Daemon, Peer, as_user, error, output, text};

#[test]
fn given_a_user_with_all_its_connections_then_the_next_is_told_busy_and_others_are_served() {
    let daemon = Daemon::with_settings("max_connections_per_uid = 3\n");
    let socket = daemon.socket();
    let held: Vec<Peer> = as_user(ALICE, || (0..3).map(|_| Peer::connect(&socket)).collect());
    let (busy, closed) = as_user(ALICE, || {
        let mut peer = Peer::connect(&socket);
        peer.send(&json!({"method": "io.rootwrap.GetStatus"}));
        (peer.reply(), peer.reply())
    });
    assert_eq!(
        busy.map(|reply| (error(&reply), reply["parameters"]["what"].clone())),
        Some(("Busy".into(), json!("connections")))
    );
    assert_eq!(closed, None);
    assert_eq!(as_user(BOB, || error(&Peer::connect(&socket).run(&["echo"]))), "NotPermitted");
    assert_eq!(error(&daemon.connect().run(&["echo"])), "");
    let hit = daemon.journal().wait_for("limit-hit", 1);
    assert_eq!(
        (text(&hit[0], "ROOTWRAP_REASON"), text(&hit[0], "ROOTWRAP_LIMIT")),
        ("connections".into(), "3".into())
    );
    drop(held);
}

#[test]
fn given_a_user_with_all_its_commands_then_the_next_is_told_busy_until_one_ends() {
    let daemon = Daemon::with_settings("max_commands_per_uid = 2\n");
    let socket = daemon.socket();
    let mut running: Vec<Peer> = as_user(ALICE, || {
        let mut peers: Vec<_> = (0..2).map(|_| Peer::connect(&socket)).collect();
        peers
            .iter_mut()
            .for_each(|peer| drop(peer.begin(&json!({"argv": ["sleep", "1000"]}))));
        peers
    });
    let run = || as_user(ALICE, || Peer::connect(&socket).run(&["echo", "x"]));
    assert_eq!(run()["parameters"]["what"], "commands");
    assert_eq!(error(&daemon.connect().run(&["echo", "x"])), "");
    running.pop();
    daemon.journal().wait_for("exited", 2);
    while error(&run()) == "Busy" {}
    assert_eq!(error(&run()), "");
}

#[test]
fn given_a_filter_for_one_command_at_a_time_then_the_second_is_told_busy() {
    let daemon = Daemon::start();
    let mut first = daemon.connect();
    first.begin(&json!({"argv": ["sleep", "--", "1000"]}));
    let second = daemon.connect().run(&["sleep", "--", "1"]);
    assert_eq!((error(&second), &second["parameters"]["what"]), ("Busy".into(), &json!("filter")));
    assert_eq!(error(&daemon.connect().run(&["sleep", "0"])), "", "other filters are not affected");
}

#[test]
fn given_all_connections_taken_by_users_then_root_still_gets_through() {
    let daemon = Daemon::with_settings("max_connections = 20\nmax_connections_per_uid = 20\n");
    let socket = daemon.socket();
    let held: Vec<Peer> = as_user(ALICE, || (0..40).map(|_| Peer::connect(&socket)).collect());
    assert_eq!(error(&daemon.connect().call("io.rootwrap.GetStatus", &json!({}))), "");
    assert_eq!(error(&daemon.connect().call("io.rootwrap.Reload", &json!({}))), "");
    drop(held);
}

#[test]
fn given_a_caller_that_sends_call_after_call_without_a_pause_then_others_are_served() {
    let daemon = Daemon::start();
    let mut flood = daemon.connect();
    let stream = flood.stream().try_clone().unwrap();
    let call = b"{\"method\":\"io.rootwrap.GetStatus\",\"oneway\":true}\0".repeat(500);
    let flooding = std::thread::spawn(move || while std::io::Write::write_all(&mut &stream, &call).is_ok() {});
    for _ in 0..50 {
        assert_eq!(error(&daemon.connect().run(&["echo", "x"])), "");
    }
    flood.stream().shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(flood.reply(), None);
    flooding.join().unwrap();
}

#[test]
fn given_a_limit_that_is_hit_again_and_again_then_there_is_one_record() {
    let daemon = Daemon::with_settings("max_connections_per_uid = 1\n");
    let socket = daemon.socket();
    let _held = as_user(ALICE, || Peer::connect(&socket));
    as_user(ALICE, || (0..100).for_each(|_| drop(Peer::connect(&socket).reply())));
    daemon.journal().wait_for("limit-hit", 1);
    assert_eq!(daemon.journal().events("limit-hit").len(), 1);
    assert_eq!(error(&daemon.connect().run(&["echo"])), "");
}

/// Does something in threads of this user again and again, while something else is done.
fn while_flooding<T>(uid: u32, flood: impl Fn() + Sync, act: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                as_user(uid, || {
                    while !over.load(Ordering::Relaxed) {
                        flood();
                    }
                });
            });
        }
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn given_users_who_connect_without_end_then_others_are_answered() {
    let daemon = Daemon::start();
    let socket = daemon.socket();
    // Some fail while the queue is full.
    while_flooding(
        ALICE,
        || drop(UnixStream::connect(&socket)),
        || {
            for _ in 0..10 {
                assert_eq!(output(&daemon.connect().run(&["echo", "hello"]), "stdout"), "hello\n");
            }
        },
    );
}

#[test]
fn given_a_user_who_sends_calls_without_end_then_the_service_stops_all_the_same() {
    let mut daemon = Daemon::with_settings("drain_timeout = \"100ms\"");
    let call = format!("{}\0", json!({"method": "io.rootwrap.GetStatus", "oneway": true})).repeat(1000);
    let connection = Mutex::new(daemon.connect());
    while_flooding(
        ALICE,
        || connection.lock().unwrap().send_bytes(call.as_bytes()),
        || {
            daemon.signal(rustix::process::Signal::TERM);
            assert!(daemon.wait().success());
        },
    );
}

#[test]
fn given_a_user_who_leaves_many_large_replies_unread_then_what_the_service_holds_for_it_is_bounded() {
    let daemon = Daemon::with_settings("request_timeout = \"1min\"");
    let socket = daemon.socket();
    let call = json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["head", "-c", "1000000", "/dev/zero"]}});
    // 1.3 MB each, of which the socket takes a fraction; 64 MiB is what one user may have held.
    let unread: Vec<_> = (0..70)
        .map(|_| {
            as_user(ALICE, || {
                let mut peer = Peer::connect(&socket);
                peer.send(&call);
                peer
            })
        })
        .collect();
    let bad = daemon.journal().wait_for("bad-request", 1);
    assert_eq!(text(&bad[0], "ROOTWRAP_REASON"), "reply-unread");
    drop(unread);
}
