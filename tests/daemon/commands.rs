//! Run, Signal, Explain and their like, as a caller sees them.

use std::io::Read;
use std::os::fd::AsFd;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{ALICE, BOB, Daemon, Peer, Program, as_user, error, output, text};

#[test]
fn given_no_descriptors_then_output_is_captured_and_both_records_are_there() {
    let daemon = Daemon::start();
    let reply = daemon.connect().run(&["echo", "-n", "hello  world"]);
    assert_eq!(
        (output(&reply, "stdout"), output(&reply, "stderr")),
        ("hello  world".into(), String::new())
    );
    assert_eq!(reply["parameters"]["exitCode"], 0);
    assert_eq!(reply["parameters"]["stdoutTruncated"], false);
    let allowed = daemon.journal().wait_for("allowed", 1);
    let exited = daemon.journal().wait_for("exited", 1);
    assert_eq!(text(&allowed[0], "ROOTWRAP_ARGV"), r#"["echo","-n","hello  world"]"#);
    assert_eq!(text(&allowed[0], "ROOTWRAP_EXECUTABLE"), "/usr/bin/echo");
    assert_eq!(text(&exited[0], "ROOTWRAP_EXIT_CODE"), "0");
    for field in ["ROOTWRAP_REQUEST_ID", "ROOTWRAP_CALLER_PID", "ROOTWRAP_POLICY"] {
        assert!(!text(&allowed[0], field).is_empty(), "{field}");
        assert_eq!(text(&allowed[0], field), text(&exited[0], field), "{field}");
    }
    assert_eq!(text(&exited[0], "ROOTWRAP_REQUEST_ID"), reply["parameters"]["id"].as_str().unwrap());
    assert_eq!(text(&exited[0], "OBJECT_PID"), reply["parameters"]["pid"].to_string());
}

#[test]
fn given_descriptors_then_the_command_has_them_and_nothing_is_captured() {
    let daemon = Daemon::start();
    let (mut read, write) = std::io::pipe().unwrap();
    let mut peer = daemon.connect();
    let run = json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["echo", "out"], "stdoutFileDescriptor": 0}});
    peer.send_with(&run, &[write.as_fd()]);
    drop(write);
    let mut out = String::new();
    read.read_to_string(&mut out).unwrap();
    assert_eq!(out, "out\n");
    let reply = peer.reply().unwrap();
    assert_eq!(reply["parameters"]["exitCode"], 0);
    assert!(
        reply["parameters"]["stdout"].is_null() && reply["parameters"]["stderr"].is_string(),
        "{reply}"
    );
}

#[test]
fn given_data_for_standard_input_then_the_command_reads_it() {
    let daemon = Daemon::start();
    let reply = daemon
        .connect()
        .call("io.rootwrap.Run", &json!({"argv": ["cat"], "stdin": "line\n"}));
    assert_eq!(output(&reply, "stdout"), "line\n");
}

#[test]
fn given_much_output_then_the_limit_is_kept_and_the_command_ends() {
    let daemon = Daemon::with_settings("capture_size = 4096\n");
    let reply = daemon.connect().run(&["head", "-c", "20000000", "/dev/zero"]);
    assert_eq!(output(&reply, "stdout").len(), 4096);
    assert_eq!(reply["parameters"]["stdoutTruncated"], true);
    assert_eq!(reply["parameters"]["exitCode"], 0);
}

#[test]
fn given_the_most_arguments_then_the_record_holds_them_all() {
    let daemon = Daemon::start();
    let argv: Vec<String> = std::iter::once("echo".to_owned())
        .chain((1..4096).map(|i| format!("{i}-{}", "x".repeat(40))))
        .collect();
    let reply = daemon.connect().call("io.rootwrap.Run", &json!({"argv": argv}));
    assert_eq!(error(&reply), "");
    let allowed = daemon.journal().wait_for("allowed", 1);
    let recorded: Vec<String> = serde_json::from_slice(&allowed[0]["ROOTWRAP_ARGV"]).unwrap();
    assert_eq!(recorded, argv);
    assert_eq!(text(&allowed[0], "ROOTWRAP_ARGC"), "4096");
}

