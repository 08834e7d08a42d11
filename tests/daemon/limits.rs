//! One caller cannot hurt another.

use serde_json::json;

use crate::support::{ALICE, BOB, Daemon, Peer, as_user, error, text};

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
