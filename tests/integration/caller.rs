//! Who is calling is what the kernel says, taken from the connection and every message, never from what a caller says.

use std::process::Command;

use serde_json::Value;

use crate::common::Machine;
use crate::common::stage::build;
use crate::{LINKS, machine_with_links};

const AGENT_ONLY: &str = r#"
[callers]
units = ["agent.service"]

[[filter]]
name = "agent-link-up"
command = "ip"
args = ["link", "set", { interface = true }, "up"]
capabilities = ["net_admin"]
"#;

const AGENT_UNIT: &str = "[Service]\nType=oneshot\nExecStart=/usr/bin/rootwrap ip link set v0 up\n";

const CGROUP: &str = r#"
[callers]
users = ["alice"]

[[filter]]
name = "as-callers"
command = "cat"
args = ["/proc/self/cgroup"]
capabilities = []
placement = "caller"

[[filter]]
name = "as-services"
command = "head"
args = ["/proc/self/cgroup"]
capabilities = []
"#;

const INIT_ONLY: &str = r#"
[[filter]]
name = "by-unit"
command = "cat"
args = ["/proc/self/limits"]
capabilities = []
callers = { units = ["init.scope", "agent.service", "agent@*.service"] }
"#;

#[test]
fn given_a_rule_for_a_unit_then_the_system_unit_is_served_and_a_users_own_unit_of_that_name_is_not() {
    let machine = machine_with_links();
    machine.filters(AGENT_ONLY);
    machine.write("/etc/systemd/system/agent.service", format!("{AGENT_UNIT}User=alice\n"));
    machine.write("/etc/systemd/user/agent.service", AGENT_UNIT);
    machine.root(["systemctl", "daemon-reload"]).ok();

    machine.root(["systemctl", "start", "agent.service"]).ok();
    let [allowed] = &machine.decided("allowed")[..] else {
        panic!("the system unit is served")
    };
    assert_eq!(allowed.ours("CALLER_UNIT"), "agent.service");

    machine.root(["loginctl", "enable-linger", "alice"]).ok();
    let uid = machine.root(["id", "-u", "alice"]).ok();
    let uid = uid.trim();
    machine.root(["systemctl", "start", &format!("user@{uid}.service")]).ok();
    let own = format!("XDG_RUNTIME_DIR=/run/user/{uid} systemctl --user start agent.service");
    assert_ne!(machine.sh("alice", &own).code(), 0, "a user's own agent.service is refused");
    let [denied] = &machine.decided("denied")[..] else {
        panic!("one record of the refusal")
    };
    assert_eq!(denied.ours("CALLER_UNIT"), format!("user@{uid}.service"));
    assert_eq!(denied.ours("CALLER_UID"), uid);
}

/// What a child says on the connection of a process of agent.service that has ended.
fn survivor(machine: &Machine, argv: &str) -> Value {
    let unit = [
        "systemd-run",
        "--quiet",
        "--pipe",
        "--wait",
        "--collect",
        "--unit=agent.service",
        "--uid=alice",
    ];
    let rest = ["-p", "KillMode=process", "/srv/tests/peer", "survive", "Run", argv];
    let said = machine.root(unit.into_iter().chain(rest)).ok();
    serde_json::from_str(said.lines().last().expect("a reply")).expect("JSON")
}

