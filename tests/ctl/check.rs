//! `rootwrapctl check`.

use serde_json::json;

use crate::workspace::{Workspace, ctl};

const GOOD: &str = r#"
[callers]
users = ["root"]

[[filter]]
name = "set-mtu"
command = "/usr/bin/true"
args = ["mtu", { int = [68, 65535] }]
run_as = "nobody"
capabilities = ["net_admin"]

[[test]]
argv = ["true", "mtu", "1400"]
expect = "allow"
filter = "set-mtu"
capabilities = ["net_admin"]

[[test]]
argv = ["true", "mtu", "20"]
expect = "deny"
"#;

#[test]
fn given_a_good_policy_then_0_and_a_sum() {
    let run = Workspace::with(GOOD).ctl("check", &[]).expect(0);
    assert_eq!(run.stdout, "ok: 1 filter, 0 errors, 0 warnings; 2 tests, 0 failed\n");
    assert_eq!(run.stderr, "");
}

#[test]
fn given_no_filters_at_all_then_it_is_a_valid_policy() {
    Workspace::new().ctl("check", &[]).expect(0).says("0 filters");
}

#[test]
fn given_errors_in_two_files_and_the_settings_then_all_are_shown_in_one_run_with_line_and_caret() {
    let workspace = Workspace::with(
        "[callers]\nusers = [\"root\"]\n\n[[filter]]\nname = \"a\"\ncommand = \"/usr/bin/true\"\nargs = []\ncapabilites = []\n",
    );
    workspace.filters("60-other.toml", "[[filter]]\nname = \n");
    workspace.settings("audti = \"required\"\n");
    let files = ["50-test.toml", "60-other.toml"].map(|name| workspace.path().join("filters.d").join(name));
    let run = workspace
        .ctl("check", &files.each_ref().map(|file| file.to_str().unwrap()))
        .expect(1);
    for part in [
        "50-test.toml:8:1: error[unknown-key]: ",
        "capabilites = []\n",
        "^^^^^^^^^^^",
        "did you mean",
        "60-other.toml:2:",
        "rootwrap.toml:2:1: error[",
        "not ok: ",
    ] {
        assert!(run.stdout.contains(part), "no {part:?} in:\n{}", run.stdout);
    }
}

#[test]
fn given_a_test_that_does_not_come_out_then_1_and_the_reason() {
    let text = GOOD.replace("\"20\"]\nexpect = \"deny\"", "\"20\"]\nexpect = \"allow\"");
    let run = Workspace::with(&text).ctl("check", &[]).expect(1);
    let run = run
        .says("50-test.toml:19: test failed: ")
        .says("true mtu 20")
        .says("2 tests, 1 failed");
    assert!(run.stdout.starts_with('/') && run.stdout.contains("not ok"), "{}", run.stdout);
    // Only the service would answer that, for another user and perhaps without this file.
    assert!(!run.stdout.contains("rootwrapctl explain"), "{}", run.stdout);
}

#[test]
fn given_a_test_that_names_another_filter_or_other_capabilities_then_it_fails() {
    for (from, to) in [
        ("filter = \"set-mtu\"", "filter = \"other\""),
        (
            "[\"net_admin\"]\n\n[[test]]\nargv = [\"true\", \"mtu\", \"20\"",
            "[\"net_raw\"]\n\n[[test]]\nargv = [\"true\", \"mtu\", \"20\"",
        ),
    ] {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD);
        Workspace::with(&text).ctl("check", &[]).expect(1).says("test failed");
    }
}

#[test]
fn given_named_files_then_only_they_are_checked() {
    let workspace = Workspace::with(GOOD);
    let broken = workspace.filters("60-broken.toml", "x = 1\n");
    let good = workspace.path().join("filters.d/50-test.toml");
    workspace.ctl("check", &[good.to_str().unwrap()]).expect(0).says("1 filter,");
    workspace
        .ctl("check", &[broken.to_str().unwrap()])
        .expect(1)
        .says("60-broken.toml:1:1: error[");
}

#[test]
fn given_a_settings_file_by_name_then_it_is_checked_as_one() {
    let workspace = Workspace::new();
    let file = workspace.path().join("review").join("rootwrap.toml");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "idle_timeout = 5\n").unwrap();
    workspace.ctl("check", &[file.to_str().unwrap()]).expect(0);
    std::fs::write(&file, "idle_timeout = \"soon\"\n").unwrap();
    workspace.ctl("check", &[file.to_str().unwrap()]).expect(1).says("rootwrap.toml:1:");
}

