//! What people read when a file is wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod config_common;

use config_common::{CALLERS, filter, load_text, rendered, said};

/// Errors of a filter with these lines.
fn of_filter(more: &str) -> Vec<String> {
    let result = load_text(&(CALLERS.to_owned() + &filter("a", more)));
    assert!(result.is_err(), "{more}");
    codes(said(&result))
}

/// Errors of a filter with these elements.
fn of_args(args: &str) -> Vec<String> {
    let text = format!("{CALLERS}[[filter]]\nname = \"a\"\ncommand = \"/bin/sh\"\nargs = {args}\ncapabilities = []\n");
    let result = load_text(&text);
    assert!(result.is_err(), "{args}");
    codes(said(&result))
}

fn codes(said: Vec<String>) -> Vec<String> {
    said.iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

#[test]
fn each_wrong_key_of_a_filter_has_its_code() {
    for (more, code) in [
        ("umsk = 1", "unknown-key"),
        ("umask = 22", "bad-umask"),
        ("umask = \"0999\"", "bad-umask"),
        ("umask = \"1777\"", "bad-umask"),
        ("nice = 20", "out-of-range"),
        ("oom_score = -1001", "out-of-range"),
        ("nice = \"5\"", "wrong-type"),
        ("timeout = \"soon\"", "bad-time"),
        ("timeout = 0", "out-of-range"),
        ("timeout = -5", "bad-time"),
        ("kill_after = true", "wrong-type"),
        ("on_disconnect = \"detach\"", "detach-needs-caller"),
        ("on_disconnect = \"detach\"\nplacement = \"own\"", "detach-needs-caller"),
        ("on_disconnect = \"ignore\"", "unknown-value"),
        ("stdin = \"tty\"", "unknown-value"),
        ("cwd = \"srv\"", "relative-path"),
        ("cwd = \"/srv/../etc\"", "bad-path"),
        ("cwd = \"/srv/\"", "bad-path"),
        ("sha256 = \"00\"", "bad-digest"),
        ("message = \"\"", "bad-message"),
        ("message = \"a\\nb\"", "bad-message"),
        ("max_concurrent = 0", "out-of-range"),
        ("inner_only = 1", "wrong-type"),
        ("limits = { nofile = 0 }", "out-of-range"),
        ("limits = { files = 5 }", "unknown-key"),
        ("limits = 5", "wrong-type"),
        ("env_set = { BASH_ENV = \"/x\" }", "refused-variable"),
        ("env_allow = { LD_AUDIT = { any = true } }", "refused-variable"),
        ("env_allow = { \"A=B\" = \"x\" }", "bad-variable"),
        ("env_allow = { A = { repeat = \"x\" } }", "not-one-argument"),
        ("env_set = { A = \"\\u0000\" }", "nul-byte"),
        ("run_as = \"\"", "bad-user"),
        ("run_as = -1", "bad-user"),
        ("run_as = 4294967295", "bad-user"),
        ("run_as = { group = 5 }", "missing-key"),
        ("run_as = { user = 5, groups = [\"+0\"] }", "bad-group"),
        ("run_as = { user = 5, home = \"/\" }", "unknown-key"),
        ("callers = {}", "no-callers"),
        ("callers = { users = [] }", "empty-list"),
        ("callers = { user = [\"x\"] }", "unknown-key"),
        ("callers = { units = [\"*.service\"] }", "bad-unit"),
        ("callers = { units = [\"a@*b.service\"] }", "bad-unit"),
        ("callers = { labels = [\"\"] }", "bad-label"),
    ] {
        assert_eq!(of_filter(more), [code], "{more}");
    }
}

#[test]
fn each_key_that_is_not_enforced_is_refused_and_its_type_is_checked_first() {
    for more in [
        "netns = \"x\"",
        "tty = true",
        "write_paths = [\"/srv\"]",
        "seccomp = \"default\"",
        "apparmor = \"x\"",
        "selinux = \"x\"",
        "limits = { memory = \"512M\" }",
        "limits = { memory = 1048576 }",
        "limits = { tasks = 5 }",
        "limits = { cpu = \"50%\" }",
        "placement = \"service\"",
    ] {
        assert_eq!(of_filter(more), ["unsupported-key"], "{more}");
    }
    for more in [
        "netns = 1",
        "tty = \"yes\"",
        "limits = { memory = \"lots\" }",
        "limits = { cpu = 5 }",
        "apparmor = []",
    ] {
        assert_eq!(of_filter(more), ["wrong-type"], "{more}");
    }
    assert_eq!(of_filter("write_paths = [\"srv\"]"), ["relative-path"]);
}

#[test]
fn each_wrong_element_has_its_code() {
    for (args, code) in [
        ("5", "wrong-type"),
        ("[5]", "wrong-type"),
        ("[{}]", "no-kind"),
        ("[{ dash = true }]", "no-kind"),
        ("[{ interfce = true }]", "unknown-kind"),
        ("[{ mac = true, uuid = true }]", "two-kinds"),
        ("[{ mac = false }]", "out-of-range"),
        ("[{ mac = \"x\" }]", "wrong-type"),
        ("[{ mac = true, prefix = \"yes\" }]", "unknown-key"),
        ("[{ mac = true, dash = 1 }]", "wrong-type"),
        ("[{ int = [1] }]", "wrong-type"),
        ("[{ int = [2, 1] }]", "empty-range"),
        ("[{ int = [1, 2.5] }]", "wrong-type"),
        ("[{ ip = \"v5\" }]", "unknown-value"),
        ("[{ ip = \"v4\", within = [\"10.0.0.1/8\"] }]", "bad-network"),
        ("[{ ip = \"v4\", within = [] }]", "empty-list"),
        ("[{ path_under = \"srv\" }]", "relative-path"),
        ("[{ path_under = \"/srv/\" }]", "bad-path"),
        ("[{ path_under = \"/srv\", links_to = [\"dev\"] }]", "relative-path"),
        ("[{ pid_of = \"/bin/x\" }]", "wrong-type"),
        ("[{ concat = [] }]", "empty-list"),
        ("[{ concat = [\"a\", { optional = \"b\" }] }]", "not-one-argument"),
        ("[{ list = { repeat = \"a\" } }]", "not-one-argument"),
        ("[{ list = \"a\", separator = \"\" }]", "out-of-range"),
        ("[{ one_of = [] }]", "empty-list"),
        ("[{ repeat = \"a\", min = 3, max = 2 }]", "empty-range"),
        ("[{ repeat = \"a\", max = 5000 }]", "out-of-range"),
        ("[{ use = \"nothing\" }]", "unknown-definition"),
        ("[{ options = {} }]", "empty-list"),
        ("[{ options = { \"-a,, -b\" = true } }]", "bad-option"),
        ("[{ options = { \"-a\" = true, \"-b, -a\" = true } }]", "duplicate-option"),
        ("[{ options = { \"--a=\" = true } }]", "option-value"),
        ("[{ options = { \"-a\" = false } }]", "out-of-range"),
        ("[{ options = { \"-a\" = { required = true } } }]", "missing-key"),
        ("[{ command = true }, \"x\"]", "command-not-last"),
        ("[{ optional = { command = true } }]", "command-not-last"),
        ("[{ command = [] }]", "empty-list"),
        ("[{ command = [\"nothing\"] }]", "bad-filter"),
        ("[\"a\\u0000b\"]", "nul-byte"),
        ("[{ regex = \"(\" }]", "bad-filter"),
        ("[{ regex = \"a)|(?:b\" }]", "bad-filter"),
    ] {
        assert_eq!(of_args(args), [code], "{args}");
    }
}

#[test]
fn each_wrong_file_has_its_code() {
    let good = filter("a", "");
    for (text, code) in [
        (good.clone(), "missing-key"),
        (format!("{CALLERS}[other]\n"), "unknown-key"),
        (format!("{CALLERS}[defaults]\nname = \"x\"\n"), "unknown-key"),
        (format!("{CALLERS}[defaults]\ncapabilities = []\n"), "unknown-key"),
        (format!("{CALLERS}{good}{good}"), "duplicate-filter"),
        (format!("{CALLERS}[filter]\nname = \"a\"\n"), "wrong-type"),
        (format!("{CALLERS}[define]\na = {{ use = \"a\" }}\n"), "recursive-definition"),
        (format!("{CALLERS}[define]\n\"a b\" = \"x\"\n"), "bad-name"),
        (format!("{CALLERS}[define]\nunused = {{ int = 5 }}\n"), "wrong-type"),
        (format!("{CALLERS}[[disable]]\nfilter = \"zzz\"\n"), "unknown-filter"),
        (format!("{CALLERS}{good}[[disable]]\nfilter = \"a\"\n"), "unknown-filter"),
        (format!("{CALLERS}[[disable]]\n"), "missing-key"),
        (format!("{CALLERS}[[test]]\nargv = [\"x\"]\n"), "missing-key"),
        (format!("{CALLERS}[[test]]\nargv = \"x\"\nexpect = \"deny\"\n"), "wrong-type"),
        (
            format!("{CALLERS}[[test]]\nargv = []\nexpect = \"deny\"\nfilter = \"a\"\n"),
            "contradiction",
        ),
        (
            format!("{CALLERS}[[profile]]\nname = \"n\"\nconfig = \"/etc/n/rootwrap.conf\"\n"),
            "unsupported-key",
        ),
        (format!("{CALLERS}a = \n"), "syntax"),
    ] {
        let result = load_text(&text);
        let errors: Vec<_> = result
            .as_ref()
            .unwrap_err()
            .iter()
            .filter(|d| d.code != "unknown-filter" || code == d.code)
            .collect();
        assert!(
            errors.iter().all(|d| d.code == code) && !errors.is_empty(),
            "{text}: {:?}",
            said(&result)
        );
    }
}

#[test]
fn ids_that_could_be_taken_for_another_user_are_refused_everywhere() {
    for id in [
        "-1",
        "4294967295",
        "4294967296",
        "2147483648",
        "\"\"",
        "\"#0\"",
        "\"+0\"",
        "\"-1\"",
        "\"0\"",
        "0.0",
        "true",
    ] {
        for text in [
            format!("[callers]\nusers = [{id}]\n"),
            format!("[callers]\ngroups = [{id}]\n"),
            format!("{CALLERS}[defaults]\nrun_as = {id}\n"),
            format!("{CALLERS}[defaults]\nrun_as = {{ user = 0, group = {id} }}\n"),
            format!("{CALLERS}[defaults]\nrun_as = {{ user = 0, groups = [{id}] }}\n"),
            format!("{CALLERS}[[test]]\nargv = []\nexpect = \"deny\"\nas = {id}\n"),
        ] {
            assert!(load_text(&text).is_err(), "{text}");
        }
    }
}

#[test]
fn definitions_that_multiply_are_stopped() {
    let mut text = CALLERS.to_owned() + "[define]\nd0 = [\"x\", \"x\"]\n";
    for level in 1..40 {
        text += &format!("d{level} = [{{ use = \"d{}\" }}, {{ use = \"d{}\" }}]\n", level - 1, level - 1);
    }
    let result = load_text(&text);
    assert!(codes(said(&result)).contains(&"too-large".to_owned()), "{:?}", said(&result));
}

#[test]
fn definitions_that_nest_deeply_are_stopped() {
    let mut text = CALLERS.to_owned() + "[define]\nd0 = [\"x\"]\n";
    for level in 1..5000 {
        text += &format!("d{level} = [{{ use = \"d{}\" }}]\n", level - 1);
    }
    let result = load_text(&text);
    assert!(codes(said(&result)).contains(&"too-deep".to_owned()));
}

#[test]
fn all_errors_of_all_tables_come_in_one_run_in_order() {
    let text = "[calers]\nusers = [1]\n\n[callers]\nusers = [-1]\n\n[[filter]]\nname = \"a\"\ncomand = \"x\"\nargs = [{ int = 5 }]\n\
        capabilities = [\"net_amdin\"]\numask = 5\n";
    assert_eq!(
        said(&load_text(text)),
        [
            "1:2 unknown-key",
            "5:10 bad-user",
            "7:1 missing-key",
            "9:1 unknown-key",
            "10:17 wrong-type",
            "11:17 unknown-capability",
            "12:9 bad-umask"
        ]
    );
}

#[test]
fn messages_show_the_line_a_caret_and_what_to_do() {
    let text = "[callers]\nusers = [\"#0\", \"any\", \"no-such-user-here\"]\nunits = [\"agent\"]\n\n[[filter]]\nname = \"ä\"\n\
        comand = \"/usr/sbin/ip\"\nargs = [\"link\", { interfce = true }, { int = [1, 2], regex = \"x\" }]\n\
        capabilities = [\"net_amdin\"]\nenv_allow = { LD_PRELOAD = { any = true } }\non_disconnect = \"detach\"\nnetns = \"x\"\n\n\
        [[filter]]\nname = \"b\"\ncommand = \"bin/ip\"\nargs = [{ options = {\n  \"-a\" = true } }]\ncapabilities = \"all\"\n\n\
        [[filter]]\nname = \"b\"\ncommand = \"/bin/sh\"\nargs = [{ regex = '[' }]\ncapabilities = []\n";
    insta::assert_snapshot!(rendered(&load_text(text).unwrap_err()));
}

#[test]
fn syntax_errors_show_each_place() {
    let text = "[callers]\nusers = [1500\n\n[[filter]]\nname = 'a\ncommand = \"/bin/sh\"\n";
    insta::assert_snapshot!(rendered(&load_text(text).unwrap_err()));
}

#[test]
fn lines_with_control_characters_are_safe_to_print() {
    let text = CALLERS.to_owned() + &filter("a", "umsk\t=\t\"\u{202e}x\" # \u{9b}31m");
    let shown = rendered(&load_text(&text).unwrap_err());
    assert!(
        !shown.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
        "{shown:?}"
    );
}

#[test]
fn lints_do_not_make_a_policy_void() {
    let text = "[callers]\nusers = [\"any\", 1500]\n\n[[filter]]\nname = \"a\"\ncommand = \"/no/such/command\"\nargs = [{ optional = {\n\
        int = [1, 2] } }]\ncapabilities = \"all\"\nrun_as = { user = 1500, group = 1500 }\n";
    let result = load_text(text);
    assert!(result.is_ok(), "{:?}", said(&result));
    assert_eq!(
        said(&result),
        [
            "2:10 any-caller",
            "5:8 runs-as-caller",
            "6:11 missing-executable",
            "7:23 toml-1.1",
            "9:16 all-capabilities"
        ]
    );
}

#[test]
fn a_value_of_a_wrong_type_is_never_ignored_anywhere() {
    let filter_keys = [
        "name",
        "command",
        "args",
        "capabilities",
        "callers",
        "run_as",
        "env_allow",
        "env_set",
        "cwd",
        "stdin",
        "umask",
        "nice",
        "oom_score",
        "limits",
        "timeout",
        "kill_after",
        "on_disconnect",
        "placement",
        "no_new_privs",
        "sha256",
        "message",
        "max_concurrent",
        "inner_only",
        "netns",
        "tty",
        "write_paths",
        "seccomp",
        "apparmor",
        "selinux",
    ];
    let kinds = [
        "any",
        "regex",
        "int",
        "ip",
        "mac",
        "uuid",
        "host",
        "interface",
        "path_under",
        "pid_of",
        "concat",
        "list",
        "one_of",
        "optional",
        "repeat",
        "use",
        "options",
        "command",
    ];
    for value in ["1979-05-27", "1.5", "[1979-05-27]", "[[1.5]]", "{ \"\" = 1.5 }"] {
        let mut texts = Vec::new();
        for key in filter_keys {
            let line = format!("{key} = {value}");
            let rest = ["name = \"a\"", "command = \"/bin/sh\"", "args = []", "capabilities = []"];
            let rest: Vec<&str> = rest.into_iter().filter(|other| !other.starts_with(&format!("{key} "))).collect();
            texts.push(format!("{CALLERS}[[filter]]\n{line}\n{}\n", rest.join("\n")));
            texts.push(format!("{CALLERS}[defaults]\n{line}\n"));
        }
        for kind in kinds {
            texts.push(format!("{CALLERS}[define]\na = {{ {kind} = {value} }}\n"));
        }
        for (kind, modifier) in [
            ("mac = true", "dash"),
            ("mac = true", "secret"),
            ("ip = \"any\"", "prefix"),
            ("ip = \"any\"", "within"),
            ("path_under = \"/x\"", "new"),
            ("path_under = \"/x\"", "links_to"),
            ("path_under = \"/x\"", "caller_writable"),
            ("pid_of = [\"/x\"]", "same_unit"),
            ("list = \"x\"", "separator"),
            ("repeat = \"x\"", "min"),
            ("repeat = \"x\"", "max"),
        ] {
            texts.push(format!("{CALLERS}[define]\na = {{ {kind}, {modifier} = {value} }}\n"));
        }
        for key in ["users", "groups", "units", "labels"] {
            texts.push(format!("[callers]\n{key} = {value}\n"));
        }
        for key in ["nofile", "memory", "tasks", "cpu"] {
            texts.push(format!("{CALLERS}[defaults]\nlimits = {{ {key} = {value} }}\n"));
        }
        for key in ["user", "group", "groups"] {
            texts.push(format!("{CALLERS}[defaults.run_as]\n{key} = {value}\n"));
        }
        for key in ["value", "required", "many"] {
            texts.push(format!("{CALLERS}[define.a.options.-x]\n{key} = {value}\n"));
        }
        for key in ["argv", "expect", "as", "env", "cwd", "filter", "capabilities"] {
            texts.push(format!("{CALLERS}[[test]]\n{key} = {value}\n"));
        }
        for key in ["user", "group", "groups", "unit", "label"] {
            texts.push(format!(
                "{CALLERS}[[test]]\nargv = []\nexpect = \"deny\"\nas = {{ {key} = {value} }}\n"
            ));
        }
        for key in ["callers", "define", "defaults", "filter", "disable", "test", "profile"] {
            texts.push(format!("{key} = {value}\n"));
        }
        for text in texts {
            assert!(load_text(&text).is_err(), "{text}");
        }
    }
}

#[test]
fn what_is_often_written_instead_of_a_list_or_table_has_a_hint() {
    for (text, hint) in [
        (
            format!("{CALLERS}[[filter]]\nname = \"a\"\ncommand = \"/bin/true\"\nargs = \"-l\"\ncapabilities = []\n"),
            "brackets",
        ),
        ("callers = [\"root\"]\n".to_owned(), "{ users = [\"alice\"] }"),
        ("[callers]\nusers = \"root\"\n".to_owned(), "brackets"),
    ] {
        let found = load_text(&text).unwrap_err();
        let wrong = found.iter().find(|found| found.code == "wrong-type").unwrap();
        assert!(wrong.hint.as_deref().unwrap_or_default().contains(hint), "{text}: {wrong:?}");
    }
}
