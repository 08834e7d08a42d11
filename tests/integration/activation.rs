//! From the first connection to the journal: the main job, and the socket's life.

use crate::common::Machine;
use crate::machine_with_links;

#[test]
fn given_an_idle_socket_when_alice_asks_then_systemd_starts_the_service_and_the_command_has_its_effect() {
    let machine = machine_with_links();
    assert_eq!(machine.property("rootwrap.service", "ActiveState"), "inactive");

    machine.alice(["rootwrap", "ip", "link", "set", "v0", "up"]).ok();

    assert_eq!(machine.property("rootwrap.service", "ActiveState"), "active");
    let link = machine.root(["ip", "-o", "link", "show", "v0"]).ok();
    assert!(
        link.contains(",UP") || link.contains("<UP") || link.contains("NO-CARRIER,BROADCAST,MULTICAST,UP"),
        "{link}"
    );
    let [allowed] = &machine.decided("allowed")[..] else {
        panic!("not one record of an allowed command")
    };
    assert_eq!(allowed.argv(), ["ip", "link", "set", "v0", "up"]);
    assert_eq!(allowed.ours("FILTER"), "link-up");
    assert_eq!(allowed.ours("CALLER_UID"), machine.root(["id", "-u", "alice"]).ok().trim());
    assert_eq!(allowed.ours("RUN_AS_UID"), "0");
    assert!(
        allowed.ours("FILTER_SOURCE").starts_with("/etc/rootwrap/filters.d/50-test.toml:"),
        "{allowed:?}"
    );
    let [exited] = &machine.events("exited")[..] else {
        panic!("its end is recorded once")
    };
    assert_eq!(exited.ours("REQUEST_ID"), allowed.ours("REQUEST_ID"));
    assert_eq!(exited.ours("EXIT_CODE"), "0");
}

#[test]
fn given_no_filter_for_bob_or_for_the_arguments_then_126_and_a_record_with_the_reason() {
    let machine = machine_with_links();
    for (user, argv) in [
        ("bob", &["ip", "link", "set", "v0", "up"][..]),
        ("alice", &["ip", "link", "del", "v0"]),
    ] {
        let outcome = machine.run(user, [&["rootwrap"], argv].concat()).expect(126);
        assert!(
            outcome.stderr.contains("rootwrapctl explain"),
            "says what to do: {}",
            outcome.stderr
        );
        let uid = machine.root(["id", "-u", user]).ok();
        let denied = machine.records(&["ROOTWRAP_DECISION=denied", &format!("ROOTWRAP_CALLER_UID={}", uid.trim())]);
        assert_eq!(denied.len(), 1, "{denied:?}");
        assert_eq!(denied[0].argv(), argv);
        assert_ne!(denied[0].ours("REASON"), "");
    }
    let link = machine.root(["ip", "-o", "link", "show", "v0"]).ok();
    assert!(!link.contains("UP"), "nothing ran: {link}");
}

#[test]
fn given_a_running_service_then_status_tells_its_policy_and_counters() {
    let machine = machine_with_links();
    machine.alice(["rootwrap", "ip", "link", "set", "v0", "up"]).ok();
    let status = machine.root(["rootwrapctl", "status"]).ok();
    let policy = machine.decided("allowed")[0].ours("POLICY").to_owned();
    assert!(!policy.is_empty() && status.contains(&policy[..8]), "{status}");
    let reply: serde_json::Value =
        serde_json::from_str(&machine.root(["/srv/tests/peer", "call", "GetStatus"]).ok()).expect("a reply in JSON");
    assert!(reply.get("error").is_none() && reply["parameters"].is_object(), "{reply}");
}

#[test]
fn given_hundreds_of_callers_that_connect_and_vanish_then_the_socket_stays_active() {
    let machine = machine_with_links();
    machine.alice(["/srv/tests/peer", "vanish", "300"]).ok();
    assert_eq!(machine.property("rootwrap.socket", "ActiveState"), "active");
    machine.alice(["rootwrap", "ip", "link", "set", "v0", "up"]).ok();
}

#[test]
fn given_a_service_that_dies_again_and_again_then_the_socket_stays_active_and_callers_are_served_at_last() {
    let machine = machine_with_links();
    for _ in 0..12 {
        machine.alice(["/srv/tests/peer", "vanish", "25"]).ok();
        machine.root(["systemctl", "kill", "--kill-whom=all", "-s", "KILL", "rootwrap.service"]);
    }
    assert_eq!(machine.property("rootwrap.socket", "ActiveState"), "active");
    machine.alice(["rootwrap", "ip", "link", "set", "v0", "up"]).ok();
}

#[test]
fn given_a_stopped_service_then_the_next_caller_starts_it_again() {
    let machine = machine_with_links();
    machine.alice(["rootwrap", "ip", "link", "set", "v0", "up"]).ok();
    machine.root(["systemctl", "stop", "rootwrap.service"]).ok();
    assert_eq!(machine.property("rootwrap.service", "Result"), "success");
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    assert_eq!(Machine::decided(&machine, "allowed").len(), 2);
}
