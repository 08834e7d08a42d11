//! What files say, as the policy holds it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod config_common;

use std::sync::Arc;
use std::time::Duration;

use config_common::{CALLERS, filter, load_text, names, said};
use rootwrap::config::{Loaded, run_tests};
use rootwrap::policy::spec::{Callers, Capabilities, Cwd, FilterSpec, GroupRule, Ids, OnDisconnect, Placement, Stdin, UnitRule, UserRule};

fn loaded(text: &str) -> Loaded {
    load_text(text).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
}

fn first(text: &str) -> Arc<FilterSpec> {
    Arc::clone(loaded(text).policy.filters().next().unwrap())
}

fn callers(block: &str) -> Callers {
    (*first(&format!("[callers]\n{block}\n{}", filter("a", ""))).callers).clone()
}

#[test]
fn a_filter_that_says_nothing_gets_the_defaults_of_the_language() {
    let filter = first(&(CALLERS.to_owned() + &filter("a", "")));
    let run = &filter.execution;
    assert_eq!(
        (run.cwd.clone(), run.stdin, run.umask),
        (Cwd::Path("/".into()), Stdin::Caller, 0o022)
    );
    assert_eq!((run.nice, run.oom_score, run.nofile, run.no_new_privs), (0, 0, None, true));
    assert_eq!((run.timeout, run.kill_after), (None, Duration::from_secs(5)));
    assert_eq!((run.on_disconnect, run.placement), (OnDisconnect::Kill, Placement::Own));
    assert_eq!(run.capabilities, Capabilities::Set(0));
    let expected = Ids {
        uid: 0,
        gid: 0,
        groups: vec![],
    };
    assert_eq!((run.run_as.user.as_str(), run.run_as.ids.as_ref()), ("root", Some(&expected)));
    assert!(run.env_allow.is_empty() && run.env_set.is_empty() && run.sha256.is_none());
    assert!(!filter.inner_only && filter.message.is_none() && filter.max_concurrent.is_none());
    assert_eq!(filter.line, 4);
}

#[test]
fn every_key_arrives() {
    let digest = "0123456789abcdef".repeat(4);
    let filter = first(&format!(
        "{CALLERS}{}",
        filter(
            "a",
            &format!(
                "cwd = \"caller\"\nstdin = \"null\"\numask = 0o077\nnice = -5\noom_score = 500\nlimits = {{ nofile = 64 }}\ntimeout = \"1min 30s\"\n\
                 kill_after = \"100ms\"\non_disconnect = \"detach\"\nplacement = \"caller\"\nno_new_privs = false\nsha256 = \"{digest}\"\n\
                 message = \"ask the operators\"\nmax_concurrent = 3\ninner_only = true\nenv_set = {{ MODE = \"x\" }}\n\
                 env_allow = {{ TAG = {{ regex = \"[a-z]+\" }} }}\nrun_as = {{ user = 1500, group = 1600, groups = [5, 6] }}"
            )
        )
    ));
    let run = &filter.execution;
    assert_eq!((run.cwd.clone(), run.stdin, run.umask), (Cwd::Caller, Stdin::Null, 0o077));
    assert_eq!((run.nice, run.oom_score, run.nofile, run.no_new_privs), (-5, 500, Some(64), false));
    assert_eq!(
        (run.timeout, run.kill_after),
        (Some(Duration::from_secs(90)), Duration::from_millis(100))
    );
    assert_eq!((run.on_disconnect, run.placement), (OnDisconnect::Detach, Placement::Caller));
    assert_eq!(run.sha256.unwrap()[..3], [0x01, 0x23, 0x45]);
    assert_eq!(run.env_set, [("MODE".to_owned(), "x".to_owned())]);
    assert_eq!(run.env_allow[0].0, "TAG");
    let expected = Ids {
        uid: 1500,
        gid: 1600,
        groups: vec![5, 6],
    };
    assert_eq!((run.run_as.ids.as_ref(), run.run_as.home.as_str()), (Some(&expected), "/"));
    assert_eq!(
        (filter.message.as_deref(), filter.max_concurrent, filter.inner_only),
        (Some("ask the operators"), Some(3), true)
    );
}

