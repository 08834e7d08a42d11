//! `packaging/install` gives what works, and takes it all away again.

use std::collections::BTreeSet;

use crate::LINKS;
use crate::common::Machine;

const INSTALL: [&str; 3] = ["env", "BUILD=/srv/build", "/srv/tree/packaging/install"];

/// Every file of the system, but for the registers that installing anything changes.
fn files(machine: &Machine) -> BTreeSet<String> {
    let list = machine.root(["find", "/usr", "/etc", "/var", "/opt", "/run/rootwrap", "-xdev"]);
    let kept = [
        "/etc/passwd",
        "/etc/group",
        "/etc/shadow",
        "/etc/gshadow",
        "/var/log/",
        "/var/lib/systemd/catalog",
        "/etc/.pwd.lock",
    ];
    list.text()
        .lines()
        .filter(|path| !kept.iter().any(|prefix| path.starts_with(prefix)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn given_the_package_installed_and_removed_then_it_worked_and_nothing_is_left() {
    let machine = Machine::bare(None, None);
    let before = files(&machine);
    machine.root(INSTALL).ok();
    machine.root(["systemctl", "enable", "--now", "rootwrap.socket"]).ok();
    machine.filters(LINKS);
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    machine.root(["getent", "passwd", "rootwrap"]).ok();
    assert_eq!(machine.root(["stat", "-c", "%U %a", "/etc/rootwrap/filters.d"]).ok(), "root 755\n");

    machine.root([&INSTALL[..], &["--uninstall"]].concat()).ok();
    let kept = "/etc/rootwrap/filters.d/50-test.toml";
    machine.root(["cat", kept]).ok();
    assert_eq!(machine.property("rootwrap.socket", "LoadState"), "not-found");
    machine.root(["rm", "-r", "/etc/rootwrap"]).ok();
    let after = files(&machine);
    assert_eq!(after.symmetric_difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn given_another_prefix_then_the_units_refer_to_it_and_it_works() {
    let machine = Machine::bare(None, None);
    machine.root([&["env", "PREFIX=/usr/local"], &INSTALL[..]].concat()).ok();
    let unit = machine.root(["systemctl", "cat", "rootwrap.service"]).ok();
    assert!(unit.contains("ExecStart=/usr/local/libexec/rootwrap/rootwrapd\n"), "{unit}");
    assert!(unit.contains("ExecReload=/usr/local/bin/rootwrapctl reload\n"), "{unit}");
    machine.root(["systemctl", "start", "rootwrap.socket"]).ok();
    machine.filters(LINKS);
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    machine.root(["systemctl", "reload", "rootwrap.service"]).ok();
}

#[test]
fn given_an_installed_service_when_it_is_installed_again_then_it_runs_on_in_its_new_version() {
    let machine = Machine::boot();
    machine.filters(LINKS);
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    let old = machine.main_pid();
    machine.root(INSTALL).ok();
    assert_ne!(machine.main_pid(), old, "restarted");
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    machine.root(["cat", "/etc/rootwrap/filters.d/50-test.toml"]).ok();
}
