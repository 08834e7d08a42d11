//! Who is calling is what the kernel says; and what the service itself still may.

use std::os::fd::AsFd;

use serde_json::{Value, json};

use crate::support::{ALICE, BOB, Daemon, Peer, as_member, as_user, error, text};

#[test]
fn given_the_running_service_then_it_holds_cap_kill_only_and_cannot_be_looked_into() {
    let daemon = Daemon::start();
    let status = daemon.status();
    for (field, value) in [
        ("CapPrm", "0000000000000020"),
        ("CapEff", "0000000000000020"),
        ("CapBnd", "0000000000000020"),
        ("CapInh", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
    ] {
        assert_eq!(status[field], value, "{field}");
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(limit("Max core file size"), ["0", "0"]);
    let files = limit("Max open files");
    assert_eq!(files[0], files[1]);
    // Not dumpable: its files in /proc belong to root even for... root; what tells is that its memory is closed to an equal of it.
    let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap().flatten();
    for thread in threads {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap();
        assert!(
            status.contains("CapEff:\t0000000000000020") && status.contains("Seccomp:\t2"),
            "every thread is confined"
        );
    }
}

#[test]
fn given_a_connection_of_root_when_another_user_speaks_on_it_then_it_is_refused_and_closed() {
    let daemon = Daemon::start();
    let mut peer = daemon.connect();
    let run = json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["echo", "x"]}});
    as_user(ALICE, || peer.send(&run));
    let reply = peer.reply().unwrap();
    assert_eq!(
        (error(&reply), &reply["parameters"]["reason"]),
        ("NotPermitted".into(), &json!("credentials"))
    );
    assert_eq!(peer.reply(), None);
    assert_eq!(text(&daemon.journal().wait_for("denied", 1)[0], "ROOTWRAP_REASON"), "credentials");
    assert!(daemon.journal().events("allowed").is_empty());
}

#[test]
fn given_a_second_half_of_a_message_from_another_user_then_nothing_runs() {
    let daemon = Daemon::start();
    let mut peer = daemon.connect();
    let run = b"{\"method\":\"io.rootwrap.Run\",\"parameters\":{\"argv\":[\"echo\",\"x\"]}}\0";
    peer.send_bytes(&run[..20]);
    as_user(ALICE, || peer.send_bytes(&run[20..]));
    assert_eq!(error(&peer.reply().unwrap()), "NotPermitted");
    assert!(daemon.journal().events("allowed").is_empty());
}

#[test]
fn given_the_overflow_user_then_it_is_refused_even_where_a_filter_names_it() {
    let overflow: u32 = std::fs::read_to_string("/proc/sys/kernel/overflowuid")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let daemon = Daemon::with(crate::support::Setup {
        filters: crate::support::FILTERS.replace("61234", &overflow.to_string()),
        ..Default::default()
    });
    let socket = daemon.socket();
    let reply = as_user(overflow, || {
        let mut peer = Peer::connect(&socket);
        peer.send(&json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["echo", "x"]}}));
        (peer.reply(), peer.reply())
    });
    assert_eq!(
        reply.0.map(|reply| reply["parameters"]["reason"].clone()),
        Some(Value::from("overflow-id"))
    );
    assert_eq!(reply.1, None);
    assert_eq!(text(&daemon.journal().wait_for("denied", 1)[0], "ROOTWRAP_REASON"), "overflow-id");
}

#[test]
fn given_a_rule_for_a_group_then_the_groups_that_the_process_holds_count_and_no_others() {
    let daemon = Daemon::with(crate::support::Setup {
        filters: crate::support::FILTERS.replace("users = [\"root\", 61234]", "groups = [\"root\", 61300]"),
        ..Default::default()
    });
    let socket = daemon.socket();
    let run = |uid, gid, groups: &[u32]| as_member(uid, gid, groups, || error(&Peer::connect(&socket).run(&["echo", "x"])));
    let many: Vec<u32> = (61_300..62_300).collect();
    assert_eq!(run(ALICE, ALICE, &[61_300]), "");
    assert_eq!(run(ALICE, 61_300, &[]), "");
    assert_eq!(run(ALICE, ALICE, &many), "");
    assert_eq!(run(ALICE, ALICE, &many[1..]), "NotPermitted");
    // The user database has root in its group; this process has left it.
    assert_eq!(run(0, 0, &[]), "");
    assert_eq!(run(0, 61_299, &[]), "NotPermitted");
}