#[test]
fn given_a_command_that_no_filter_allows_then_it_is_refused_and_recorded_with_the_reason() {
    let daemon = Daemon::start();
    let reply = daemon.connect().run(&["rm", "-rf", "/\nROOTWRAP_DECISION=allowed"]);
    assert_eq!(
        (error(&reply), &reply["parameters"]["reason"]),
        ("NotPermitted".into(), &json!("no-filter"))
    );
    let denied = daemon.journal().wait_for("denied", 1);
    assert_eq!(text(&denied[0], "ROOTWRAP_DECISION"), "denied");
    assert_eq!(text(&denied[0], "ROOTWRAP_REASON"), "no-filter");
    assert!(daemon.journal().events("allowed").is_empty());
}

#[test]
fn given_a_user_whom_no_filter_names_then_refused_and_alice_is_not() {
    let daemon = Daemon::start();
    let socket = daemon.socket();
    let bobs = as_user(BOB, || Peer::connect(&socket).run(&["echo", "x"]));
    assert_eq!(error(&bobs), "NotPermitted");
    let alices = as_user(ALICE, || Peer::connect(&socket).run(&["echo", "x"]));
    assert_eq!(output(&alices, "stdout"), "x\n");
    assert_eq!(
        text(&daemon.journal().wait_for("allowed", 1)[0], "ROOTWRAP_CALLER_UID"),
        ALICE.to_string()
    );
}

#[test]
fn given_a_time_limit_then_the_command_is_ended_and_the_caller_told() {
    let daemon = Daemon::start();
    let before = daemon.settled();
    let reply = daemon
        .connect()
        .call("io.rootwrap.Run", &json!({"argv": ["sleep", "1000"], "timeoutUSec": 20000}));
    assert_eq!(
        (error(&reply), &reply["parameters"]["timeoutUSec"]),
        ("TimedOut".into(), &json!(20000))
    );
    let exited = daemon.journal().wait_for("exited", 3);
    assert_eq!(text(&exited[2], "ROOTWRAP_REASON"), "timed-out");
    assert_eq!(text(&exited[2], "ROOTWRAP_EXIT_SIGNAL"), "15");
    daemon.has_again(before);
}

#[test]
fn given_a_caller_that_goes_away_then_its_command_is_ended_and_recorded() {
    let daemon = Daemon::start();
    let before = daemon.settled();
    let mut peer = daemon.connect();
    peer.begin(&json!({"argv": ["sleep", "1000"]}));
    drop(peer);
    let exited = daemon.journal().wait_for("exited", 3);
    assert_eq!(text(&exited[2], "ROOTWRAP_REASON"), "caller-gone");
    daemon.has_again(before);
}

#[test]
fn given_a_caller_with_a_full_pipeline_that_goes_away_then_its_command_is_ended() {
    let daemon = Daemon::start();
    let before = daemon.settled();
    let mut peer = daemon.connect();
    peer.begin(&json!({"argv": ["sleep", "1000"]}));
    for _ in 0..100 {
        peer.send(&json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["echo", "never"]}}));
    }
    drop(peer);
    assert_eq!(text(&daemon.journal().wait_for("exited", 3)[2], "ROOTWRAP_REASON"), "caller-gone");
    daemon.has_again(before);
    assert_eq!(daemon.journal().events("allowed").len(), 3, "nothing of a caller that is gone runs");
}

#[test]
fn given_signals_on_the_same_connection_then_they_take_effect_while_the_command_runs() {
    let daemon = Daemon::start();
    let mut peer = daemon.connect();
    for oneway in [true, false] {
        let (id, _) = peer.begin(&json!({"argv": ["sleep", "1000"]}));
        peer.send(&json!({"method": "io.rootwrap.Signal", "parameters": {"id": id, "signal": 15}, "oneway": oneway}));
        let exited = peer.reply().unwrap();
        assert_eq!(exited["parameters"]["exitSignal"], 15, "{exited}");
        if !oneway {
            assert_eq!(error(&peer.reply().unwrap()), "", "replies come in the order of the calls");
        }
    }
}

