//! `rootwrapctl explain` over files.

use serde_json::json;

use crate::workspace::{Run, Workspace, ctl};

const POLICY: &str = r#"
[callers]
users = [1234]

[[filter]]
name = "set-mtu"
command = "/usr/bin/true"
args = ["link", "set", "dev", { interface = true }, "mtu", { int = [68, 65535] }]
run_as = "nobody"
capabilities = ["net_admin", "net_raw"]

[[filter]]
name = "link-up"
command = "/usr/bin/true"
args = ["link", "set", "dev", { interface = true }, "up"]
env_allow = { LC_ALL = "C" }
run_as = "nobody"
capabilities = []

[[filter]]
name = "by-group-and-unit"
command = "/usr/bin/false"
args = []
run_as = "nobody"
capabilities = []
callers = { groups = [4242], units = ["agent.service"] }

[[filter]]
name = "log"
command = "/usr/bin/cat"
args = [{ path_under = "/var/log/app" }]
run_as = "nobody"
capabilities = []

[[filter]]
name = "to-come"
command = "/usr/bin/not-installed"
args = []
run_as = "nobody"
capabilities = []
"#;

fn explain(options: &[&str], command: &str) -> Run {
    let workspace = Workspace::with(POLICY);
    let mut all = options.to_vec();
    all.push("--");
    all.extend(command.split(' '));
    workspace.ctl("explain", &all)
}

#[test]
fn given_an_allowed_command_then_0_filter_user_and_capabilities() {
    let run = explain(&["--user", "1234"], "true link set dev v0 mtu 1400").expect(0);
    let run = run.says("allowed by set-mtu /").says("filters.d/50-test.toml:6\n");
    run.says("  run as        nobody\n").says("  capabilities  net_admin net_raw\n");
}

#[test]
fn given_a_command_that_is_not_installed_then_allowed_and_said() {
    explain(&["--user", "1234"], "not-installed")
        .expect(0)
        .says("  executes      nothing: the command is not installed\n");
}

#[test]
fn given_arguments_that_do_not_fit_then_1_and_for_each_filter_the_first_one_marked() {
    let run = explain(&["--user", "1234"], "true link set dev v0 mtu 20").expect(1);
    assert!(
        run.stdout.starts_with("denied: no filter for `true` allows you these arguments"),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains("rootwrapctl explain"), "{}", run.stdout);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("set-mtu /"))
        .expect("names the filter");
    assert_eq!(lines[at + 1], "  true link set dev v0 mtu 20");
    assert!(
        lines[at + 2].starts_with("                           ^^ expected "),
        "{}",
        run.stdout
    );
    assert!(lines[at + 2].contains("68") && lines[at + 2].contains("65535"), "{}", run.stdout);
    let at = lines
        .iter()
        .position(|line| line.starts_with("link-up /"))
        .expect("names the other filter too");
    assert!(lines[at + 2].starts_with("                       ^^^ expected "), "{}", run.stdout);
}

#[test]
fn given_too_few_arguments_then_the_mark_stands_behind_the_last() {
    explain(&["--user", "1234"], "true link set dev v0 mtu")
        .expect(1)
        .says("\n                           ^ expected ");
}

#[test]
fn given_another_user_then_the_filters_of_others_are_not_shown() {
    let run = explain(&["--user", "1235"], "true link set dev v0 mtu 1400").expect(1);
    assert!(!run.stdout.contains("set-mtu"), "{}", run.stdout);
}

#[test]
fn given_group_and_unit_then_both_are_needed() {
    explain(&["--user", "1235", "--group", "4242", "--unit", "agent.service"], "false")
        .expect(0)
        .says("by-group-and-unit");
    explain(&["--user", "1235", "--group", "4242", "--unit", "other.service"], "false").expect(1);
    explain(&["--user", "1235", "--unit", "agent.service"], "false").expect(1);
}

#[test]
fn given_a_variable_then_it_is_judged() {
    explain(&["--user", "1234", "--env", "LC_ALL=C"], "true link set dev v0 up").expect(0);
    explain(&["--user", "1234", "--env", "LC_ALL=de"], "true link set dev v0 up")
        .expect(1)
        .says("LC_ALL");
    explain(&["--user", "1234", "--env", "LD_PRELOAD=/x"], "true link set dev v0 up")
        .expect(1)
        .says("LD_PRELOAD");
    explain(&["--user", "1234", "--env", "=x"], "true link set dev v0 up").expect(2);
}