#[test]
fn given_a_connection_that_outlives_its_process_then_rules_for_its_user_serve_it_and_rules_for_its_unit_do_not() {
    let machine = machine_with_links();
    machine.write("/etc/rootwrap/filters.d/60-agent.toml", AGENT_ONLY);
    machine.filters(&LINKS.replace("link-up", "link-down").replace("\"up\"", "\"down\""));
    let of_the_unit = survivor(&machine, r#"{"argv": ["ip", "link", "set", "v0", "up"]}"#);
    assert_eq!(of_the_unit["error"], "io.rootwrap.NotPermitted", "{of_the_unit}");
    let of_the_user = survivor(&machine, r#"{"argv": ["ip", "link", "set", "v0", "down"]}"#);
    assert_eq!(of_the_user["parameters"]["exitCode"], 0, "{of_the_user}");
    let [denied] = &machine.decided("denied")[..] else {
        panic!("one is refused")
    };
    assert_eq!(denied.ours("CALLER_UNIT"), "agent.service", "the record says who had connected");
}

#[test]
fn given_a_connection_that_root_opened_when_alice_speaks_on_it_then_it_is_refused() {
    let machine = Machine::boot();
    machine.filters(&LINKS.replace("alice", "root"));
    let reply = machine
        .root([
            "/srv/tests/peer",
            "hand-over",
            "alice",
            "Run",
            r#"{"argv": ["cat", "/proc/self/status"]}"#,
        ])
        .ok();
    let reply: Value = serde_json::from_str(&reply).expect("JSON");
    assert!(reply["closed"] == true || reply["error"].is_string(), "{reply}");
    assert!(machine.decided("allowed").is_empty());
    assert_eq!(machine.decided("denied").len(), 1, "the refusal is recorded");
}

#[test]
fn given_callers_in_user_namespaces_then_they_have_the_rights_of_their_uid_on_the_host_and_never_roots() {
    let machine = Machine::boot();
    let roots = LINKS
        .replace("alice", "root")
        .replace("link-up", "roots-link-up")
        .replace("own-status", "roots-own-status");
    machine.write(
        "/etc/rootwrap/filters.d/60-root.toml",
        roots.replace("/proc/self/status", "/proc/self/limits"),
    );
    machine.filters(LINKS);
    for namespaces in ["-U", "-Ur", "-Urpf"] {
        machine.alice(["unshare", namespaces, "rootwrap", "cat", "/proc/self/status"]).ok();
        machine
            .alice(["unshare", namespaces, "rootwrap", "cat", "/proc/self/limits"])
            .expect(126);
    }
    let uid = machine.root(["id", "-u", "alice"]).ok();
    for decision in ["allowed", "denied"] {
        let records = machine.decided(decision);
        assert_eq!(records.len(), 3);
        assert!(records.iter().all(|record| record.ours("CALLER_UID") == uid.trim()), "{records:?}");
    }
}

#[test]
fn given_a_caller_of_a_foreign_pid_namespace_then_rules_for_its_uid_serve_it_and_rules_for_its_unit_do_not() {
    let machine = Machine::boot();
    machine.filters(&format!("{}{INIT_ONLY}", LINKS.replace("alice", "root")));
    let from_outside = |file: &str| {
        let mut client = Command::new(build().join("rootwrap"));
        client
            .env("ROOTWRAP_SOCKET", machine.path("/run/rootwrap.sock"))
            .args(["cat", file]);
        client.output().expect("the client").status.code()
    };
    assert_eq!(from_outside("/proc/self/status"), Some(0));
    assert_eq!(from_outside("/proc/self/limits"), Some(126));
    let [allowed] = &machine.decided("allowed")[..] else {
        panic!("one is allowed")
    };
    assert_eq!(allowed.ours("CALLER_UID"), "0");
    assert_eq!(allowed.ours("CALLER_PID"), "0", "a process that the service cannot name");
}

#[test]
fn given_a_filter_for_the_callers_cgroup_then_the_command_is_in_the_callers_unit_and_else_in_the_services() {
    let machine = Machine::boot();
    machine.filters(CGROUP);
    let ask = |command: &str| {
        let unit = [
            "systemd-run",
            "--quiet",
            "--pipe",
            "--wait",
            "--collect",
            "--unit=agent",
            "--uid=alice",
        ];
        let shown = machine
            .root(unit.into_iter().chain(["rootwrap", command, "/proc/self/cgroup"]))
            .ok();
        let cgroup = shown.lines().find_map(|line| line.strip_prefix("0::"));
        cgroup.expect("version 2").to_owned()
    };
    assert_eq!(ask("cat"), "/system.slice/agent.service");
    let own = ask("head");
    assert!(own.starts_with("/system.slice/rootwrap.service/jobs/"), "{own}");
}
