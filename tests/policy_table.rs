//! Patterns, arguments, and what must come out.

#![cfg(feature = "daemon")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod policy_common;

use policy_common::*;
use rootwrap::policy::spec::{Cidr, Element, ElementKind, IpFamily, Prefix};

/// Every line is one request: whether it must be allowed, and its arguments.
fn check(args: Vec<Element>, cases: &[(bool, &[&str])]) {
    let policy = policy(vec![filter("test", "/usr/bin/test", args.clone())]).unwrap();
    for (expected, arguments) in cases {
        let argv: Vec<&str> = std::iter::once("test").chain(arguments.iter().copied()).collect();
        assert_eq!(allows(&policy, &argv), *expected, "{arguments:?} against {args:?}");
    }
}

const UUID: &str = "5d9d7a3e-1f66-4b0e-9a5c-0123456789ab";

#[test]
fn words_and_sequences() {
    check(vec![], &[(true, &[]), (false, &[""]), (false, &["x"])]);
    check(
        vec![literal("link"), literal("set"), interface(), words(&["up", "down"])],
        &[
            (true, &["link", "set", "v0", "up"]),
            (true, &["link", "set", "v0", "down"]),
            (false, &["link", "set", "v0"]),
            (false, &["link", "set", "v0", "up", "down"]),
            (false, &["link", "set", "up"]),
            (false, &["l", "set", "v0", "up"]),
            (false, &["link", "set", "v0 up"]),
            (false, &["link set v0 up"]),
            (false, &["link", "set", "v0", "up\n"]),
            (false, &["link", "set", "v0", "UP"]),
        ],
    );
    check(
        vec![literal("a\\"), literal("\u{e9}"), literal("'\"$x`")],
        &[
            (true, &["a\\", "\u{e9}", "'\"$x`"]),
            (false, &["a", "\u{e9}", "'\"$x`"]),
            (false, &["a\\\\", "\u{e9}", "'\"$x`"]),
        ],
    );
}

#[test]
fn one_argument_is_never_two() {
    check(
        vec![regex("/var/log/[^/]*")],
        &[
            (true, &["/var/log/x"]),
            (true, &["/var/log/a b"]),
            (false, &["/var/log/a", "b"]),
            (false, &["/var/log/../shadow"]),
            (false, &["/var/log/a/b"]),
        ],
    );
    check(
        vec![any()],
        &[(true, &["a b\tc"]), (false, &[""]), (false, &["a", "b"]), (false, &["--x"])],
    );
}

#[test]
fn numbers() {
    check(
        vec![int(-2, 10)],
        &[
            (true, &["-2"]),
            (true, &["0"]),
            (true, &["10"]),
            (false, &["-3"]),
            (false, &["11"]),
            (false, &["010"]),
            (false, &["+1"]),
            (false, &["-0"]),
            (false, &["1.0"]),
            (false, &["1 "]),
            (false, &["0x1"]),
        ],
    );
}

#[test]
fn addresses() {
    let ip = |family, prefix, within: &[(&str, u8)]| {
        let within = within
            .iter()
            .map(|(address, prefix)| Cidr {
                address: address.parse().unwrap(),
                prefix: *prefix,
            })
            .collect();
        value(ElementKind::Ip { family, prefix, within })
    };
    check(
        vec![ip(IpFamily::V4, Prefix::Maybe, &[("192.0.2.0", 24)])],
        &[
            (true, &["192.0.2.9"]),
            (true, &["192.0.2.0/25"]),
            (false, &["192.0.3.9"]),
            (false, &["192.0.2.0/23"]),
            (false, &["192.0.2.9/"]),
            (false, &["::1"]),
            (false, &["192.0.2.9/33"]),
            (false, &["192.0.2.09"]),
        ],
    );
    check(
        vec![ip(IpFamily::V6, Prefix::Yes, &[])],
        &[
            (true, &["fe80::1/64"]),
            (true, &["::/0"]),
            (false, &["fe80::1"]),
            (false, &["fe80::1/129"]),
            (false, &["10.0.0.1/8"]),
        ],
    );
    check(
        vec![value(ElementKind::Mac), value(ElementKind::Uuid), value(ElementKind::Host)],
        &[
            (true, &["02:00:00:00:00:01", UUID, "example.org"]),
            (true, &["02:00:00:00:00:01", UUID, "::1"]),
            (false, &["02:00:00:00:00", UUID, "example.org"]),
            (false, &["02:00:00:00:00:01", "x", "example.org"]),
            (false, &["02:00:00:00:00:01", UUID, "-example.org"]),
            (false, &["02:00:00:00:00:01", UUID, "a;b"]),
        ],
    );
}