#[test]
fn given_a_filter_by_name_then_only_it_may_allow() {
    explain(&["--user", "1234", "--filter", "set-mtu"], "true link set dev v0 mtu 1400").expect(0);
    explain(&["--user", "1234", "--filter", "link-up"], "true link set dev v0 mtu 1400").expect(1);
    explain(&["--user", "1234", "--filter", "no-such"], "true link set dev v0 mtu 1400").expect(1);
}

#[test]
fn given_a_path_then_what_was_taken_for_granted_is_said() {
    explain(&["--user", "1234"], "cat /var/log/app/x")
        .expect(0)
        .says("taken for granted: /var/log/app/x stays below /var/log/app\n");
    let run = explain(&["--user", "1234"], "cat /var/log/app-evil/x").expect(1);
    assert!(!run.stdout.contains("granted"), "{}", run.stdout);
}

#[test]
fn given_a_directory_then_its_filters_are_read() {
    let workspace = Workspace::new();
    let other = Workspace::with(POLICY);
    let directory = other.path().join("filters.d");
    let directory = directory.to_str().unwrap();
    workspace
        .ctl(
            "explain",
            &[
                "--policy", directory, "--user", "1234", "--", "true", "link", "set", "dev", "v0", "up",
            ],
        )
        .expect(0);
    workspace
        .ctl("explain", &["--user", "1234", "--", "true", "link", "set", "dev", "v0", "up"])
        .expect(1);
    let run = workspace.ctl("explain", &["--policy", "/nonexistent", "--", "true"]).expect(2);
    assert!(run.stderr.contains("/nonexistent"), "{}", run.stderr);
}

#[test]
fn given_a_void_policy_then_2_with_its_errors() {
    let workspace = Workspace::with("x = 1\n");
    let run = workspace.ctl("explain", &["--offline", "--", "true"]).expect(2);
    assert!(run.stderr.contains("50-test.toml:1:1: error["), "{}", run.stderr);
    assert_eq!(run.stdout, "");
}

#[test]
fn given_no_service_then_2_and_what_to_do() {
    let run = ctl(["explain", "--", "true"]).expect(2);
    assert!(
        run.stderr.contains("/nonexistent/rootwrap.sock") && run.stderr.contains("--offline"),
        "{}",
        run.stderr
    );
}

#[test]
fn given_no_service_then_status_is_4_and_reload_2_and_the_cause_is_said_once() {
    ctl(["status"]).expect(4).says("no socket");
    assert_eq!(ctl(["status", "--json"]).expect(4).json(), json!({ "state": "not-installed" }));
    let run = ctl(["reload"]).expect(2);
    assert_eq!(run.stderr.matches("No such file").count(), 1, "{}", run.stderr);
}

#[test]
fn given_an_unknown_user_then_2() {
    let run = explain(&["--user", "no-such-user-here"], "true").expect(2);
    assert!(run.stderr.contains("no-such-user-here"), "{}", run.stderr);
}

#[test]
fn given_json_then_the_documented_members_and_the_same_status() {
    let allowed = explain(&["--user", "1234", "--json"], "true link set dev v0 mtu 1400")
        .expect(0)
        .json();
    assert_eq!((&allowed["allowed"], &allowed["filter"]), (&json!(true), &json!("set-mtu")));
    assert_eq!(allowed["executable"], json!("/usr/bin/true"));
    assert_eq!(
        allowed["privileges"],
        json!({ "runAs": "nobody", "capabilities": ["net_admin", "net_raw"] })
    );
    assert!(allowed["tried"][0]["source"].as_str().unwrap().ends_with("50-test.toml:6"));
    let members: Vec<_> = allowed.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["allowed", "assumed", "executable", "filter", "privileges", "tried"]);

    let denied = explain(&["--user", "1234", "--json"], "true link set dev v0 mtu 20")
        .expect(1)
        .json();
    assert_eq!(
        (&denied["allowed"], &denied["assumed"], &denied["reason"]),
        (&json!(false), &json!([]), &json!("arguments-mismatch"))
    );
    let first = &denied["tried"][0];
    assert_eq!((&first["filter"], &first["mismatch"]["argument"]), (&json!("set-mtu"), &json!(6)));
    assert!(first["mismatch"]["expected"].as_str().unwrap().contains("65535"), "{first}");
    let members: Vec<_> = denied.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["allowed", "assumed", "message", "reason", "tried"]);
}
