//! No command without its record; and the service lives on without a journal.

use serde_json::json;

use crate::support::{Daemon, Journal, Setup, error, text};

fn without_journal(settings: &str) -> Daemon {
    Daemon::with(Setup {
        settings: settings.into(),
        journal: false,
        ..Setup::default()
    })
}

fn refused_until_it_recovers(daemon: &Daemon) {
    for _ in 0..100 {
        if error(&daemon.connect().run(&["echo", "x"])).is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it does not recover");
}

#[test]
fn given_no_journal_then_nothing_runs_the_service_answers_and_it_recovers_by_itself() {
    let daemon = without_journal("");
    for _ in 0..3 {
        assert_eq!(error(&daemon.connect().run(&["echo", "x"])), "AuditUnavailable");
        assert_eq!(error(&daemon.connect().call("io.rootwrap.GetStatus", &json!({}))), "");
    }
    let journal = Journal::listen(&daemon.directory.path().join("journal"));
    refused_until_it_recovers(&daemon);
    let denied = journal.wait_for("denied", 3);
    assert!(denied.iter().all(|record| text(record, "ROOTWRAP_REASON") == "audit-unavailable"));
    assert_eq!(text(&journal.wait_for("allowed", 1)[0], "ROOTWRAP_DECISION"), "allowed");
    assert_eq!(journal.events("allowed").len(), 1, "what was refused is not recorded as allowed");
}

#[test]
fn given_a_journal_that_reads_nothing_then_nothing_runs_until_it_does() {
    let daemon = without_journal("audit_timeout = \"200ms\"\n");
    let (journal, socket) = Journal::deaf(&daemon.directory.path().join("journal"));
    let mut ran = 0;
    loop {
        match error(&daemon.connect().run(&["echo", "x"])).as_str() {
            "" => ran += 1,
            "AuditUnavailable" => break,
            other => panic!("{other}"),
        }
    }
    // Far more callers than could wait for it one after the other.
    let peers: Vec<_> = (0..200)
        .map(|_| {
            let mut peer = daemon.connect();
            peer.send(&json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["echo", "x"]}}));
            peer
        })
        .collect();
    assert_eq!(error(&daemon.connect().call("io.rootwrap.GetStatus", &json!({}))), "");
    for mut peer in peers {
        assert_eq!(error(&peer.reply().unwrap()), "AuditUnavailable");
    }
    let journal = journal.read_on(socket);
    refused_until_it_recovers(&daemon);
    journal.wait_for("allowed", ran + 1);
    assert_eq!(journal.events("allowed").len(), ran + 1);
}

#[test]
fn given_a_new_socket_in_the_journals_place_then_records_go_there() {
    let daemon = Daemon::start();
    assert_eq!(error(&daemon.connect().run(&["echo", "x"])), "");
    let path = daemon.directory.path().join("journal");
    let second = Journal::listen(&path);
    // The first one is still open: as long as it takes records the service is content with it.
    drop(second);
    let daemon = without_journal("");
    let path = daemon.directory.path().join("journal");
    let (_, socket) = Journal::deaf(&path);
    refused_until_it_recovers(&daemon);
    drop(socket);
    let journal = Journal::listen(&path);
    refused_until_it_recovers(&daemon);
    assert_eq!(journal.wait_for("allowed", 1).len(), 1);
}

#[test]
fn given_best_effort_then_commands_run_without_a_journal() {
    let daemon = without_journal("audit = \"best-effort\"\n");
    assert_eq!(error(&daemon.connect().run(&["echo", "x"])), "");
    let journal = Journal::listen(&daemon.directory.path().join("journal"));
    journal.wait_for("allowed", 1);
    journal.wait_for("started", 1);
}

#[test]
fn given_very_many_denials_then_the_rest_is_counted() {
    let daemon = Daemon::with_settings("denials_per_second = 5\n");
    let mut peer = daemon.connect();
    for _ in 0..200 {
        assert_eq!(error(&peer.run(&["rm"])), "NotPermitted");
    }
    let counted = |records: &[crate::support::Record]| -> u64 {
        records
            .iter()
            .map(|record| text(record, "ROOTWRAP_COUNT").parse().unwrap_or(1))
            .sum()
    };
    let mut denied = daemon.journal().wait_for("denied", 6);
    while counted(&denied) < 200 {
        denied = daemon.journal().wait_for("denied", denied.len() + 1);
    }
    assert_eq!(counted(&denied), 200);
    assert!(denied.len() < 100, "{}", denied.len());
}