#[test]
fn paths_by_their_spelling() {
    check(
        vec![path_under("/x/images")],
        &[
            (true, &["/x/images/a"]),
            (true, &["/x/images/a/b"]),
            (false, &["/x/images"]),
            (false, &["/x/images/"]),
            (false, &["/x/images-evil/a"]),
            (false, &["/x/images/../a"]),
            (false, &["/x/images/./a"]),
            (false, &["/x/images//a"]),
            (false, &["/x/images/a/"]),
            (false, &["x/images/a"]),
            (false, &["/etc/x/images/a"]),
        ],
    );
    check(
        vec![regex("/dev/[a-z]+")],
        &[(true, &["/dev/sda"]), (false, &["/dev/../etc/shadow"])],
    );
}

#[test]
fn expressions_are_whole_and_cannot_be_left() {
    check(
        vec![regex("set|get")],
        &[
            (true, &["set"]),
            (true, &["get"]),
            (false, &["set\n"]),
            (false, &["set --evil"]),
            (false, &["xget"]),
        ],
    );
    check(
        vec![regex("(?m)^a$")],
        &[(true, &["a"]), (false, &["a\nb"]), (false, &["b\na"]), (false, &["a\n"])],
    );
    check(
        vec![regex("(?x) a b # c")],
        &[(true, &["ab"]), (false, &["a b"]), (false, &["abc"])],
    );
    check(vec![regex("-[rf]+")], &[(true, &["-rf"]), (false, &["-x"]), (false, &["rf"])]);
    check(
        vec![regex(".*")],
        &[(true, &[""]), (true, &["x"]), (false, &["-x"]), (false, &["a\nb"])],
    );
    check(vec![dash(regex(".*"))], &[(true, &["-x"])]);
    let errors = errors(vec![filter("test", "/usr/bin/test", vec![regex("a)|(?:b")])]);
    assert!(errors.contains("regular expression"), "{errors}");
}

#[test]
fn made_of_parts() {
    check(
        vec![concat(vec![words(&["qrouter-", "qdhcp-"]), value(ElementKind::Uuid)])],
        &[
            (true, &[&format!("qrouter-{UUID}")]),
            (false, &["qrouter-"]),
            (false, &[UUID]),
            (false, &[&format!("qrouter-{UUID}x")]),
            (false, &[&format!("snat-{UUID}")]),
        ],
    );
    check(
        vec![concat(vec![regex("[a-z]+"), literal("="), regex("[a-z=]*")])],
        &[
            (true, &["a="]),
            (true, &["a=b=c"]),
            (false, &["=b"]),
            (false, &["a"]),
            (false, &["-a=b"]),
        ],
    );
    check(
        vec![concat(vec![literal("if="), path_under("/dev")])],
        &[
            (true, &["if=/dev/sda"]),
            (false, &["if=/dev/../etc/shadow"]),
            (false, &["if=/dev"]),
            (false, &["of=/dev/sda"]),
        ],
    );
    check(
        vec![list(concat(vec![interface(), literal(":"), int(0, 9)]), ",")],
        &[
            (true, &["a:1"]),
            (true, &["a:1,b:2"]),
            (false, &["a:1,b"]),
            (false, &["a:1,,b:2"]),
            (false, &[",a:1"]),
            (false, &["a:10"]),
        ],
    );
    check(
        vec![list(int(0, 9), "--")],
        &[(true, &["1--2"]), (false, &["1-2"]), (false, &["1---2"])],
    );
}

#[test]
fn groups() {
    check(
        vec![
            optional(literal("-v")),
            repeat(interface(), 1, Some(2)),
            optional(seq(vec![literal("to"), interface()])),
        ],
        &[
            (true, &["a"]),
            (true, &["-v", "a", "b"]),
            (true, &["a", "to", "b"]),
            (true, &["a", "b", "to", "c"]),
            (true, &["to", "to"]),
            (true, &["to", "to", "to"]),
            (false, &[]),
            (false, &["-v"]),
            (false, &["a", "b", "c"]),
            (false, &["-v", "-v", "a"]),
        ],
    );
    check(
        vec![
            repeat(one_of(vec![seq(vec![literal("-s"), int(0, 9)]), literal("!")]), 0, Some(3)),
            literal("end"),
        ],
        &[
            (true, &["end"]),
            (true, &["-s", "1", "!", "-s", "2", "end"]),
            (false, &["!", "!", "!", "!", "end"]),
            (false, &["-s", "end"]),
            (false, &["!", "-s", "1"]),
        ],
    );
}

