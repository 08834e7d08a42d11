//! Policies come and go.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Daemon, FILTERS, Setup, error, text};

const BROKEN: &str = "[callers]\nusers = [\"root\"]\n\n[[filter]]\nname = \"x\"\ncomand = \"ip\"\nargs = []\ncapabilities = []\n";

#[test]
fn given_a_broken_policy_at_start_then_everything_is_refused_until_a_reload() {
    let daemon = Daemon::with(Setup {
        filters: BROKEN.into(),
        ..Setup::default()
    });
    assert_eq!(error(&daemon.connect().run(&["echo", "secret"])), "PolicyUnavailable");
    for method in ["Explain", "ListFilters"] {
        let parameters = if method == "Explain" { json!({"argv": ["x"]}) } else { json!({}) };
        assert_eq!(
            error(&daemon.connect().call(&format!("io.rootwrap.{method}"), &parameters)),
            "PolicyUnavailable"
        );
    }
    let failed = daemon.journal().wait_for("reload-failed", 1);
    assert!(text(&failed[0], "ROOTWRAP_DIAGNOSTICS").contains("50-test.toml:6:"), "{failed:?}");
    assert_eq!(
        text(&daemon.journal().wait_for("denied", 1)[0], "ROOTWRAP_ARGV"),
        r#"["echo","***"]"#
    );
    let status = daemon.connect().call("io.rootwrap.GetStatus", &json!({}));
    assert!(
        status["parameters"]["policyHash"].is_null() && !status["parameters"]["policyErrors"][0].is_null(),
        "{status}"
    );

    let still = daemon.connect().call("io.rootwrap.Reload", &json!({}));
    assert_eq!(error(&still), "ReloadFailed");
    let diagnostics = still["parameters"]["diagnostics"].as_array().unwrap();
    assert!(
        diagnostics
            .iter()
            .any(|diagnostic| diagnostic.as_str().unwrap().contains("50-test.toml:6:")),
        "{still}"
    );
    daemon.set_filters(FILTERS);
    let reply = daemon.connect().call("io.rootwrap.Reload", &json!({}));
    assert_eq!(reply["parameters"]["filters"], 6, "{reply}");
    assert_eq!(error(&daemon.connect().run(&["echo"])), "");
}

#[test]
fn given_a_broken_new_policy_then_the_old_one_stays_in_force() {
    let daemon = Daemon::start();
    daemon.connect().run(&["echo"]);
    daemon.set_filters(BROKEN);
    assert_eq!(error(&daemon.connect().call("io.rootwrap.Reload", &json!({}))), "ReloadFailed");
    daemon.connect().run(&["echo"]);
    let allowed = daemon.journal().wait_for("allowed", 2);
    assert_eq!(text(&allowed[0], "ROOTWRAP_POLICY"), text(&allowed[1], "ROOTWRAP_POLICY"));
    let failed = daemon.journal().wait_for("reload-failed", 1);
    assert_eq!(
        text(&failed[0], "ROOTWRAP_POLICY"),
        text(&allowed[0], "ROOTWRAP_POLICY"),
        "the one that stays"
    );
}

#[test]
fn given_sighup_then_the_policy_is_loaded_again() {
    let daemon = Daemon::start();
    daemon.set_filters(&FILTERS.replace("command = \"echo\"", "command = \"true\""));
    daemon.signal(Signal::HUP);
    daemon.journal().wait_for("reloaded", 1);
    assert_eq!(error(&daemon.connect().run(&["echo"])), "NotPermitted");
    assert_eq!(error(&daemon.connect().run(&["true"])), "");
}

#[test]
fn given_reloads_while_commands_are_asked_for_then_each_is_judged_by_one_policy() {
    let daemon = Daemon::start();
    let asking = |argument: &str| {
        let mut peer = daemon.connect();
        (0..100).filter(|_| error(&peer.run(&["echo", argument])).is_empty()).count()
    };
    let ran = std::thread::scope(|scope| {
        let asking = [scope.spawn(|| asking("a")), scope.spawn(|| asking("b"))];
        for _ in 0..20 {
            assert_eq!(error(&daemon.connect().call("io.rootwrap.Reload", &json!({}))), "");
        }
        asking.map(|thread| thread.join().unwrap())
    });
    assert_eq!(ran, [100, 100]);
}

#[test]
fn given_new_settings_then_a_reload_puts_them_in_force_and_bad_ones_do_not_count() {
    let daemon = Daemon::start();
    let path = daemon.directory.path().join("rootwrap.toml");
    std::fs::write(&path, "capture_size = 4\n").unwrap();
    assert_eq!(error(&daemon.connect().call("io.rootwrap.Reload", &json!({}))), "");
    assert_eq!(daemon.connect().run(&["echo", "long"])["parameters"]["stdoutTruncated"], true);
    std::fs::write(&path, "capture_sise = 400\n").unwrap();
    assert_eq!(error(&daemon.connect().call("io.rootwrap.Reload", &json!({}))), "ReloadFailed");
    assert_eq!(daemon.connect().run(&["echo", "long"])["parameters"]["stdoutTruncated"], true);
}
