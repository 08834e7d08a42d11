//! Policies come and go: broken at start, broken on reload, mended.

use serde_json::Value;

use crate::common::Machine;
use crate::{LINKS, machine_with_links};

const BROKEN: &str = "[callers]\nusers = [\"alice\"]\n\n[[filter]]\nname = \"x\"\ncomand = \"ip\"\nargs = []\ncapabilities = []\n";

#[test]
fn given_a_broken_policy_at_start_then_the_service_is_up_refuses_everything_and_recovers_by_reload() {
    let machine = Machine::boot();
    machine.write("/etc/rootwrap/filters.d/50-test.toml", BROKEN);

    let outcome = machine.alice(["rootwrap", "cat", "/proc/self/status"]).expect(125);
    assert!(!outcome.stderr.is_empty(), "says why");
    let reply = machine
        .alice(["/srv/tests/peer", "call", "Run", r#"{"argv": ["cat", "/proc/self/status"]}"#])
        .ok();
    assert_eq!(
        serde_json::from_str::<Value>(&reply).expect("JSON")["error"],
        "io.rootwrap.PolicyUnavailable"
    );
    assert_eq!(machine.property("rootwrap.service", "ActiveState"), "active");
    assert_ne!(machine.property("rootwrap.service", "StatusText"), "", "says so in its status");
    let place = "/etc/rootwrap/filters.d/50-test.toml:6:";
    assert!(
        machine.records(&[]).iter().any(|record| format!("{record:?}").contains(place)),
        "the journal says what is wrong"
    );

    machine.write("/etc/rootwrap/filters.d/50-test.toml", LINKS);
    machine.root(["systemctl", "reload", "rootwrap.service"]).ok();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
}

#[test]
fn given_a_broken_new_policy_then_reload_fails_with_its_place_and_the_old_policy_stays() {
    let machine = machine_with_links();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    machine.write("/etc/rootwrap/filters.d/60-broken.toml", BROKEN);

    let outcome = machine.root(["rootwrapctl", "reload"]);
    assert_ne!(outcome.code(), 0);
    let said = outcome.text() + &outcome.stderr;
    assert!(said.contains("/etc/rootwrap/filters.d/60-broken.toml:6:1"), "{said}");
    assert_ne!(machine.root(["systemctl", "reload", "rootwrap.service"]).code(), 0);
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    let policies: Vec<_> = machine
        .decided("allowed")
        .iter()
        .map(|record| record.ours("POLICY").to_owned())
        .collect();
    assert_eq!(policies[0], policies[1], "judged by the same policy");
}

#[test]
fn given_a_filter_file_that_others_can_write_then_the_policy_is_refused() {
    let machine = machine_with_links();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    machine.root(["chmod", "666", "/etc/rootwrap/filters.d/50-test.toml"]).ok();
    assert_ne!(machine.root(["rootwrapctl", "reload"]).code(), 0);
    machine.root(["chown", "alice", "/etc/rootwrap/filters.d"]).ok();
    machine.root(["chmod", "644", "/etc/rootwrap/filters.d/50-test.toml"]).ok();
    assert_ne!(machine.root(["rootwrapctl", "reload"]).code(), 0);
    machine.root(["chown", "root", "/etc/rootwrap/filters.d"]).ok();
    machine.root(["rootwrapctl", "reload"]).ok();
}

#[test]
fn given_alice_then_she_may_not_reload() {
    let machine = machine_with_links();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    assert_ne!(machine.alice(["rootwrapctl", "reload"]).code(), 0);
}