#[test]
fn given_a_uid_beyond_what_a_signed_number_holds_then_it_is_a_user_like_any_other() {
    let daemon = Daemon::start();
    let socket = daemon.socket();
    let reply = as_user(2_147_483_650, || Peer::connect(&socket).run(&["echo", "x"]));
    assert_eq!(reply["parameters"]["reason"], "no-filter", "{reply}");
    assert_eq!(
        text(&daemon.journal().wait_for("denied", 1)[0], "ROOTWRAP_CALLER_UID"),
        "2147483650"
    );
}

#[test]
fn given_credentials_that_claim_another_user_then_the_kernel_does_not_send_them() {
    let daemon = Daemon::start();
    let socket = daemon.socket();
    as_user(ALICE, || {
        let peer = Peer::connect(&socket);
        let root = rootwrap::sys::socket::Credentials {
            pid: std::process::id(),
            uid: 0,
            gid: 0,
        };
        let sent = rootwrap::sys::socket::send_with(peer.stream().as_fd(), b"{}\0", &[], Some(root));
        assert_eq!(sent.unwrap_err().raw_os_error(), Some(1));
    });
}

#[test]
fn given_a_user_who_is_not_root_then_reload_is_refused_and_recorded() {
    let daemon = Daemon::start();
    let socket = daemon.socket();
    let reply = as_user(ALICE, || Peer::connect(&socket).call("io.rootwrap.Reload", &json!({})));
    assert_eq!(error(&reply), "PermissionDenied");
    assert_eq!(text(&daemon.journal().wait_for("denied", 1)[0], "ROOTWRAP_REASON"), "not-root");
}

#[test]
fn given_get_status_then_root_sees_all_users_and_others_themselves() {
    let daemon = Daemon::start();
    let socket = daemon.socket();
    let alices = as_user(ALICE, || {
        let mut peer = Peer::connect(&socket);
        peer.run(&["echo", "x"]);
        peer.call("io.rootwrap.GetStatus", &json!({}))
    });
    let uids = |status: &Value| -> Vec<u64> {
        let callers = status["parameters"]["callers"].as_array().unwrap();
        callers.iter().map(|caller| caller["uid"].as_u64().unwrap()).collect()
    };
    assert_eq!(uids(&alices), [u64::from(ALICE)]);
    assert_eq!(alices["parameters"]["counters"]["allowed"], 1);
    let roots = daemon.connect().call("io.rootwrap.GetStatus", &json!({}));
    assert_eq!(uids(&roots), [0, u64::from(ALICE)]);
    assert_eq!(roots["parameters"]["policyHash"].as_str().unwrap().len(), 64);
}

#[test]
fn given_a_connection_as_standard_output_then_what_the_command_writes_on_it_is_not_taken_for_the_callers() {
    let daemon = Daemon::start();
    let socket = daemon.socket();
    let run = json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["echo", "{}"], "stdoutFileDescriptor": 0}});
    let refused = as_user(ALICE, || {
        let mut peer = Peer::connect(&socket);
        let own = peer.stream().try_clone().unwrap();
        peer.send_with(&run, &[own.as_fd()]);
        drop(own);
        peer.reply()
    });
    let refused = refused.expect("a reply");
    // The command may have ended, and been replied to, before its words are read.
    assert!(
        error(&refused) == "NotPermitted" || refused["parameters"]["exitCode"] == 0,
        "{refused}"
    );
    let denied = daemon.journal().wait_for("denied", 1);
    assert_eq!(text(&denied[0], "ROOTWRAP_REASON"), "credentials");
}

#[test]
fn given_a_caller_whose_socket_has_a_telling_name_then_it_is_still_who_it_is() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
    let daemon = Daemon::start();
    let server = SocketAddrUnix::new(daemon.socket()).unwrap();
    for name in [&b"uid=0;pid=1\n"[..], b"\nROOTWRAP_CALLER_UID=0\n"] {
        as_user(BOB, || {
            let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
            rustix::net::bind(&socket, &SocketAddrUnix::new_abstract_name(name).unwrap()).unwrap();
            rustix::net::connect(&socket, &server).unwrap();
            let mut peer = Peer::on(socket.into());
            assert_eq!(error(&peer.run(&["echo"])), "NotPermitted");
        });
    }
    for denied in daemon.journal().wait_for("denied", 2) {
        assert_eq!(text(&denied, "ROOTWRAP_CALLER_UID"), BOB.to_string());
    }
}
