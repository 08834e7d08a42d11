//! `rootwrapctl` and the service say the same.

use serde_json::Value;

use crate::machine_with_links;

#[test]
fn given_a_service_then_explain_says_for_everybody_what_run_does() {
    let machine = machine_with_links();
    for (user, argv) in [
        ("alice", &["ip", "link", "set", "v0", "up"][..]),
        ("alice", &["ip", "link", "del", "v0"]),
        ("bob", &["ip", "link", "set", "v0", "up"]),
    ] {
        let explained = machine.run(user, [&["rootwrapctl", "explain", "--"], argv].concat());
        let offline = machine.root([&["rootwrapctl", "explain", "--user", user, "--"], argv].concat());
        let run = machine.run(user, [&["rootwrap"], argv].concat());
        assert_eq!(explained.code() == 0, run.code() == 0, "{user} {argv:?}: {explained:?} {run:?}");
        assert_eq!(
            (explained.code(), explained.text()),
            (offline.code(), offline.text()),
            "asked and read"
        );
    }
    let as_root = machine
        .root(["rootwrapctl", "explain", "--", "ip", "link", "set", "v0", "up"])
        .expect(1);
    assert!(as_root.text().contains("rootwrapctl explain --user USER"), "{as_root:?}");
    let denied = machine.alice(["rootwrapctl", "explain", "--", "ip", "link", "del", "v0"]).expect(1);
    let marked = "link-up /etc/rootwrap/filters.d/50-test.toml:";
    assert!(
        denied.text().contains(marked) && denied.text().contains("  ip link del v0\n          ^^^ expected"),
        "{denied:?}"
    );
    let of_others = machine
        .run("bob", ["rootwrapctl", "explain", "--", "ip", "link", "set", "v0", "up"])
        .expect(1);
    assert!(
        !of_others.text().contains("link-up"),
        "nobody sees the filters of others: {of_others:?}"
    );
}

#[test]
fn given_the_service_in_each_state_then_status_exits_as_systemctl_does() {
    let machine = machine_with_links();
    machine.root(["systemctl", "stop", "rootwrap.socket"]).ok();
    let gone = machine.alice(["rootwrapctl", "status"]);
    assert!([3, 4].contains(&gone.code()), "{gone:?}");

    machine.root(["systemctl", "start", "rootwrap.socket"]).ok();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    let shown = machine.alice(["rootwrapctl", "status"]).ok();
    assert!(
        shown.contains("state  running") && shown.contains("2 filters") && shown.contains("1 allowed"),
        "{shown}"
    );
    let reply: Value = serde_json::from_str(&machine.alice(["rootwrapctl", "--json", "status"]).ok()).expect("JSON");
    assert_eq!(reply["state"], "running");
    assert_eq!(
        reply["callers"].as_array().map(Vec::len),
        Some(1),
        "alice sees only herself: {reply}"
    );

    machine.write("/etc/rootwrap/filters.d/60-broken.toml", "x = 1\n");
    machine.root(["systemctl", "restart", "rootwrap.service"]).ok();
    let void = machine.root(["rootwrapctl", "status"]).expect(3);
    assert!(
        void.text().contains("no policy") && void.text().contains("60-broken.toml:1:1: error["),
        "{void:?}"
    );
}

#[test]
fn given_the_installed_policy_then_check_reads_what_the_service_reads_and_says_the_same_hash() {
    let machine = machine_with_links();
    let checked: Value = serde_json::from_str(&machine.root(["rootwrapctl", "--json", "check"]).ok()).expect("JSON");
    let status: Value = serde_json::from_str(&machine.root(["rootwrapctl", "--json", "status"]).ok()).expect("JSON");
    assert_eq!(checked["policy"], status["policyHash"]);
    assert_eq!(checked["filters"], status["filters"]);
}