#[test]
fn defaults_of_the_file_give_way_to_the_filters_own_keys() {
    let text = format!(
        "{CALLERS}[defaults]\ntimeout = 10\numask = \"0077\"\ninner_only = true\nenv_set = {{ A = \"1\", B = \"2\" }}\n{}{}",
        filter("a", ""),
        filter("b", "timeout = \"infinity\"\ninner_only = false\nenv_set = { C = \"3\" }")
    );
    let loaded = loaded(&text);
    let filters: Vec<_> = loaded.policy.filters().collect();
    assert_eq!(
        (filters[0].execution.timeout, filters[1].execution.timeout),
        (Some(Duration::from_secs(10)), None)
    );
    assert_eq!((filters[0].inner_only, filters[1].inner_only), (true, false));
    assert_eq!((filters[0].execution.umask, filters[1].execution.umask), (0o077, 0o077));
    assert_eq!(filters[1].execution.env_set, [("C".to_owned(), "3".to_owned())]);
    assert!(Arc::ptr_eq(&filters[0].execution.run_as, &filters[1].execution.run_as));
}

#[test]
fn callers_are_read_as_written() {
    let read = callers(
        "users = [0, 1500, \"root\", \"no-such-user-here\"]\ngroups = [\"root\", 2000, \"no-such-group-here\"]\nunits = [\"a.service\", \"w@*.service\", \"x@1.service\"]\nlabels = [\"a_t\"]",
    );
    assert_eq!(
        read.users,
        [
            UserRule::Uid(0),
            UserRule::Uid(1500),
            UserRule::Uid(0),
            UserRule::Unknown("no-such-user-here".into())
        ]
    );
    assert_eq!(
        read.groups,
        [
            GroupRule::Gid(0),
            GroupRule::Gid(2000),
            GroupRule::Unknown("no-such-group-here".into())
        ]
    );
    assert_eq!(
        read.units,
        [
            UnitRule::Name("a.service".into()),
            UnitRule::Instances {
                prefix: "w@".into(),
                suffix: ".service".into()
            },
            UnitRule::Name("x@1.service".into())
        ]
    );
    assert_eq!(read.labels, ["a_t"]);
    assert_eq!(callers("users = [\"any\"]").users, [UserRule::Any]);
}

#[test]
fn a_filters_own_callers_replace_the_files_whole() {
    let text = format!(
        "[callers]\nusers = [1]\nunits = [\"a.service\"]\n{}",
        filter("a", "callers = { groups = [5] }")
    );
    let callers = &first(&text).callers;
    assert!(callers.users.is_empty() && callers.units.is_empty());
    assert_eq!(callers.groups, [GroupRule::Gid(5)]);
}

#[test]
fn arguments_without_limit_with_options_among_them_are_warned_about() {
    let warned = |args: &str| {
        let text = format!("{CALLERS}[[filter]]\nname = \"a\"\ncommand = \"/bin/sh\"\nargs = {args}\ncapabilities = []\n");
        said(&load_text(&text)).iter().any(|line| line.ends_with(" any-arguments"))
    };
    assert!(warned("[{ repeat = { any = true, dash = true } }]"));
    assert!(warned("[\"x\", { optional = { repeat = { any = true, dash = true } } }]"));
    assert!(warned("[{ one_of = [\"x\", { repeat = { any = true, dash = true } }] }]"));
    assert!(!warned("[{ repeat = { any = true } }]"));
    assert!(!warned("[{ repeat = { any = true, dash = true }, max = 3 }]"));
}