#[test]
fn options_in_any_order() {
    let args = || {
        vec![
            options(vec![
                option("!-t", Some(words(&["nfs", "nfs4"]))),
                option("-o, --options, --options=", Some(list(words(&["ro", "nosuid"]), ","))),
                option("*-v", None),
            ]),
            path_under("/mnt"),
        ]
    };
    check(
        args(),
        &[
            (true, &["-t", "nfs", "/mnt/a"]),
            (true, &["-v", "-o", "ro", "-v", "-t", "nfs4", "/mnt/a"]),
            (true, &["--options=ro,nosuid", "-t", "nfs", "/mnt/a"]),
            (true, &["--options", "ro", "-t", "nfs", "/mnt/a"]),
            (false, &["/mnt/a"]),
            (false, &["-o", "ro", "/mnt/a"]),
            (false, &["-t", "ext4", "/mnt/a"]),
            (false, &["-t", "nfs", "-t", "nfs", "/mnt/a"]),
            (false, &["-o", "ro", "--options=ro", "-t", "nfs", "/mnt/a"]),
            (false, &["-t", "nfs", "/mnt/a", "-v"]),
            (false, &["-t", "nfs", "--opt=ro", "/mnt/a"]),
            (false, &["-tnfs", "/mnt/a"]),
            (false, &["-vt", "nfs", "/mnt/a"]),
            (false, &["-t", "nfs", "-o", "suid", "/mnt/a"]),
            (false, &["-t", "nfs", "--", "/mnt/a"]),
            (false, &["-t"]),
        ],
    );
}

#[test]
fn options_must_have_a_clear_end() {
    let wait = || options(vec![option("-w", Some(optional(int(0, 9))))]);
    for next in [literal("-w"), dash(any()), regex("-.*"), options(vec![option("-w", None)])] {
        assert!(
            errors(vec![filter("test", "/usr/bin/test", vec![wait(), next.clone()])]).contains("option"),
            "{next:?}"
        );
    }
    assert_eq!(errors(vec![filter("test", "/usr/bin/test", vec![wait(), any()])]), "");
    // The value is taken, not left for what follows.
    check(
        vec![wait(), int(0, 9)],
        &[(true, &["5"]), (false, &["-w", "5"]), (true, &["-w", "5", "6"])],
    );
}

#[test]
fn signals_by_every_spelling() {
    let policy = policy(vec![filter(
        "hup",
        "/usr/bin/kill",
        vec![words(&["-HUP", "-9"]), pid_of("/usr/sbin/dnsmasq")],
    )])
    .unwrap();
    for args in [
        &["-HUP", "12"][..],
        &["-1", "12"],
        &["-SIGHUP", "12"],
        &["-s", "HUP", "12"],
        &["-s", "1", "12"],
        &["--signal=HUP", "12"],
        &["-KILL", "12"],
    ] {
        let argv: Vec<&str> = std::iter::once("kill").chain(args.iter().copied()).collect();
        assert!(allows(&policy, &argv), "{args:?}");
    }
    for args in [
        &["-TERM", "12"][..],
        &["12"],
        &["-HUP"],
        &["-HUP", "12", "13"],
        &["-HUP", "-12"],
        &["-HUP", "0"],
        &["-HUP", "012"],
        &["-HUP", "-1"],
        &["-HUP", "%1"],
        &["-HUP", "--", "12"],
        &["-HUP", "4294967308"],
        &["-0", "12"],
    ] {
        let argv: Vec<&str> = std::iter::once("kill").chain(args.iter().copied()).collect();
        assert!(!allows(&policy, &argv), "{args:?}");
    }
}

#[test]
fn signal_filters_name_one_signal_and_one_process() {
    let dnsmasq = || pid_of("/usr/sbin/dnsmasq");
    for args in [
        vec![dnsmasq()],
        vec![literal("-HUP"), dnsmasq(), dnsmasq()],
        vec![literal("-HUP"), literal("-TERM"), dnsmasq()],
        vec![literal("--"), dnsmasq()],
        vec![optional(literal("-HUP")), dnsmasq()],
        vec![any(), dnsmasq()],
        vec![literal("-HUP"), one_of(vec![dnsmasq(), literal("1")])],
        vec![dnsmasq(), literal("-HUP")],
        vec![literal("-HUP"), repeat(dnsmasq(), 1, None)],
        vec![literal("-HUP"), concat(vec![dnsmasq()])],
    ] {
        assert_ne!(errors(vec![filter("kill", "/usr/bin/kill", args.clone())]), "", "{args:?}");
    }
    let renice = filter("renice", "/usr/bin/renice", vec![literal("-9"), dnsmasq()]);
    assert!(errors(vec![renice]).contains("kill"));
}
