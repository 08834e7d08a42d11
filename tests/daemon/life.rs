//! How the service ends.

use std::os::unix::net::UnixStream;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Daemon, error, text};

#[test]
fn given_sigterm_then_running_commands_end_by_themselves_and_nothing_new_is_accepted() {
    let mut daemon = Daemon::start();
    let mut running = daemon.connect();
    let (id, _) = running.begin(&json!({"argv": ["sleep", "1000"]}));
    let mut idle = daemon.connect();
    assert_eq!(error(&idle.run(&["echo"])), "");
    running.send(&json!({"method": "io.rootwrap.Run", "parameters": {"argv": ["echo", "late"]}}));
    daemon.signal(Signal::TERM);
    assert_eq!(idle.reply(), None, "who waits for nothing is let go");
    assert!(UnixStream::connect(daemon.socket()).is_ok(), "new callers wait in the queue");
    running.send(&json!({"method": "io.rootwrap.Signal", "parameters": {"id": id, "signal": 2}, "oneway": true}));
    assert_eq!(running.reply().unwrap()["parameters"]["exitSignal"], 2);
    let late = running.reply().unwrap();
    assert_eq!((error(&late), &late["parameters"]["what"]), ("Busy".into(), &json!("stopping")));
    assert_eq!(running.reply(), None);
    assert!(daemon.wait().success());
    assert_eq!(text(&daemon.journal().wait_for("stopped", 1)[0], "ROOTWRAP_REASON"), "signal");
}

#[test]
fn given_commands_that_outlast_drain_timeout_then_they_are_ended_and_their_callers_told() {
    let mut daemon = Daemon::with_settings("drain_timeout = \"100ms\"\n");
    let mut running = daemon.connect();
    running.begin(&json!({"argv": ["sleep", "1000"]}));
    daemon.signal(Signal::TERM);
    assert_eq!(running.reply().unwrap()["parameters"]["exitSignal"], 15);
    assert!(daemon.wait().success());
    assert_eq!(text(&daemon.journal().wait_for("exited", 1)[0], "ROOTWRAP_REASON"), "stopping");
}

#[test]
fn given_a_second_sigterm_then_the_wait_is_over() {
    let mut daemon = Daemon::start();
    let mut running = daemon.connect();
    running.begin(&json!({"argv": ["sleep", "1000"]}));
    let mut idle = daemon.connect();
    idle.run(&["echo"]);
    daemon.signal(Signal::TERM);
    assert_eq!(idle.reply(), None);
    daemon.signal(Signal::TERM);
    assert_eq!(running.reply().unwrap()["parameters"]["exitSignal"], 15);
    assert!(daemon.wait().success());
}

fn launcher(daemon: &Daemon) -> rustix::process::Pid {
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", daemon.pid())).unwrap();
    let is_launcher = |pid: &&str| {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        // Its parked children run the same program; it is the one that was executed first.
        exe.ends_with("rootwrap-launcher")
    };
    let launcher = children.split_whitespace().find(is_launcher).unwrap();
    rustix::process::Pid::from_raw(launcher.parse().unwrap()).unwrap()
}

#[test]
fn given_a_launcher_that_is_stopped_then_what_runs_can_be_ended_and_the_service_ends_all_the_same() {
    let mut daemon = Daemon::start();
    let mut running = daemon.connect();
    let (id, _) = running.begin(&json!({"argv": ["sleep", "1000"]}));
    rustix::process::kill_process(launcher(&daemon), Signal::STOP).unwrap();
    let killed = daemon.connect().call("io.rootwrap.Signal", &json!({"id": id, "signal": 9}));
    assert_eq!(error(&killed), "");
    assert_eq!(running.reply().unwrap()["parameters"]["exitSignal"], 9);
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success());
}

#[test]
fn given_a_launcher_that_is_killed_then_running_commands_end_by_themselves_and_the_service_fails() {
    let mut daemon = Daemon::start();
    let mut running = daemon.connect();
    let (id, _) = running.begin(&json!({"argv": ["sleep", "1000"]}));
    let mut idle = daemon.connect();
    assert_eq!(error(&idle.run(&["echo"])), "");
    let launcher = launcher(&daemon);
    rustix::process::kill_process(launcher, Signal::KILL).unwrap();
    assert_eq!(idle.reply(), None);
    running.send(&json!({"method": "io.rootwrap.Signal", "parameters": {"id": id, "signal": 15}, "oneway": true}));
    assert_eq!(running.reply().unwrap()["parameters"]["exitSignal"], 15);
    assert_eq!(daemon.wait().code(), Some(1));
    assert_eq!(
        text(&daemon.journal().wait_for("stopped", 1)[0], "ROOTWRAP_REASON"),
        "launcher-gone"
    );
}