#[test]
fn who_does_not_exist_is_warned_about_and_never_matches() {
    let text = format!("{CALLERS}{}", filter("a", "run_as = \"no-such-user-here\""));
    let result = load_text(&text);
    assert_eq!(said(&result), ["8:10 unknown-user"]);
    let warning = &result.as_ref().unwrap().warnings[0];
    assert!(warning.message.contains("its filters allow nothing"), "{}", warning.message);
    assert_eq!(result.unwrap().policy.filters().next().unwrap().execution.run_as.ids, None);
    let number = load_text(&format!("{CALLERS}{}", filter("a", "run_as = 1234567")));
    assert_eq!(said(&number), ["8:10 unknown-user"]);
    assert_eq!(number.unwrap().policy.filters().next().unwrap().execution.run_as.ids, None);
    let group = load_text(&format!(
        "{CALLERS}{}",
        filter("a", "run_as = { user = 0, groups = [\"no-such-group-here\"] }")
    ));
    assert_eq!(said(&group), ["8:32 unknown-group"]);
    assert_eq!(group.unwrap().policy.filters().next().unwrap().execution.run_as.ids, None);
}

#[test]
fn definitions_may_use_each_other_and_stay_in_their_file() {
    let text = format!(
        "{CALLERS}[define]\nouter = {{ concat = [\"x-\", {{ use = \"inner\" }}] }}\ninner = {{ int = [1, 9] }}\n\
         [[filter]]\nname = \"a\"\ncommand = \"/bin/sh\"\nargs = [{{ use = \"outer\" }}, {{ use = \"inner\", secret = true }}]\ncapabilities = []\n\
         [[test]]\nargv = [\"sh\", \"x-5\", \"7\"]\nexpect = \"allow\"\n[[test]]\nargv = [\"sh\", \"x-0\", \"7\"]\nexpect = \"deny\"\n"
    );
    let loaded = loaded(&text);
    assert!(run_tests(&loaded).iter().all(|result| result.passed()));
}

#[test]
fn tests_say_what_came_out_instead() {
    let text = format!(
        "{CALLERS}{}{}\
         [[test]]\nargv = [\"sh\", \"x\"]\nexpect = \"allow\"\n\
         [[test]]\nargv = [\"sh\"]\nexpect = \"deny\"\n\
         [[test]]\nargv = [\"sh\"]\nexpect = \"allow\"\nfilter = \"b\"\n\
         [[test]]\nargv = [\"sh\"]\nexpect = \"allow\"\ncapabilities = [\"chown\"]\n\
         [[test]]\nargv = [\"sh\"]\nexpect = \"allow\"\nas = \"no-such-user-here\"\n\
         [[test]]\nargv = [\"sh\"]\nexpect = \"allow\"\nas = 1500\nfilter = \"a\"\ncapabilities = []\n",
        filter("a", ""),
        filter("b", "")
    );
    let results = run_tests(&loaded(&text));
    let failures: Vec<&str> = results.iter().map(|result| result.failure.as_deref().unwrap_or("passed")).collect();
    assert!(
        failures[0].starts_with("expected allow, but ") && failures[0].ends_with("(arguments-mismatch)"),
        "{failures:?}"
    );
    assert!(
        failures[1].starts_with("expected deny, but `a` (") && failures[1].ends_with("t.toml:4) allows it"),
        "{failures:?}"
    );
    assert!(failures[2].starts_with("expected filter `b`, but `a` ("), "{failures:?}");
    assert_eq!(failures[3], "expected capabilities [chown], but `a` gives []");
    assert!(failures[4].ends_with("; there is no user `no-such-user-here` here"), "{failures:?}");
    assert_eq!(failures[5], "passed");
    assert!(results[0].source.ends_with("t.toml:16"), "{}", results[0].source);
}

#[test]
fn capabilities_are_numbers_of_the_kernel() {
    let text = format!(
        "{CALLERS}[[filter]]\nname = \"a\"\ncommand = \"/bin/sh\"\nargs = []\ncapabilities = [\"net_admin\", \"CAP_CHOWN\", \"bpf\"]\n"
    );
    assert_eq!(first(&text).execution.capabilities, Capabilities::Set(1 << 12 | 1 | 1 << 39));
}

#[test]
fn ten_thousand_filters_load() {
    let mut text = CALLERS.to_owned();
    for number in 0..10_000 {
        text += &filter(&format!("f{number}"), "");
    }
    assert_eq!(names(&loaded(&text)).len(), 10_000);
}
