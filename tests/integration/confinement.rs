//! What the service keeps for itself: next to nothing.

use std::collections::HashMap;

use crate::common::Machine;
use crate::machine_with_links;

fn status(machine: &Machine, pid: u32) -> HashMap<String, String> {
    let text = machine.root(["cat", &format!("/proc/{pid}/status")]).ok();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

fn started() -> (Machine, u32) {
    let machine = machine_with_links();
    machine.alice(["rootwrap", "ip", "link", "set", "v0", "up"]).ok();
    let pid = machine.main_pid();
    (machine, pid)
}

#[test]
fn given_the_running_service_then_it_holds_cap_kill_only_and_is_confined_by_seccomp_and_no_new_privs() {
    let (machine, pid) = started();
    let status = status(&machine, pid);
    for set in ["CapPrm", "CapEff", "CapBnd"] {
        assert_eq!(status[set], "0000000000000020", "{set}: CAP_KILL is bit 5");
    }
    for set in ["CapInh", "CapAmb"] {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
    assert_eq!(status["NoNewPrivs"], "1");
    assert_eq!(status["Seccomp"], "2", "a filter");
}

#[test]
fn given_a_root_process_with_the_same_capabilities_then_it_can_read_its_equals_but_not_the_service() {
    let (machine, pid) = started();
    // Without CAP_SYS_PTRACE, the memory and environment of a process that is not dumpable are closed to its own user.
    let peek = |pid: &str| {
        machine
            .root(["setpriv", "--bounding-set", "-all,+kill", "cat", &format!("/proc/{pid}/environ")])
            .code()
    };
    let equal = machine
        .sh(
            "root",
            "setsid setpriv --bounding-set -all,+kill sleep 1000 </dev/null >/dev/null 2>&1 & echo $!",
        )
        .ok();
    assert_eq!(peek(equal.trim()), 0, "what can be read of a dumpable process");
    assert_ne!(peek(&pid.to_string()), 0, "the service is not dumpable");
}

#[test]
fn given_the_running_service_then_it_and_its_launcher_are_in_the_daemon_cgroup_of_the_unit() {
    let (machine, pid) = started();
    let cgroup = machine.property("rootwrap.service", "ControlGroup");
    let inside = machine.root(["cat", &format!("/sys/fs/cgroup{cgroup}/daemon/cgroup.procs")]).ok();
    let mut names: Vec<String> = inside
        .lines()
        .map(|pid| {
            machine
                .root(["readlink", &format!("/proc/{pid}/exe")])
                .ok()
                .trim()
                .rsplit('/')
                .next()
                .expect("a name")
                .to_owned()
        })
        .collect();
    names.sort();
    assert!(inside.lines().any(|line| line == pid.to_string()), "{inside}");
    assert_eq!(names.first().map(String::as_str), Some("rootwrap-launcher"));
    assert_eq!(names.last().map(String::as_str), Some("rootwrapd"));
    let own = machine.root(["cat", &format!("/sys/fs/cgroup{cgroup}/cgroup.procs")]).ok();
    assert_eq!(own, "", "no process in the unit's own cgroup");
}
