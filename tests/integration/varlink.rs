//! The service as Varlink clients see it that others wrote: systemd's own (257, as in Debian 13) and the crate zlink.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::LINKS;
use crate::common::Machine;
use crate::common::stage::TREE;

const SOCKET: &str = "/run/rootwrap.sock";

fn machine() -> Machine {
    let machine = Machine::boot_suite("trixie");
    machine.filters(LINKS);
    machine
}

#[test]
fn given_varlinkctl_then_it_can_read_the_interface_and_call_the_service() {
    let machine = machine();
    let info = machine.alice(["varlinkctl", "info", SOCKET]).ok();
    assert!(info.contains("io.rootwrap") && info.contains("org.varlink.service"), "{info}");
    let interface = machine.alice(["varlinkctl", "introspect", SOCKET, "io.rootwrap"]).ok();
    for method in ["Run", "Signal", "Explain", "ListFilters", "Reload", "GetStatus"] {
        assert!(interface.contains(&format!("method {method}")), "{interface}");
    }
    for error in [
        "NotPermitted",
        "NoSuchExecutable",
        "Busy",
        "LaunchFailed",
        "BadRequest",
        "PolicyUnavailable",
        "AuditUnavailable",
    ] {
        assert!(interface.contains(&format!("error {error}")), "{interface}");
    }
    let reply = machine
        .alice([
            "varlinkctl",
            "--json=short",
            "call",
            SOCKET,
            "io.rootwrap.Run",
            r#"{"argv":["cat","/proc/self/status"]}"#,
        ])
        .ok();
    let reply: Value = serde_json::from_str(&reply).expect("JSON");
    assert!(reply.is_object(), "{reply}");
    let refused = machine.alice([
        "varlinkctl",
        "call",
        SOCKET,
        "io.rootwrap.Run",
        r#"{"argv":["ip","link","del","v0"]}"#,
    ]);
    assert_ne!(refused.code(), 0);
    assert!(refused.stderr.contains("io.rootwrap.NotPermitted"), "{}", refused.stderr);
    machine.root(["varlinkctl", "call", SOCKET, "io.rootwrap.GetStatus", "{}"]).ok();
}

#[test]
fn given_the_next_debian_release_then_the_main_job_works_as_here() {
    let machine = machine();
    machine.root(["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"]).ok();
    machine.alice(["rootwrap", "ip", "link", "set", "v0", "up"]).ok();
    machine.run("bob", ["rootwrap", "ip", "link", "set", "v0", "up"]).expect(126);
    assert_eq!(machine.decided("allowed").len(), 1);
    assert_eq!(machine.decided("denied").len(), 1);
    let outcome = machine
        .root(["systemd-analyze", "verify", "--man=no", "rootwrap.socket", "rootwrap.service"])
        .expect(0);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn given_a_client_made_with_zlink_then_it_and_the_service_understand_each_other() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop-zlink");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--manifest-path"])
        .arg(Path::new(TREE).join("tests/interop-zlink/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .output()
        .expect("cargo");
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));

    let machine = Machine::boot();
    machine.filters(LINKS);
    fs::copy(target.join("debug/interop-zlink"), machine.path("/usr/local/bin/interop-zlink")).expect("copy");
    let said = machine.alice(["interop-zlink", SOCKET, "cat", "/proc/self/status"]).ok();
    assert_eq!(said.lines().last(), Some("ok"), "{said}");
}