#[test]
fn given_a_signal_from_another_connection_then_only_the_same_process_of_the_same_user_may() {
    let daemon = Daemon::start();
    let mut peer = daemon.connect();
    let (id, _) = peer.begin(&json!({"argv": ["sleep", "1000"]}));
    let signal = json!({"id": id, "signal": 9});
    let socket = daemon.socket();
    for uid in [ALICE, BOB] {
        let refused = as_user(uid, || Peer::connect(&socket).call("io.rootwrap.Signal", &signal));
        assert_eq!(error(&refused), "NoSuchCommand");
    }
    assert_eq!(
        text(&daemon.journal().wait_for("denied", 2)[0], "ROOTWRAP_REASON"),
        "foreign-command"
    );
    assert_eq!(
        error(&daemon.connect().call("io.rootwrap.Signal", &json!({"id": "0", "signal": 9}))),
        "NoSuchCommand"
    );
    assert_eq!(error(&daemon.connect().call("io.rootwrap.Signal", &signal)), "");
    assert_eq!(peer.reply().unwrap()["parameters"]["exitSignal"], 9);
}

#[test]
fn given_a_signal_that_is_none_then_refused() {
    let daemon = Daemon::start();
    for signal in [0, -1, 65, 1 << 31] {
        let reply = daemon.connect().call("io.rootwrap.Signal", &json!({"id": "x", "signal": signal}));
        assert_eq!(error(&reply), "InvalidParameter");
    }
}

#[test]
fn given_a_filter_for_a_signal_then_the_process_gets_it_and_another_program_does_not() {
    let daemon = Daemon::start();
    let mut target = Program::start("/usr/bin/sleep", &["1000"]);
    let other = Program::start("/usr/bin/tail", &["-f", "/dev/null"]);
    let refused = daemon.connect().run(&["kill", "-USR1", &other.0.id().to_string()]);
    let mut sent = daemon.connect().run(&["kill", "-USR1", &target.0.id().to_string()]);
    for _ in 0..1000 {
        // Until its exec has happened it is this test's program.
        if error(&sent).is_empty() {
            break;
        }
        sent = daemon.connect().run(&["kill", "-USR1", &target.0.id().to_string()]);
    }
    assert_eq!((error(&refused), error(&sent)), ("NotPermitted".into(), String::new()), "{sent}");
    let status = target.0.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::USR1.as_raw()));
}

