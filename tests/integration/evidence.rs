//! No command without its record, and no record lost in silence.

use std::collections::HashMap;

use serde_json::Value;

use crate::LINKS;
use crate::common::{Machine, Record};

const CALL: [&str; 4] = ["/srv/tests/peer", "call", "Run", r#"{"argv": ["cat", "/proc/self/status"]}"#];

const JOURNAL: [&str; 3] = [
    "systemd-journald.socket",
    "systemd-journald-dev-log.socket",
    "systemd-journald.service",
];

/// A machine whose service runs.
fn running() -> Machine {
    let machine = Machine::boot();
    machine.filters(LINKS);
    assert_eq!(error(&machine), None);
    machine
}

/// The error with which a request of alice's is refused.
fn error(machine: &Machine) -> Option<String> {
    let reply: Value = serde_json::from_str(&machine.alice(CALL).ok()).expect("a reply in JSON");
    reply.get("error").map(|error| error.as_str().expect("a name").to_owned())
}

/// Asks until the service serves again: it takes up the journal by itself, nobody tells it.
fn recovers(machine: &Machine) -> bool {
    (0..50).any(|_| error(machine).is_none())
}

#[track_caller]
fn refuses_but_lives(machine: &Machine) {
    assert_eq!(error(machine).as_deref(), Some("io.rootwrap.AuditUnavailable"));
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).expect(125);
    let status = machine.root(["/srv/tests/peer", "call", "GetStatus"]).ok();
    assert!(!status.contains("\"error\""), "the service answers: {status}");
}

#[test]
fn given_a_journal_that_takes_nothing_more_then_commands_are_refused_until_it_does() {
    let machine = running();
    machine.root(["systemctl", "kill", "-s", "STOP", "systemd-journald.service"]).ok();
    machine.root(["/srv/tests/peer", "fill-journal"]).ok();
    refuses_but_lives(&machine);
    machine.root(["systemctl", "kill", "-s", "CONT", "systemd-journald.service"]).ok();
    assert!(recovers(&machine));
}

#[test]
fn given_a_journal_whose_socket_is_gone_then_commands_are_refused_until_there_is_a_new_one() {
    let machine = running();
    machine.root([&["systemctl", "stop"], &JOURNAL[..]].concat()).ok();
    machine.root(["rm", "-f", "/run/systemd/journal/socket"]).ok();
    refuses_but_lives(&machine);
    machine.root([&["systemctl", "start"], &JOURNAL[..]].concat()).ok();
    assert!(recovers(&machine));
    assert_eq!(
        machine.decided("allowed").last().map(|record| record.argv()),
        Some(vec!["cat".into(), "/proc/self/status".into()])
    );
}

#[test]
fn given_a_restarted_journal_then_the_service_uses_it() {
    let machine = running();
    machine.root(["systemctl", "restart", "systemd-journald.service"]).ok();
    assert!(recovers(&machine));
    machine.root([&["systemctl", "stop"], &JOURNAL[..]].concat()).ok();
    machine.root([&["systemctl", "start"], &JOURNAL[..]].concat()).ok();
    assert!(recovers(&machine), "its socket is a new one");
}

fn burst(machine: &Machine, count: u32) -> HashMap<String, u32> {
    let seen = machine
        .alice(["/srv/tests/peer", "burst", &count.to_string(), "ip", "link", "del", "v0"])
        .ok();
    serde_json::from_str(&seen).expect("counts in JSON")
}

#[test]
fn given_100_000_decisions_in_a_burst_then_every_one_is_stored_or_counted() {
    let machine = Machine::boot();
    machine.filters(LINKS);
    let seen = burst(&machine, 100_000);
    assert_eq!(seen.values().sum::<u32>(), 100_000, "every request has its answer: {seen:?}");
    let denied = seen.get("io.rootwrap.NotPermitted").copied().unwrap_or_default();
    machine.root(["systemctl", "stop", "rootwrap.service"]).ok();

    let stored: u32 = machine
        .decided("denied")
        .iter()
        .chain(&machine.events("audit-lost"))
        .map(Record::count)
        .sum();
    assert_eq!(stored, denied, "{seen:?}");
    assert!(denied > 0, "{seen:?}");
}

#[test]
fn given_a_service_that_aggregates_nothing_and_a_burst_then_every_decision_has_its_own_record() {
    let machine = Machine::boot();
    machine.write("/etc/rootwrap/rootwrap.toml", "denials_per_second = 100000\n");
    machine.filters(LINKS);
    let seen = burst(&machine, 20_000);
    machine.root(["systemctl", "stop", "rootwrap.service"]).ok();
    let denied = machine.decided("denied");
    let lost: u32 = machine.events("audit-lost").iter().map(Record::count).sum();
    assert_eq!(
        denied.len() + lost as usize,
        seen["io.rootwrap.NotPermitted"] as usize,
        "{seen:?}, {lost} lost"
    );
}