#[test]
fn given_a_file_that_is_not_there_then_2_and_its_name() {
    let run = Workspace::new().ctl("check", &["/nonexistent/50-x.toml"]).expect(2);
    assert_eq!(run.stdout, "");
    assert!(
        run.stderr.starts_with("rootwrapctl: /nonexistent/50-x.toml: No such file"),
        "{}",
        run.stderr
    );
}

#[test]
fn given_wrong_usage_then_2() {
    ctl(["check", "--no-such-option"]).expect(2);
    ctl(["no-such-verb"]).expect(2);
    ctl([]).expect(2);
}

#[test]
fn given_files_that_others_may_write_then_error_unless_it_is_asked_not_to_look() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::with(GOOD);
    let file = workspace.path().join("filters.d/50-test.toml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    workspace.ctl("check", &[file.to_str().unwrap()]).expect(0);
    let config = workspace.config();
    let run = ctl(["check", "--config", config.to_str().unwrap(), file.to_str().unwrap()])
        .expect(1)
        .says("error[unsafe-owner]: ");
    let mut paragraphs: Vec<&str> = run.stdout.split("\n\n").collect();
    paragraphs.dedup();
    assert_eq!(paragraphs.join("\n\n"), run.stdout, "nothing is said twice");
}

#[test]
fn given_json_then_the_documented_members_and_the_same_status() {
    let workspace = Workspace::with(GOOD);
    let good = workspace.ctl("check", &["--json"]).expect(0).json();
    assert_eq!(good["ok"], json!(true));
    assert_eq!(good["filters"], json!(1));
    assert_eq!(good["policy"].as_str().map(str::len), Some(64));
    assert_eq!(good["diagnostics"], json!([]));
    assert_eq!(good["tests"][0]["argv"], json!(["true", "mtu", "1400"]));
    assert_eq!(good["tests"][0]["passed"], json!(true));
    assert_eq!(good["tests"][0]["failure"], json!(null));
    assert!(good["tests"][0]["source"].as_str().unwrap().ends_with("50-test.toml:13"));

    workspace.filters("60-x.toml", "[callers]\nuserz = [\"root\"]\n");
    let bad = workspace.ctl("check", &["--json"]).expect(1).json();
    assert_eq!(
        (&bad["ok"], &bad["policy"], &bad["filters"], &bad["tests"]),
        (&json!(false), &json!(null), &json!(null), &json!([]))
    );
    let first = &bad["diagnostics"][0];
    assert_eq!(
        (&first["severity"], &first["line"], &first["column"], &first["length"]),
        (&json!("error"), &json!(2), &json!(1), &json!(5))
    );
    assert_eq!(first["source_line"], json!("userz = [\"root\"]"));
    assert!(first["hint"].as_str().unwrap().contains("users"), "{first}");
    let members: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        members,
        [
            "code",
            "column",
            "file",
            "hint",
            "length",
            "line",
            "message",
            "severity",
            "source_line"
        ]
    );
}

#[test]
fn given_a_pipe_then_no_colours() {
    let run = Workspace::with("x = 1\n").ctl("check", &[]).expect(1);
    assert!(!run.stdout.contains('\x1b'), "{}", run.stdout);
}

#[test]
fn given_filters_that_give_more_than_it_seems_then_warnings_with_the_way_to_root_and_still_0() {
    let as_root = GOOD.replace("run_as = \"nobody\"\n", "");
    let run = Workspace::with(&as_root).ctl("check", &[]).expect(0);
    run.says("warning[runs-as-root]: `set-mtu` runs as root")
        .says("run_as = \"rootwrap\"")
        .says("ok: 1 filter, 0 errors, 1 warning; ");
    let module = as_root.replace("[\"net_admin\"]", "[\"net_admin\", \"sys_module\"]");
    let run = Workspace::with(&module).ctl("check", &[]).expect(0);
    run.says(
        "50-test.toml:6:8: warning[root-equivalent]: `set-mtu` gives what is as good as root: sys_module (loads code into the kernel)\n",
    )
    .says(" 6 | name = \"set-mtu\"\n   |        ^^^^^^^^^\n")
    .says("ok: 1 filter, 0 errors, 1 warning; ");
    let nft = GOOD.replace("/usr/bin/true", "/usr/bin/sh").replace("[\"true\"", "[\"sh\"");
    Workspace::with(&nft)
        .ctl("check", &[])
        .says("warning[input-not-judged]: sh may do what comes in on standard input");
    let without = nft.replace("run_as = ", "stdin = \"null\"\nrun_as = ");
    assert!(!Workspace::with(&without).ctl("check", &[]).stdout.contains("input-not-judged"));
}