#[test]
fn given_explain_and_list_then_they_tell_the_callers_own_and_run_nothing() {
    let daemon = Daemon::start();
    let socket = daemon.socket();
    let mut peer = daemon.connect();
    let allowed = peer.call("io.rootwrap.Explain", &json!({"argv": ["echo", "x"]}));
    assert_eq!(allowed["parameters"]["allowed"], true);
    assert_eq!(allowed["parameters"]["executable"], "/usr/bin/echo");
    let denied = peer.call("io.rootwrap.Explain", &json!({"argv": ["sleep", "x"]}));
    assert_eq!(denied["parameters"]["tried"][0]["filter"], "sleep");
    assert_eq!(
        peer.call("io.rootwrap.ListFilters", &json!({}))["parameters"]["filters"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    let bobs = as_user(BOB, || Peer::connect(&socket).call("io.rootwrap.ListFilters", &json!({})));
    assert_eq!(bobs["parameters"]["filters"], json!([]));
    let bobs = as_user(BOB, || {
        Peer::connect(&socket).call("io.rootwrap.Explain", &json!({"argv": ["echo", "x"]}))
    });
    assert_eq!(
        (&bobs["parameters"]["allowed"], &bobs["parameters"]["tried"]),
        (&json!(false), &json!([]))
    );
    assert!(daemon.journal().events("allowed").is_empty());
}

#[test]
fn given_a_missing_executable_then_the_next_candidate_runs_and_without_one_the_caller_is_told() {
    let filters = r#"
        [callers]
        users = ["root"]
        [[filter]]
        name = "second"
        command = ["/usr/bin/no-such-program", "/usr/bin/echo"]
        args = []
        capabilities = []
        [[filter]]
        name = "none"
        command = "/usr/bin/no-such-thing"
        args = []
        capabilities = []
    "#;
    let daemon = Daemon::with(crate::support::Setup {
        filters: filters.into(),
        ..Default::default()
    });
    assert_eq!(output(&daemon.connect().run(&["echo"]), "stdout"), "\n");
    let reply = daemon.connect().run(&["/usr/bin/no-such-thing"]);
    assert_eq!(error(&reply), "NoSuchExecutable");
    assert_eq!(
        text(&daemon.journal().wait_for("denied", 1)[0], "ROOTWRAP_REASON"),
        "no-such-executable"
    );
}

#[test]
fn given_a_pinned_digest_then_only_that_file_runs() {
    let pinned = |digest: &str| {
        format!(
            "[callers]\nusers = [\"root\"]\n[[filter]]\nname = \"pinned\"\ncommand = \"/usr/bin/echo\"\nargs = []\ncapabilities = []\nsha256 = \
             \"{digest}\"\n"
        )
    };
    let digest = std::process::Command::new("sha256sum").arg("/usr/bin/echo").output().unwrap();
    let digest = String::from_utf8(digest.stdout).unwrap();
    let daemon = Daemon::with(crate::support::Setup {
        filters: pinned(&digest[..64]),
        ..Default::default()
    });
    assert_eq!(error(&daemon.connect().run(&["/usr/bin/echo"])), "");
    daemon.set_filters(&pinned(&"0".repeat(64)));
    assert_eq!(error(&daemon.connect().call("io.rootwrap.Reload", &json!({}))), "");
    let reply = daemon.connect().run(&["/usr/bin/echo"]);
    assert_eq!(reply["parameters"]["reason"], "digest-mismatch", "{reply}");
}

#[test]
fn given_an_inner_command_then_its_own_digest_and_limit_hold() {
    let filters = |digest: &str| {
        format!(
            r#"
            [callers]
            users = ["root"]
            [[filter]]
            name = "nice"
            command = "/usr/bin/nice"
            args = [{{ command = ["sleep", "sleep-bad"] }}]
            capabilities = []
            [[filter]]
            name = "sleep"
            command = "/usr/bin/sleep"
            args = [{{ int = [0, 1000] }}]
            capabilities = []
            sha256 = "{digest}"
            max_concurrent = 1
            inner_only = true
            [[filter]]
            name = "sleep-bad"
            command = "/usr/bin/sleep"
            args = ["--", {{ int = [0, 1000] }}]
            capabilities = []
            sha256 = "{}"
            inner_only = true
            "#,
            "0".repeat(64)
        )
    };
    let digest = std::process::Command::new("sha256sum").arg("/usr/bin/sleep").output().unwrap();
    let daemon = Daemon::with(crate::support::Setup {
        filters: filters(&String::from_utf8(digest.stdout).unwrap()[..64]),
        ..Default::default()
    });
    assert_eq!(error(&daemon.connect().run(&["nice", "sleep", "0"])), "");
    let reply = daemon.connect().run(&["nice", "sleep", "--", "0"]);
    assert_eq!(reply["parameters"]["reason"], "digest-mismatch", "{reply}");
    let mut first = daemon.connect();
    first.begin(&json!({"argv": ["nice", "sleep", "1000"]}));
    let second = daemon.connect().run(&["nice", "sleep", "0"]);
    assert_eq!((error(&second), &second["parameters"]["what"]), ("Busy".into(), &json!("filter")));
}
