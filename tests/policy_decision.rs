//! Decisions: who, which filter, which privileges, what is said and what is not.

#![cfg(feature = "daemon")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod policy_common;

use std::time::Duration;

use policy_common::*;
use rootwrap::policy::facts::{Facts, Question};
use rootwrap::policy::spec::*;
use rootwrap::policy::{Action, Outcome, Policy, Reason, Request, Subject, decide, explain, list};

fn with(mut filter: FilterSpec, change: impl FnOnce(&mut FilterSpec)) -> FilterSpec {
    change(&mut filter);
    filter
}

fn mtu() -> FilterSpec {
    let args = vec![
        literal("link"),
        literal("set"),
        literal("dev"),
        interface(),
        literal("mtu"),
        int(68, 65535),
    ];
    filter("set-mtu", "/usr/sbin/ip", args)
}

fn one(filter: FilterSpec) -> Policy {
    policy(vec![filter]).unwrap()
}

#[test]
fn a_permit_holds_what_was_asked_for_byte_for_byte() {
    let policy = one(mtu());
    let permit = permit(&policy, &["ip", "link", "set", "dev", "v0", "mtu", "1400"]);
    assert_eq!(permit.filter().name, "set-mtu");
    assert_eq!(permit.filter_source(), "/etc/rootwrap/filters.d/50-test.toml:7");
    assert_eq!(text(permit.args()), ["link", "set", "dev", "v0", "mtu", "1400"]);
    assert_eq!(text(permit.masked_argv()), ["ip", "link", "set", "dev", "v0", "mtu", "1400"]);
    let candidates = vec!["/usr/sbin/ip".into()];
    assert_eq!(*permit.action(), Action::Execute { candidates, inner: None });

    let odd = one(filter("odd", "/bin/odd", vec![value(ElementKind::Literal(b"\xff\\\x80".to_vec()))]));
    let argv = vec![b"odd".to_vec(), b"\xff\\\x80".to_vec()];
    match decide_bytes(&odd, &argv) {
        Outcome::Allow(permit) => assert_eq!(permit.args(), &argv[1..]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_is_named_bare_or_as_the_filter_spells_it() {
    let policy = one(filter("true", "/usr/bin/true", vec![]));
    assert!(allows(&policy, &["true"]) && allows(&policy, &["/usr/bin/true"]));
    for other in [
        "/bin/true",
        "/tmp/true",
        "./true",
        "usr/bin/true",
        "/usr/bin/../bin/true",
        "-true",
        "True",
        "true ",
        "",
    ] {
        assert!(!allows(&policy, &[other]), "{other}");
    }
}

#[test]
fn what_no_command_can_have_is_refused() {
    let policy = one(filter("any", "/bin/any", vec![repeat(any(), 0, None)]));
    assert_eq!(reason(&policy, &[]), Reason::BadArguments);
    assert_eq!(reason(&policy, &[""]), Reason::BadArguments);
    assert_eq!(reason(&policy, &["any", "a\0b"]), Reason::BadArguments);
    let mut argv = vec!["x"; 4097];
    argv[0] = "any";
    assert!(allows(&policy, &argv));
    argv.push("x");
    assert_eq!(reason(&policy, &argv), Reason::BadArguments);
    let long = "a".repeat(1 << 20);
    assert_eq!(reason(&policy, &[&long]), Reason::NoFilter);
}

#[test]
fn an_empty_policy_allows_nothing() {
    let policy = policy(vec![]).unwrap();
    for argv in [&["true"][..], &["privsep-helper"], &["ip", "link"], &["env", "A=1", "true"]] {
        assert_eq!(reason(&policy, argv), Reason::NoFilter);
    }
}

#[test]
fn the_first_filter_that_matches_decides_the_privileges() {
    let first = with(filter("first", "/bin/x", vec![any()]), |f| {
        f.execution.capabilities = Capabilities::Set(1)
    });
    let second = with(filter("second", "/bin/x", vec![literal("a")]), |f| {
        f.execution.capabilities = Capabilities::All
    });
    let policy_of = |filters| policy(filters).unwrap();
    assert_eq!(
        permit(&policy_of(vec![first.clone(), second.clone()]), &["x", "a"]).filter().name,
        "first"
    );
    assert_eq!(permit(&policy_of(vec![second, first]), &["x", "a"]).filter().name, "second");
}

#[test]
fn many_filters_of_a_command_keep_their_order() {
    let mut filters: Vec<FilterSpec> = (0..500)
        .map(|n| {
            filter(
                &format!("f{n}"),
                "/usr/sbin/ip",
                vec![literal("link"), literal(&format!("v{n}")), any()],
            )
        })
        .collect();
    filters.insert(250, filter("wide", "/usr/sbin/ip", vec![literal("link"), any(), any()]));
    let policy = policy(filters).unwrap();
    assert_eq!(permit(&policy, &["ip", "link", "v7", "up"]).filter().name, "f7");
    assert_eq!(permit(&policy, &["ip", "link", "v400", "up"]).filter().name, "wide");
    assert_eq!(permit(&policy, &["ip", "link", "v999", "up"]).filter().name, "wide");
}

#[test]
fn callers_see_their_own_filters_only() {
    let policy = policy(vec![for_uid(with(mtu(), |f| f.message = Some("ask bob".to_owned())), 2000)]).unwrap();
    let argv = ["ip", "link", "set", "dev", "v0", "mtu", "1400"];
    let refused = denial(&policy, &argv);
    assert_eq!(refused.reason, Reason::NoFilter);
    let unknown = denial(&policy, &["nosuch", "link", "set", "dev", "v0", "mtu", "1400"]);
    assert_eq!(refused.message.replace("ip", "nosuch"), unknown.message);
    let argv = bytes(&argv);
    let subject = alice();
    assert!(explain(&policy, &request(&subject, &argv), &Facts::lexical()).tried.is_empty());
    assert_eq!(list(&policy, &subject).count(), 0);

    let named = |name| match decide(
        &policy,
        &Request {
            filter: Some(name),
            ..request(&subject, &argv)
        },
        &Facts::lexical(),
    ) {
        Outcome::Deny(denial) => denial,
        other => panic!("{other:?}"),
    };
    assert_eq!(named("set-mtu").message.replace("set-mtu", "nosuch"), named("nosuch").message);
    assert_eq!(named("set-mtu").reason, Reason::NoSuchFilter);
}

#[test]
fn a_run_as_user_who_does_not_exist_never_matches() {
    let missing = with(filter("x", "/bin/x", vec![]), |f| {
        f.execution.run_as = std::sync::Arc::new(RunAs {
            ids: None,
            ..(*f.execution.run_as).clone()
        });
    });
    assert_eq!(reason(&one(missing), &["x"]), Reason::NoFilter);
}

#[test]
fn a_request_may_insist_on_one_filter() {
    let policy = policy(vec![filter("a", "/bin/x", vec![any()]), filter("b", "/bin/x", vec![any()])]).unwrap();
    let (subject, argv) = (alice(), bytes(&["x", "1"]));
    let decide = |filter, profile| {
        decide(
            &policy,
            &Request {
                filter,
                profile,
                ..request(&subject, &argv)
            },
            &Facts::lexical(),
        )
    };
    match decide(Some("b"), None) {
        Outcome::Allow(permit) => assert_eq!(permit.filter().name, "b"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(decide(None, Some("nova")), Outcome::Deny(denial) if denial.reason == Reason::NoSuchFilter));
}

#[test]
fn surroundings_must_match_too() {
    let quiet = one(with(filter("x", "/bin/x", vec![]), |f| f.execution.stdin = Stdin::Null));
    let here = one(with(filter("x", "/bin/x", vec![]), |f| f.execution.cwd = Cwd::Caller));
    let plain = one(filter("x", "/bin/x", vec![]));
    let (subject, argv) = (alice(), bytes(&["x"]));
    let reason = |policy, has_cwd, has_stdin| match decide(
        policy,
        &Request {
            has_cwd,
            has_stdin,
            ..request(&subject, &argv)
        },
        &Facts::new(),
    ) {
        Outcome::Allow(_) => None,
        Outcome::Deny(denial) => Some(denial.reason),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&plain, false, true), None);
    assert_eq!(reason(&plain, true, false), Some(Reason::CwdMismatch));
    assert_eq!(reason(&here, true, false), None);
    assert_eq!(reason(&here, false, false), Some(Reason::CwdMismatch));
    assert_eq!(reason(&quiet, false, false), None);
    assert_eq!(reason(&quiet, false, true), Some(Reason::StdinMismatch));
}

fn lvs() -> FilterSpec {
    with(filter("lvs", "/usr/sbin/lvs", vec![]), |f| {
        f.execution.env_allow = vec![
            ("LC_ALL".to_owned(), regex(".*")),
            ("TOKEN".to_owned(), secret(any())),
            ("LD_PRELOAD".to_owned(), regex(".*")),
        ];
    })
}

#[test]
fn assignments_in_front_are_judged_as_environment() {
    let policy = one(lvs());
    let allowed = permit(&policy, &["env", "LC_ALL=C", "TOKEN=hunter2", "lvs"]);
    assert_eq!(
        allowed.environment(),
        [(b"LC_ALL".to_vec(), b"C".to_vec()), (b"TOKEN".to_vec(), b"hunter2".to_vec())]
    );
    assert!(allowed.args().is_empty());
    assert_eq!(text(allowed.masked_argv()), ["env", "LC_ALL=C", "TOKEN=***", "lvs"]);
    for bad in [
        "LC_ALL=/x",
        "LC_ALL=%n",
        "LC_ALL=() { :; }",
        "TOKEN=",
        "OTHER=1",
        "LD_PRELOAD=/x",
        "PATH=/tmp",
        "IFS=x",
    ] {
        assert_eq!(reason(&policy, &["env", bad, "lvs"]), Reason::EnvironmentMismatch, "{bad}");
    }
    assert_eq!(
        reason(&policy, &["env", "LC_ALL=C", "LC_ALL=C", "lvs"]),
        Reason::EnvironmentMismatch
    );
    for argv in [
        &["env", "-i", "lvs"][..],
        &["env", "lvs"],
        &["env", "LC_ALL=C", "-u", "x", "lvs"],
        &["env", "-S", "lvs"],
    ] {
        assert_eq!(reason(&policy, argv), Reason::NoFilter, "{argv:?}");
    }
    let refused = denial(&policy, &["env", "TOKEN=hunter2", "OTHER=1", "lvs"]);
    assert_eq!(text(&refused.masked_argv), ["env", "TOKEN=***", "OTHER=1", "lvs"]);
    assert!(!refused.message.contains("hunter2"));
}

#[test]
fn a_filter_for_env_itself_sees_what_is_not_moved() {
    let policy = policy(vec![filter("env", "/usr/bin/env", vec![optional(regex("-i|A=1"))]), lvs()]).unwrap();
    assert_eq!(permit(&policy, &["env"]).filter().name, "env");
    assert_eq!(permit(&policy, &["env", "A=1"]).filter().name, "env");
    assert_eq!(permit(&policy, &["env", "LC_ALL=C", "lvs"]).filter().name, "lvs");
}

#[test]
fn variables_of_the_request_are_judged_like_those_in_front() {
    let policy = one(lvs());
    let (subject, argv) = (alice(), bytes(&["env", "LC_ALL=C", "lvs"]));
    let allows = |name: &[u8], value: &[u8]| {
        let environment = [(name.to_vec(), value.to_vec())];
        let request = Request {
            environment: &environment,
            ..request(&subject, &argv)
        };
        matches!(decide(&policy, &request, &Facts::new()), Outcome::Allow(_))
    };
    assert!(allows(b"TOKEN", b"x"));
    for (name, value) in [
        (&b"LC_ALL"[..], &b"C"[..]),
        (b"", b"x"),
        (b"=", b"x"),
        (b"TOKEN=", b"x"),
        (b"TOKEN", b"a\0b"),
        (b"TO KEN", b"x"),
        (b"TOKEN\n", b"x"),
        (b"LD_PRELOAD", b"x"),
    ] {
        assert!(!allows(name, value), "{name:?}");
    }
}

#[test]
fn names_that_steer_are_refused_even_where_a_filter_lists_them() {
    let names = [
        "LD_PRELOAD",
        "LD_AUDIT",
        "LD_LIBRARY_PATH",
        "LD_BIND_NOW",
        "LD_DEBUG_OUTPUT",
        "LD_ORIGIN_PATH",
        "LD_PROFILE",
        "LD_SHOW_AUXV",
        "LD_USE_LOAD_BIAS",
        "LD_DYNAMIC_WEAK",
        "GLIBC_TUNABLES",
        "GCONV_PATH",
        "GETCONF_DIR",
        "HOSTALIASES",
        "LOCALDOMAIN",
        "LOCPATH",
        "MALLOC_TRACE",
        "MALLOC_PERTURB_",
        "NIS_PATH",
        "NLSPATH",
        "RESOLV_HOST_CONF",
        "RES_OPTIONS",
        "TZDIR",
        "BASH_ENV",
        "ENV",
        "IFS",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "PROMPT_COMMAND",
        "CDPATH",
        "GLOBIGNORE",
        "BASH_FUNC_x",
        "ZDOTDIR",
        "PERL5LIB",
        "PERL5OPT",
        "PERLLIB",
        "PERL5DB",
        "PERLIO_DEBUG",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "PYTHONINSPECT",
        "PYTHONWARNINGS",
        "RUBYLIB",
        "RUBYOPT",
        "NODE_OPTIONS",
        "NODE_PATH",
        "GIT_SSH",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_KEY_0",
        "GIT_PAGER",
        "GIT_EXTERNAL_DIFF",
        "PAGER",
        "SYSTEMD_PAGER",
        "SYSTEMD_EDITOR",
        "SYSTEMD_LESS",
        "MANPAGER",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "LESSOPEN",
        "LESSCLOSE",
        "TERMINFO",
        "TERMINFO_DIRS",
        "TERMCAP",
        "TERMPATH",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "CLASSPATH",
        "KRB5_CONFIG",
        "OPENSSL_CONF",
        "OPENSSL_MODULES",
        "SSH_ASKPASS",
        "ASAN_OPTIONS",
        "BASH_LOADABLES_PATH",
        "CURL_HOME",
        "DBUS_SYSTEM_BUS_ADDRESS",
        "GMON_OUT_PREFIX",
        "GREP_OPTIONS",
        "KUBECONFIG",
        "LESSHISTFILE",
        "LIBMOUNT_FSTAB",
        "MAKEFLAGS",
        "MONO_PATH",
        "MUSL_LOCPATH",
        "NULLCMD",
        "PATH_LOCALE",
        "RSYNC_CONNECT_PROG",
        "TMP",
        "WGETRC",
        "XDG_CONFIG_HOME",
        "XTABLES_LOCKFILE",
        "SUDO_ASKPASS",
        "TMPDIR",
        "LUA_INIT",
        "LUA_PATH",
        "PATH",
        "HOME",
        "SHELL",
        "LOGNAME",
        "USER",
        "MODPROBE_OPTIONS",
        "TAR_OPTIONS",
        "RSYNC_RSH",
        "XTABLES_LIBDIR",
        "ROOTWRAP_UID",
        "NOTIFY_SOCKET",
    ];
    assert!(names.len() >= 70);
    for name in names {
        let policy = one(with(filter("x", "/bin/x", vec![]), |f| {
            f.execution.env_allow = vec![(name.to_owned(), dash(regex("(?s).*")))]
        }));
        let word = format!("{name}=x");
        assert_eq!(reason(&policy, &["env", &word, "x"]), Reason::EnvironmentMismatch, "{name}");
    }
}

fn netns(change: impl FnOnce(&mut FilterSpec), inner: impl FnOnce(&mut FilterSpec), named: bool) -> Vec<FilterSpec> {
    let behind = if named { command_of(&["dnsmasq"]) } else { command() };
    let outer = filter(
        "netns",
        "/usr/sbin/ip",
        vec![literal("netns"), literal("exec"), interface(), behind],
    );
    let dnsmasq = filter(
        "dnsmasq",
        "/usr/sbin/dnsmasq",
        vec![options(vec![option("--no-hosts", None), option("--key=", Some(secret(any())))])],
    );
    let dnsmasq = with(dnsmasq, |f| {
        f.inner_only = true;
        f.execution.env_allow = vec![("TAG".to_owned(), int(0, 9))];
        inner(f);
    });
    vec![with(outer, change), dnsmasq, filter("true", "/usr/bin/true", vec![])]
}

const INSIDE: [&str; 6] = ["ip", "netns", "exec", "blue", "dnsmasq", "--no-hosts"];

#[test]
fn an_inner_command_must_be_allowed_itself() {
    let outer = |f: &mut FilterSpec| {
        f.execution.capabilities = Capabilities::Set(1);
        f.execution.timeout = Some(Duration::from_secs(60));
    };
    let inner = |f: &mut FilterSpec| {
        f.execution.capabilities = Capabilities::Set(4);
        f.execution.timeout = Some(Duration::from_secs(30));
        f.execution.nice = 5;
    };
    let policy = policy(netns(outer, inner, true)).unwrap();
    let allowed = permit(&policy, &INSIDE);
    assert_eq!(allowed.filter().name, "netns");
    assert_eq!(allowed.inner().unwrap().name, "dnsmasq");
    assert_eq!(allowed.execution().capabilities, Capabilities::Set(5));
    assert_eq!(allowed.execution().timeout, Some(Duration::from_secs(30)));
    assert_eq!(allowed.execution().nice, 0);
    let action = Action::Execute {
        candidates: vec!["/usr/sbin/ip".into()],
        inner: Some((3, vec!["/usr/sbin/dnsmasq".into()])),
    };
    assert_eq!(*allowed.action(), action);
    assert!(allows(&policy, &["ip", "netns", "exec", "blue", "/usr/sbin/dnsmasq"]));
    for inner in [
        &["/tmp/dnsmasq"][..],
        &["dnsmasq", "--evil"],
        &["true"],
        &["sh"],
        &["ip", "netns", "exec", "blue", "dnsmasq"],
        &["env", "-i", "dnsmasq"],
        &[],
    ] {
        let argv: Vec<&str> = INSIDE[..4].iter().chain(inner).copied().collect();
        assert_eq!(reason(&policy, &argv), Reason::ArgumentsMismatch, "{inner:?}");
    }
    assert_eq!(reason(&policy, &["dnsmasq", "--no-hosts"]), Reason::NoFilter);
}

#[test]
fn any_filter_of_the_caller_serves_where_none_is_named() {
    let policy = policy(netns(|_| {}, |_| {}, false)).unwrap();
    assert_eq!(
        permit(&policy, &["ip", "netns", "exec", "blue", "true"]).inner().unwrap().name,
        "true"
    );
    assert!(!allows(
        &policy,
        &["ip", "netns", "exec", "blue", "ip", "netns", "exec", "red", "true"]
    ));
}

#[test]
fn the_inner_filter_is_for_this_caller_and_this_user() {
    let bob = |f: &mut FilterSpec| f.callers = for_uid(f.clone(), 2000).callers;
    assert!(!allows(&policy(netns(|_| {}, bob, true)).unwrap(), &INSIDE));
    let other = |f: &mut FilterSpec| {
        let ids = Some(Ids {
            uid: 5,
            gid: 5,
            groups: vec![],
        });
        f.execution.run_as = std::sync::Arc::new(RunAs {
            ids,
            ..(*f.execution.run_as).clone()
        });
    };
    assert!(errors(netns(|_| {}, other, true)).contains("run_as"));
    assert!(!allows(&policy(netns(|_| {}, other, false)).unwrap(), &INSIDE));
}

#[test]
fn variables_before_the_inner_command_are_moved_and_judged_by_both_filters() {
    let outer = |f: &mut FilterSpec| f.execution.env_allow = vec![("LANG".to_owned(), any()), ("TAG".to_owned(), int(0, 5))];
    let policy = policy(netns(outer, |_| {}, true)).unwrap();
    let allowed = permit(
        &policy,
        &[
            "env",
            "LANG=C",
            "ip",
            "netns",
            "exec",
            "blue",
            "env",
            "TAG=5",
            "dnsmasq",
            "--no-hosts",
        ],
    );
    assert_eq!(text(allowed.args()), ["netns", "exec", "blue", "dnsmasq", "--no-hosts"]);
    assert_eq!(
        allowed.environment(),
        [(b"LANG".to_vec(), b"C".to_vec()), (b"TAG".to_vec(), b"5".to_vec())]
    );
    assert!(matches!(allowed.action(), Action::Execute { inner: Some((3, _)), .. }));
    for bad in ["TAG=7", "TAG=x", "OTHER=1", "LD_PRELOAD=x"] {
        assert_eq!(
            reason(&policy, &["ip", "netns", "exec", "blue", "env", bad, "dnsmasq"]),
            Reason::EnvironmentMismatch,
            "{bad}"
        );
    }
    assert!(!allows(
        &policy,
        &["env", "TAG=1", "ip", "netns", "exec", "blue", "env", "TAG=1", "dnsmasq"]
    ));
}

#[test]
fn given_a_variable_that_the_inner_filter_sets_then_only_that_filter_can_let_it_be_changed() {
    let outer = |f: &mut FilterSpec| f.execution.env_allow = vec![("TAG".to_owned(), any()), ("DIR".to_owned(), any())];
    let sets = |f: &mut FilterSpec| f.execution.env_set = vec![("DIR".to_owned(), "/safe".to_owned()), ("TAG".to_owned(), "0".to_owned())];
    let policy = policy(netns(outer, sets, true)).unwrap();
    for (variable, expected) in [("DIR=/evil", false), ("TAG=1", true)] {
        let front = [&["env", variable], &INSIDE[..]].concat();
        let behind = [&INSIDE[..4], &["env", variable, "dnsmasq"]].concat();
        for argv in [front, behind] {
            assert_eq!(allows(&policy, &argv), expected, "{argv:?}");
        }
    }
    let front = [&["env", "DIR=/evil"], &INSIDE[..]].concat();
    assert_eq!(reason(&policy, &front), Reason::EnvironmentMismatch);
}

#[test]
fn what_an_inner_filter_restricts_holds_behind_another_filter_too() {
    let null = |f: &mut FilterSpec| f.execution.stdin = Stdin::Null;
    let caller = |f: &mut FilterSpec| f.execution.stdin = Stdin::Caller;
    let subject = alice();
    let argv = bytes(&INSIDE);
    let with_stdin = Request {
        has_stdin: true,
        ..request(&subject, &argv)
    };
    let policy_of = |inner: fn(&mut FilterSpec)| policy(netns(caller, inner, true)).unwrap();
    let decided = |policy: &Policy| decide(policy, &with_stdin, &Facts::lexical());
    assert!(matches!(decided(&policy_of(|_| {})), Outcome::Allow(_)));
    match decided(&policy(netns(caller, null, true)).unwrap()) {
        Outcome::Deny(denial) => assert_eq!(denial.reason, Reason::StdinMismatch),
        other => panic!("{other:?}"),
    }
    let inside = policy(netns(caller, null, true)).unwrap();
    assert_eq!(permit(&inside, &INSIDE).execution().stdin, Stdin::Null);

    let free = |f: &mut FilterSpec| f.execution.no_new_privs = false;
    let nnp = |outer: fn(&mut FilterSpec), inner: fn(&mut FilterSpec)| {
        let policy = policy(netns(outer, inner, true)).unwrap();
        permit(&policy, &INSIDE).execution().no_new_privs
    };
    assert!(nnp(free, |_| {}) && nnp(|_| {}, free) && !nnp(free, free));
}

#[test]
fn detaching_needs_the_callers_cgroup() {
    let detach = |f: &mut FilterSpec| f.execution.on_disconnect = OnDisconnect::Detach;
    let caller = |f: &mut FilterSpec| f.execution.placement = Placement::Caller;
    assert!(errors(vec![with(filter("x", "/bin/x", vec![]), detach)]).contains("detach"));
    let both = with(with(filter("x", "/bin/x", vec![]), detach), caller);
    assert_eq!(permit(&one(both), &["x"]).execution().on_disconnect, OnDisconnect::Detach);

    assert!(errors(netns(|_| {}, detach, true)).contains("detach"));
    let inside = |filters| permit(&policy(filters).unwrap(), &INSIDE).execution().on_disconnect;
    assert_eq!(inside(netns(caller, detach, true)), OnDisconnect::Detach);
    assert_eq!(inside(netns(caller, |_| {}, true)), OnDisconnect::Kill);
    assert_eq!(inside(netns(|_| {}, detach, false)), OnDisconnect::Kill);
}

#[test]
fn inner_commands_are_checked_when_the_policy_is_built() {
    let outer = |names: &[&str]| filter("outer", "/bin/outer", vec![command_of(names)]);
    assert!(errors(vec![outer(&["nosuch"])]).contains("nosuch"));
    assert!(errors(vec![outer(&["deep"]), filter("deep", "/bin/deep", vec![command()])]).contains("itself"));
    let kill = filter("kill", "/bin/kill", vec![literal("-HUP"), pid_of("/bin/x")]);
    assert!(errors(vec![outer(&["kill"]), kill]).contains("signal"));
    assert!(errors(vec![filter("a", "/bin/a", vec![]), filter("a", "/bin/b", vec![])]).contains("two filters"));
    let all = errors(vec![outer(&["nosuch"]), filter("x", "/bin/x", vec![regex("("), int(2, 1)])]);
    assert_eq!(all.lines().count(), 3, "{all}");
}

#[test]
fn questions_are_asked_until_the_answer_stands() {
    let under = |base: &str| Question::PathUnder {
        path: b"/mnt/a/b".to_vec(),
        base: base.into(),
        links_to: vec![],
        new: false,
    };
    let filters = vec![
        filter("deep", "/bin/x", vec![path_under("/mnt/a")]),
        filter("wide", "/bin/x", vec![path_under("/mnt")]),
    ];
    let policy = policy(filters).unwrap();
    let (subject, argv) = (alice(), bytes(&["x", "/mnt/a/b"]));
    let mut facts = Facts::new();
    assert!(matches!(decide(&policy, &request(&subject, &argv), &facts), Outcome::Ask(asked) if asked == [under("/mnt/a")]));
    facts.insert(under("/mnt/a"), false);
    assert!(matches!(decide(&policy, &request(&subject, &argv), &facts), Outcome::Ask(asked) if asked == [under("/mnt")]));
    let mut no = facts.clone();
    no.insert(under("/mnt"), false);
    assert!(matches!(decide(&policy, &request(&subject, &argv), &no), Outcome::Deny(denial) if denial.reason == Reason::ArgumentsMismatch));
    facts.insert(under("/mnt"), true);
    assert!(matches!(decide(&policy, &request(&subject, &argv), &facts), Outcome::Allow(permit) if permit.filter().name == "wide"));
}

#[test]
fn a_signal_is_sent_to_the_process_that_was_asked_about() {
    let policy = one(filter("hup", "/usr/bin/kill", vec![literal("-HUP"), pid_of("/usr/sbin/dnsmasq")]));
    let (subject, argv) = (alice(), bytes(&["kill", "-s", "HUP", "12"]));
    let question = Question::PidOf {
        pid: 12,
        executables: vec!["/usr/sbin/dnsmasq".into()],
        same_unit: false,
    };
    let mut facts = Facts::new();
    assert!(matches!(decide(&policy, &request(&subject, &argv), &facts), Outcome::Ask(asked) if asked == [question.clone()]));
    facts.insert(question.clone(), true);
    match decide(&policy, &request(&subject, &argv), &facts) {
        Outcome::Allow(permit) => assert_eq!(
            *permit.action(),
            Action::Signal {
                pid: 12,
                question: question.clone(),
                signal: 1
            }
        ),
        other => panic!("{other:?}"),
    }
    facts.insert(question, false);
    assert!(matches!(decide(&policy, &request(&subject, &argv), &facts), Outcome::Deny(_)));
}

fn login() -> Vec<FilterSpec> {
    let options = options(vec![option("-p, --password, --password=", Some(secret(any()))), option("-v", None)]);
    vec![
        filter("login", "/bin/db", vec![literal("login"), secret(regex("[a-z0-9]+"))]),
        filter("dump", "/bin/db", vec![literal("dump"), options, interface()]),
        filter("show", "/bin/db", vec![literal("show"), any()]),
    ]
}

#[test]
fn secrets_are_masked_in_permits_and_in_denials() {
    let policy = policy(login()).unwrap();
    let masked = |argv: &[&str]| match outcome(&policy, argv) {
        Outcome::Allow(permit) => text(permit.masked_argv()).join(" "),
        Outcome::Deny(denial) => {
            assert!(!denial.message.contains("hunter2"), "{}", denial.message);
            text(&denial.masked_argv).join(" ")
        }
        Outcome::Ask(_) => panic!(),
    };
    assert_eq!(masked(&["db", "login", "hunter2"]), "db login ***");
    assert_eq!(masked(&["db", "dump", "-p", "hunter2", "t"]), "db dump -p *** t");
    assert_eq!(masked(&["db", "dump", "--password=hunter2", "t"]), "db dump --password=*** t");
    assert_eq!(masked(&["db", "show", "tables"]), "db show tables");
    // Refused.
    assert_eq!(masked(&["db", "login", "hunter2!"]), "db login ***");
    assert_eq!(masked(&["db", "logn", "hunter2"]), "db logn ***");
    assert!(!masked(&["db", "dump", "-p", "hunter2"]).contains("hunter2"));
    assert!(!masked(&["db", "dump", "-x", "--password=hunter2", "t"]).contains("hunter2"));
    assert!(!masked(&["db", "dump", "-x", "-phunter2", "t"]).contains("hunter2"));
    assert!(!masked(&["db", "dump", "-p", "hunter2", "a\0"]).contains("hunter2"));
}

#[test]
fn secrets_of_other_callers_filters_are_masked_as_well() {
    let filters = login().into_iter().map(|filter| for_uid(filter, 2000)).collect();
    let refused = denial(&policy(filters).unwrap(), &["db", "login", "hunter2"]);
    assert_eq!(refused.reason, Reason::NoFilter);
    assert_eq!(text(&refused.masked_argv), ["db", "login", "***"]);
}

#[test]
fn secrets_of_inner_commands_are_masked() {
    let policy = policy(netns(|_| {}, |_| {}, true)).unwrap();
    let argv = ["ip", "netns", "exec", "blue", "dnsmasq", "--key=hunter2"];
    assert_eq!(text(permit(&policy, &argv).masked_argv()).last().unwrap(), "--key=***");
    for refused in [
        &["ip", "netns", "exec", "blue", "dnsmasq", "--evil", "--key=hunter2"][..],
        &["ip", "ntns", "blue", "dnsmasq", "--key=hunter2"],
    ] {
        let denial = denial(&policy, refused);
        assert!(!text(&denial.masked_argv).join(" ").contains("hunter2"), "{denial:?}");
        assert!(!denial.message.contains("hunter2"), "{denial:?}");
    }
}

#[test]
fn given_secrets_of_other_callers_filters_then_the_reply_does_not_tell_that_they_are_there() {
    let theirs: Vec<FilterSpec> = login().into_iter().map(|filter| for_uid(filter, 2000)).collect();
    let mut with_own = theirs.clone();
    with_own.push(for_uid(filter("own", "/bin/db", vec![literal("own")]), 1000));
    let only_own = with_own[3..].to_vec();
    for (with_theirs, without) in [(theirs, vec![]), (with_own, only_own)] {
        let (with_theirs, without) = (policy(with_theirs).unwrap(), policy(without).unwrap());
        for argv in [
            &["db", "login", "hunter2"][..],
            &["db", "dump", "-p", "hunter2", "t"],
            &["db", "own", "x"],
        ] {
            let refused = denial(&with_theirs, argv);
            assert_eq!(refused.message, denial(&without, argv).message);
            assert!(!refused.detail.contains("hunter2"), "{}", refused.detail);
            assert!(
                !text(&refused.masked_argv).join(" ").contains("hunter2"),
                "{:?}",
                refused.masked_argv
            );
        }
    }
}

#[test]
fn secrets_are_masked_where_a_request_is_spelled_in_a_way_that_no_filter_allows() {
    let joined = option("--token=", Some(secret(any())));
    let keyed = concat(vec![literal("key="), secret(any())]);
    let db = with(filter("db", "/bin/db", vec![literal("in"), keyed, options(vec![joined])]), |f| {
        f.execution.env_allow = vec![("DB_PASSWORD".to_owned(), secret(any()))];
    });
    let outer = filter("as", "/bin/as", vec![interface(), command()]);
    let policy = policy(vec![db, outer]).unwrap();
    for argv in [
        &["db", "in", "--token", "hunter2"][..],
        &["db", "-x", "in", "eth0", "key=hunter2"],
        &["env", "-i", "DB_PASSWORD=hunter2", "db", "in"],
        &["env", "-u", "X", "DB_PASSWORD=hunter2", "nosuch"],
        &["/usr/bin/env", "DB_PASSWORD=hunter2", "--", "db"],
        &["as", "a", "env", "-i", "DB_PASSWORD=hunter2", "db"],
        &["as", "a", "db", "in", "key=hunter2", "--token=hunter2", "\0"],
        &["db", "in", "key=hunter2\0"],
    ] {
        let refused = denial(&policy, argv);
        let said = format!("{} {} {:?}", refused.message, refused.detail, text(&refused.masked_argv));
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_denial_says_what_to_do() {
    let policy = one(with(mtu(), |f| f.message = Some("MTU changes: see the wiki".to_owned())));
    let refused = denial(&policy, &["ip", "link", "set", "dev", "v0", "mtu", "70000"]);
    assert_eq!(refused.reason, Reason::ArgumentsMismatch);
    assert_eq!(
        refused.message,
        "no filter for `ip` allows you these arguments; they fit up to argument 6, `70000`: expected an integer from 68 to 65535; \
         see: rootwrapctl explain -- ip link set dev v0 mtu 70000\nMTU changes: see the wiki"
    );
    let hostile = denial(&policy, &["ip", "\u{1b}[31m\n\u{202e}"]);
    assert!(hostile.message.lines().count() == 2 && !hostile.message.contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn the_advice_to_ask_again_asks_the_same_and_holds_no_values() {
    let policy = one(mtu());
    let (subject, argv) = (alice(), bytes(&["ip", "link", "up"]));
    let environment = [(b"TOKEN".to_vec(), b"hunter2".to_vec())];
    let request = Request {
        has_cwd: true,
        environment: &environment,
        filter: Some("set-mtu"),
        ..request(&subject, &argv)
    };
    let Outcome::Deny(denial) = decide(&policy, &request, &Facts::lexical()) else {
        panic!("allowed");
    };
    let advice = "; see: rootwrapctl explain --filter set-mtu --chdir . --env 'TOKEN=***' -- ip link up";
    assert!(denial.message.ends_with(advice), "{}", denial.message);
    assert!(denial.detail.ends_with(advice), "{}", denial.detail);
}

#[test]
fn an_explanation_names_the_first_thing_that_does_not_match() {
    let explained = |policy: &Policy, argv: &[&str]| {
        let (subject, argv) = (alice(), bytes(argv));
        let tried = explain(policy, &request(&subject, &argv), &Facts::lexical()).tried;
        tried
            .into_iter()
            .map(|tried| match tried.mismatch {
                None => format!("{}: matches", tried.filter),
                Some(mismatch) => format!("{}: {mismatch}", tried.filter),
            })
            .collect::<Vec<_>>()
    };
    let policy_of = |filters| policy(filters).unwrap();
    let two = policy_of(vec![
        mtu(),
        filter(
            "show",
            "/usr/sbin/ip",
            vec![literal("link"), literal("show"), optional(literal("up"))],
        ),
    ]);
    assert_eq!(
        explained(&two, &["ip", "link", "set", "dev", "v0", "mtu", "70000"]),
        [
            "set-mtu: argument 6: expected an integer from 68 to 65535",
            "show: argument 2: expected `show`"
        ]
    );
    assert_eq!(explained(&two, &["ip", "link", "show"])[1], "show: matches");
    assert_eq!(
        explained(&two, &["ip", "link", "show", "x"])[1],
        "show: argument 3: expected `up` or no more arguments"
    );
    assert_eq!(explained(&two, &["ip", "link", "set"])[0], "set-mtu: argument 3: expected `dev`");
    assert_eq!(
        explained(&one(lvs()), &["env", "LC_ALL=C", "TOKEN=", "lvs"]),
        ["lvs: argument 2: expected TOKEN=an argument that is not empty"]
    );
    let inside = policy_of(netns(|_| {}, |_| {}, true));
    let mut argv = INSIDE.to_vec();
    argv[5] = "--evil";
    assert!(explained(&inside, &argv)[0].starts_with("netns: argument 5: expected an option"));
    argv[4] = "sh";
    assert_eq!(
        explained(&inside, &argv),
        ["netns: argument 4: expected a command that the filter `dnsmasq` allows"]
    );
}

#[test]
fn a_caller_can_list_what_it_may_run() {
    let filters = vec![
        with(mtu(), |f| f.execution.capabilities = Capabilities::Set(1 << 12)),
        for_uid(filter("other", "/bin/other", vec![]), 5),
    ];
    let policy = policy(filters).unwrap();
    let subject = alice();
    let listed: Vec<_> = list(&policy, &subject).collect();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].name, "set-mtu");
    assert_eq!(listed[0].source, "/etc/rootwrap/filters.d/50-test.toml:7");
    assert_eq!(listed[0].command, "/usr/sbin/ip");
    assert_eq!(listed[0].pattern, "link set dev INTERFACE mtu INT[68-65535]");
    assert_eq!(
        (listed[0].capabilities.as_slice(), listed[0].run_as.as_str()),
        (&["net_admin"][..], "root")
    );
}

#[test]
fn an_assumed_caller_uses_the_filters_of_its_file() {
    let policy = one(for_uid(mtu(), 5));
    let argv = bytes(&["ip", "link", "set", "dev", "v0", "mtu", "1400"]);
    for (file, expected) in [(0, true), (1, false)] {
        let subject = Subject {
            assumed_by_file: Some(file),
            ..Subject::default()
        };
        assert_eq!(
            matches!(decide(&policy, &request(&subject, &argv), &Facts::lexical()), Outcome::Allow(_)),
            expected
        );
    }
}
