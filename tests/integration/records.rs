//! The journal's records give back exactly what was asked, and nobody else's can be taken for them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;

use crate::common::{Machine, Record};
use crate::{LINKS, machine_with_links};

const ANYTHING: &str = r#"
[callers]
users = ["alice"]

[[filter]]
name = "true"
command = "true"
args = [{ repeat = { any = true, dash = true }, max = 4096 }]
capabilities = []

[[filter]]
name = "logger"
command = "logger"
args = ["--journald"]
capabilities = []
"#;

fn machine() -> Machine {
    let machine = Machine::boot();
    machine.filters(ANYTHING);
    machine
}

/// Has alice run `true` with these arguments, and gives back the record's own arguments.
fn round_trip(machine: &Machine, arguments: &[&str]) -> Vec<OsString> {
    machine.alice([&["rootwrap", "true"], arguments].concat()).ok();
    machine.decided("allowed").last().expect("a record").argv()
}

#[test]
fn given_duplicates_and_bait_for_sorting_and_newlines_then_the_record_gives_back_the_arguments_in_order() {
    let machine = machine();
    for arguments in [
        &["b", "a", "b", "a", "z", "a"][..],
        &["--x", "-", "--", "a=b", "ROOTWRAP_DECISION=denied", "MESSAGE=forged"],
        &[
            "line\nROOTWRAP_DECISION=denied\nMESSAGE=forged",
            "\u{1b}[31mred",
            "\u{202e}bidi",
            "tab\there",
            "\"quoted\" \\ back",
        ],
        &["ÄÖÜ", "日本語", "\u{1f600}", "\u{fffd}"],
    ] {
        assert_eq!(round_trip(&machine, arguments), [&["true"], arguments].concat());
    }
    assert!(machine.decided("denied").is_empty(), "no field was made by an argument");
    for record in machine.decided("allowed") {
        assert!(
            record.get("MESSAGE").chars().all(|c| !c.is_control() && c != '\u{202e}'),
            "one printable line: {record:?}"
        );
    }
}

#[test]
fn given_4096_arguments_then_the_record_holds_them_all() {
    let machine = machine();
    let arguments: Vec<String> = (0..4095).map(|number| (number * 7919 % 4096).to_string()).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    assert_eq!(round_trip(&machine, &arguments), [&["true"], &arguments[..]].concat());
    assert_eq!(machine.decided("allowed")[0].ours("ARGC"), "4096");
}

#[test]
fn given_every_byte_value_then_the_record_gives_back_each() {
    let machine = machine();
    let argv: Vec<OsString> = ["true".into()]
        .into_iter()
        .chain((1..=255).map(|byte| OsString::from_vec(vec![b'x', byte])))
        .collect();
    machine.alice([&["rootwrap".into()], &argv[..]].concat()).ok();
    assert_eq!(machine.decided("allowed")[0].argv(), argv);
}

/// Has alice send a record by a program that stays until journald has looked at it; gives the record back.
fn forge(machine: &Machine, argv: &[&str], from: &str) -> Record {
    let mut sender = machine.command("alice", argv).stdin(Stdio::piped()).spawn().expect("spawn");
    let forged = loop {
        if let Some(record) = machine.records_of_anybody(&[&format!("FROM={from}")]).pop() {
            break record;
        }
        assert!(
            sender.try_wait().expect("wait").is_none(),
            "the sender ended, and there is no record"
        );
    };
    drop(sender.stdin.take());
    assert!(sender.wait().expect("wait").success());
    forged
}

#[test]
fn given_records_forged_by_a_user_and_by_a_launched_command_then_readers_do_not_take_them_for_the_services() {
    let machine = machine();
    machine.alice(["rootwrap", "true", "real"]).ok();
    let bait = [
        "ROOTWRAP_DECISION=allowed",
        "ROOTWRAP_ARGV=[\"forged\"]",
        "ROOTWRAP_CALLER_UID=0",
        "MESSAGE=forged",
    ];
    let send = |by: &[&str], from: &str| forge(&machine, &[by, &bait[..], &[&format!("FROM={from}")]].concat(), from);
    assert_ne!(send(&["/srv/tests/peer", "record"], "alice").ours("ARGV"), "");
    // In a mount namespace of her own, alice's program has the service's path.
    let at_our_path = "mount --bind /usr/bin/python3 /usr/libexec/rootwrap/rootwrapd &&
        exec /usr/libexec/rootwrap/rootwrapd /srv/tests/peer record \"$@\"";
    let forged = send(&["unshare", "-Urm", "sh", "-c", at_our_path, "sh"], "namespace");
    assert_eq!(
        forged.get("_EXE"),
        "/usr/libexec/rootwrap/rootwrapd",
        "the executable alone does not tell"
    );
    machine
        .sh("alice", &format!("printf '{}\\n' | rootwrap logger --journald", bait.join("\\n")))
        .ok();
    assert_eq!(
        machine.records_of_anybody(&["ROOTWRAP_ARGV=[\"forged\"]"]).len(),
        3,
        "all of them are in the journal"
    );

    let ours: Vec<_> = machine.decided("allowed").iter().map(Record::argv).collect();
    assert_eq!(ours, [["true", "real"], ["logger", "--journald"]]);
}

#[test]
fn given_the_catalog_then_journalctl_explains_every_event() {
    let machine = machine_with_links();
    machine.root(["journalctl", "--update-catalog"]).ok();
    machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    machine.alice(["rootwrap", "ip", "link", "del", "v0"]).expect(126);
    machine.write("/etc/rootwrap/filters.d/50-test.toml", "nonsense");
    assert_ne!(machine.root(["rootwrapctl", "reload"]).code(), 0);
    machine.filters(LINKS);
    machine.root(["systemctl", "stop", "rootwrap.service"]).ok();

    for kind in ["started", "allowed", "exited", "denied", "reload-failed", "reloaded", "stopped"] {
        let id = machine
            .events(kind)
            .first()
            .unwrap_or_else(|| panic!("no {kind}"))
            .get("MESSAGE_ID")
            .to_owned();
        let explained = machine.journalctl(&["-x", "-o", "short", &format!("MESSAGE_ID={id}")]);
        assert!(
            explained.contains(" Subject: ") && explained.contains(" Defined-By: rootwrap"),
            "{explained}"
        );
    }
}
