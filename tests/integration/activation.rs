//! From the first connection to the journal: the main job, and the socket's life.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::Machine;
use crate::{LINKS, machine_with_links};

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
    assert_eq!(machine.decided("allowed").len(), 2);
}

const PATIENT: &str = r#"
[callers]
users = ["alice"]

[[filter]]
name = "patient"
command = "sh"
args = ["-c", "echo started; until [ -e /run/go ]; do sleep 0.05; done; echo ended"]
capabilities = []
"#;

#[test]
fn given_a_running_command_when_the_service_is_stopped_then_the_command_ends_as_it_would_have() {
    let machine = Machine::boot();
    machine.filters(PATIENT);
    let script = PATIENT
        .lines()
        .find_map(|line| line.strip_prefix("args = [\"-c\", \""))
        .expect("args");
    let mut client = machine.command("alice", ["rootwrap", "sh", "-c", script.trim_end_matches("\"]")]);
    let mut client = client.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("spawn");
    let mut output = BufReader::new(client.stdout.take().expect("stdout")).lines();
    assert_eq!(output.next().expect("a line").expect("read"), "started");

    machine.root(["systemctl", "stop", "--no-block", "rootwrap.service"]).ok();
    machine
        .sh(
            "root",
            "until [ $(systemctl show --value -p ActiveState rootwrap.service) = deactivating ]; do :; done",
        )
        .ok();
    machine.root(["touch", "/run/go"]).ok();
    assert_eq!(output.next().expect("a line").expect("read"), "ended");
    assert_eq!(client.wait().expect("wait").code(), Some(0));
    machine.root(["systemctl", "stop", "rootwrap.service"]).ok();
    assert_eq!(machine.property("rootwrap.service", "Result"), "success");
    assert_eq!(machine.events("exited")[0].ours("EXIT_CODE"), "0");
}

#[test]
fn given_a_launcher_that_died_then_the_service_is_started_anew_and_callers_are_served() {
    let machine = machine_with_links();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    let old = machine.main_pid();
    let kill = "for pid in $(cat /sys/fs/cgroup/system.slice/rootwrap.service/daemon/cgroup.procs); do
        case $(readlink /proc/$pid/exe) in */rootwrap-launcher) kill -KILL $pid ;; esac; done
        while [ $(systemctl show --value -p MainPID rootwrap.service) = \"$0\" ]; do sleep 0.05; done";
    machine.root(["bash", "-c", kill, &old.to_string()]).ok();
    machine.alice(["rootwrap", "ip", "link", "set", "v0", "up"]).ok();
    assert_eq!(machine.property("rootwrap.socket", "ActiveState"), "active");
}

#[test]
fn given_a_short_watchdog_then_the_service_keeps_it_quiet() {
    let machine = machine_with_links();
    machine.write(
        "/etc/systemd/system/rootwrap.service.d/watchdog.conf",
        "[Service]\nWatchdogSec=1s\n",
    );
    machine.root(["systemctl", "daemon-reload"]).ok();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    let old = machine.main_pid();
    let pings = "last() { systemctl show --value -p WatchdogTimestampMonotonic rootwrap.service; }
        for ping in 1 2 3 4; do now=$(last); while [ $now = $(last) ]; do sleep 0.02; done; done";
    machine.sh("root", pings).ok();
    assert_eq!(machine.main_pid(), old);
}

#[test]
fn given_sighup_then_the_policy_is_loaded_anew() {
    let machine = machine_with_links();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    machine.write("/etc/rootwrap/filters.d/50-test.toml", LINKS.replace("alice", "bob"));
    machine
        .root(["systemctl", "kill", "--kill-whom=main", "-s", "HUP", "rootwrap.service"])
        .ok();
    machine.sh("bob", "until rootwrap cat /proc/self/status; do sleep 0.02; done").ok();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).expect(126);
    assert_eq!(machine.events("reloaded").len(), 1);
}
