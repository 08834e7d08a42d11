//! What a command has: every attribute of proc(5), for filters of all kinds.

use rootwrap::launch::JobContext;
use rootwrap::launch::JobDescriptors;
use rootwrap::policy::spec::{Capabilities, Cwd, Execution};

use crate::support::*;

/// A filter, and what its command must show.
struct Case {
    name: &'static str,
    execution: Execution,
    ids: [u32; 2],
    groups: &'static str,
    /// Inheritable, permitted and effective, bounding, ambient.
    capabilities: [u64; 4],
}

fn set(name: &'static str, execution: Execution, ids: [u32; 2], groups: &'static str) -> Case {
    let Capabilities::Set(set) = execution.capabilities else {
        panic!("a set")
    };
    Case {
        name,
        execution,
        ids,
        groups,
        capabilities: [set; 4],
    }
}

fn cases() -> Vec<Case> {
    let all = all_capabilities();
    let nobody = [65534, 65534];
    let daemon = |capabilities, groups: &[u32]| Execution {
        run_as: user("daemon", 1, 2, groups),
        ..root_with(capabilities)
    };
    let full = |execution: Execution| Execution {
        capabilities: Capabilities::All,
        ..execution
    };
    let lenient = |execution: Execution| Execution {
        no_new_privs: false,
        ..execution
    };
    vec![
        set("root, none", root_with(0), [0, 0], ""),
        set("root, one", root_with(NET_ADMIN), [0, 0], ""),
        set("root, several", root_with(NET_ADMIN | NET_RAW | CHOWN), [0, 0], ""),
        set("root, one, new privileges possible", lenient(root_with(NET_ADMIN)), [0, 0], ""),
        set("root, all but in a set", Execution { ..root_with(all) }, [0, 0], ""),
        set(
            "root with groups",
            Execution {
                run_as: user("root", 0, 7, &[4, 5]),
                ..root_with(NET_RAW)
            },
            [0, 7],
            "4 5",
        ),
        set("nobody, none", nobody_with(0), nobody, ""),
        set("nobody, one", nobody_with(NET_RAW), nobody, ""),
        set("nobody, one, new privileges possible", lenient(nobody_with(NET_RAW)), nobody, ""),
        set(
            "daemon, several, with groups",
            daemon(NET_ADMIN | SETPCAP, &[10, 20, 30]),
            [1, 2],
            "10 20 30",
        ),
        set(
            "limits, mask and niceness",
            Execution {
                umask: 0o077,
                nice: 7,
                oom_score: 300,
                nofile: Some(256),
                ..daemon(DAC_OVERRIDE, &[])
            },
            [1, 2],
            "",
        ),
        set(
            "a directory and an environment",
            Execution {
                cwd: Cwd::Path("/usr/bin".into()),
                env_set: vec![("LANG".into(), "C.UTF-8".into()), ("HOME".into(), "/elsewhere".into())],
                nice: -5,
                ..nobody_with(0)
            },
            nobody,
            "",
        ),
        set(
            "the caller's directory",
            Execution {
                cwd: Cwd::Caller,
                ..nobody_with(0)
            },
            nobody,
            "",
        ),
        Case {
            name: "root, full",
            execution: full(root_with(0)),
            ids: [0, 0],
            groups: "",
            capabilities: [0, all, all, 0],
        },
        Case {
            name: "root, full, new privileges possible",
            execution: full(lenient(root_with(0))),
            ids: [0, 0],
            groups: "",
            capabilities: [0, all, all, 0],
        },
        Case {
            name: "daemon, full",
            execution: full(daemon(0, &[9])),
            ids: [1, 2],
            groups: "9",
            capabilities: [all; 4],
        },
    ]
}

#[test]
fn status_is_exactly_what_the_filter_says() {
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    with_launcher(2, async |launcher, _| {
        for case in cases() {
            let status = output(launcher, &case.execution, &["/bin/cat", "/proc/self/status"]).await;
            let [uid, gid] = case.ids;
            let [inheritable, permitted, bounding, ambient] = case.capabilities.map(|set| format!("{set:016x}"));
            for (name, expected) in [
                ("Name", "cat".to_owned()),
                ("Umask", format!("{:04o}", case.execution.umask)),
                ("TracerPid", "0".to_owned()),
                ("Uid", format!("{uid}\t{uid}\t{uid}\t{uid}")),
                ("Gid", format!("{gid}\t{gid}\t{gid}\t{gid}")),
                ("FDSize", "64".to_owned()),
                ("Groups", case.groups.to_owned()),
                ("Threads", "1".to_owned()),
                ("SigPnd", "0".repeat(16)),
                ("ShdPnd", "0".repeat(16)),
                ("SigBlk", "0".repeat(16)),
                ("SigIgn", "0".repeat(16)),
                ("SigCgt", "0".repeat(16)),
                ("CapInh", inheritable),
                ("CapPrm", permitted.clone()),
                ("CapEff", permitted),
                ("CapBnd", bounding),
                ("CapAmb", ambient),
                ("NoNewPrivs", u32::from(case.execution.no_new_privs).to_string()),
                ("Seccomp", field(&own, "Seccomp").to_owned()),
                ("Seccomp_filters", field(&own, "Seccomp_filters").to_owned()),
            ] {
                assert_eq!(field(&status, name), expected, "{}: {name}", case.name);
            }
        }
    });
}

#[test]
fn everything_else_is_that_of_a_fresh_login() {
    with_launcher(2, async |launcher, root| {
        for case in cases() {
            let files = "/proc/self/stat /proc/self/oom_score_adj /proc/self/cgroup /proc/self/timerslack_ns";
            let script = format!("/bin/cat {files}; pwd; exec cat /proc/self/environ");
            let text = shell(launcher, &case.execution, &script).await;
            let lines: Vec<_> = text.lines().collect();
            // The reader is a child of the shell, which leads the session and the group.
            let stat: Vec<_> = lines[0].rsplit(')').next().unwrap().split_whitespace().collect();
            let (parent, group, session, terminal, nice, policy) = (stat[1], stat[2], stat[3], stat[4], stat[16], stat[38]);
            assert!(
                parent == group && parent == session && terminal == "0",
                "{}: {}",
                case.name,
                lines[0]
            );
            assert_eq!((nice, policy), (case.execution.nice.to_string().as_str(), "0"), "{}", case.name);
            assert_eq!(lines[1], case.execution.oom_score.to_string(), "{}", case.name);
            let jobs = format!("{}/jobs/", root.file_name().unwrap().to_str().unwrap());
            let cgroup = lines.iter().find(|line| line.starts_with("0::")).unwrap();
            assert!(cgroup.contains(&jobs), "{}: {cgroup}", case.name);
            let after = lines.iter().position(|line| line.starts_with("0::")).unwrap();
            let rest = lines[after + 1..].join("\n");
            let (slack, rest) = rest.split_once('\n').unwrap();
            assert!(slack == "50000" || slack.contains("Permission"), "{}: {slack}", case.name);
            let (directory, environment) = rest.split_once('\n').unwrap();
            let expected = match &case.execution.cwd {
                Cwd::Path(path) => path.to_str().unwrap(),
                Cwd::Caller => "/usr",
            };
            assert_eq!(directory, expected, "{}", case.name);
            assert_eq!(
                sorted(environment.split_terminator('\0')),
                expected_environment(&case),
                "{}",
                case.name
            );
        }
    });
}

fn sorted<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut words: Vec<_> = words.map(str::to_owned).collect();
    words.sort();
    words
}

/// The shell adds PWD (and dash nothing else).
fn expected_environment(case: &Case) -> Vec<String> {
    let user = &case.execution.run_as.user;
    let set = |name: &str| {
        case.execution
            .env_set
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.clone())
    };
    let mut all = vec![
        format!("HOME={}", set("HOME").unwrap_or_else(|| "/".into())),
        format!("USER={user}"),
        format!("LOGNAME={user}"),
        "SHELL=/usr/sbin/nologin".into(),
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
        "ROOTWRAP_UID=1234".into(),
        "ROOTWRAP_REQUEST_ID=request".into(),
        format!(
            "PWD={}",
            match &case.execution.cwd {
                Cwd::Path(path) => path.to_str().unwrap(),
                Cwd::Caller => "/usr",
            }
        ),
    ];
    all.extend(set("LANG").map(|value| format!("LANG={value}")));
    all.sort();
    all
}

#[test]
fn limits_are_those_of_a_fresh_login_or_the_filters() {
    let own = std::fs::read_to_string("/proc/self/limits").unwrap();
    let threads: u64 = std::fs::read_to_string("/proc/sys/kernel/threads-max")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let may_raise = all_capabilities() >> 24 & 1 == 1;
    with_launcher(1, async |launcher, _| {
        for case in cases() {
            let limits = output(launcher, &case.execution, &["/bin/cat", "/proc/self/limits"]).await;
            let processes = threads / 2;
            for (name, soft, hard) in [
                ("Max cpu time", None, None),
                ("Max file size", None, None),
                ("Max data size", None, None),
                ("Max stack size", Some(8 << 20), None),
                ("Max core file size", Some(0), Some(0)),
                ("Max resident set", None, None),
                ("Max processes", Some(processes), Some(processes)),
                (
                    "Max open files",
                    case.execution.nofile.or(Some(1024)),
                    case.execution.nofile.or(Some(524_288)),
                ),
                ("Max locked memory", Some(8 << 20), Some(8 << 20)),
                ("Max address space", None, None),
                ("Max file locks", None, None),
                ("Max pending signals", Some(processes), Some(processes)),
                ("Max msgqueue size", Some(819_200), Some(819_200)),
                ("Max nice priority", Some(0), Some(0)),
                ("Max realtime priority", Some(0), Some(0)),
                ("Max realtime timeout", None, None),
            ] {
                // What this machine does not let anybody raise stays where it was.
                let ceiling = if may_raise { None } else { limit(&own, name).1 };
                let lower = |wanted: Option<u64>| match (wanted, ceiling) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (one, other) => one.or(other),
                };
                assert_eq!(limit(&limits, name), (lower(soft), lower(hard)), "{}: {name}", case.name);
            }
        }
    });
}

/// Soft and hard limit of /proc/PID/limits; `None`: unlimited.
fn limit(limits: &str, name: &str) -> (Option<u64>, Option<u64>) {
    let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let mut values = line.split_whitespace().map(|value| value.parse().ok());
    (values.next().unwrap(), values.next().unwrap())
}

#[test]
fn each_command_has_a_session_keyring_of_its_own() {
    with_launcher(1, async |launcher, _| {
        let mut serials = vec![keyring(&String::from_utf8(command_output("keyctl", &["show", "@s"])).unwrap())];
        for execution in [root_with(0), nobody_with(0), root_with(NET_ADMIN)] {
            let shown = output(launcher, &execution, &["/usr/bin/keyctl", "show", "@s"]).await;
            assert!(shown.contains("_ses"), "{shown}");
            serials.push(keyring(&shown));
        }
        let count = serials.len();
        serials.sort();
        serials.dedup();
        assert_eq!(serials.len(), count);
    });
}

fn keyring(shown: &str) -> String {
    shown
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().next())
        .unwrap_or("none")
        .to_owned()
}

fn command_output(program: &str, args: &[&str]) -> Vec<u8> {
    std::process::Command::new(program).args(args).output().unwrap().stdout
}

#[test]
fn a_terminals_name_and_the_callers_loginuid_come_along_where_they_are_known() {
    let unset = std::fs::read_to_string("/proc/self/loginuid");
    with_launcher(1, async |launcher, _| {
        let argv = ["/bin/sh", "-c", "echo $TERM; cat /proc/self/loginuid"];
        let permit = permit(&nobody_with(0), &argv);
        let context = JobContext {
            term: Some(b"xterm".to_vec()),
            loginuid: unset.is_ok().then_some(1234),
            ..context()
        };
        let (read, write) = rustix::pipe::pipe().unwrap();
        let descriptors = JobDescriptors {
            stdout: Some(write.into()),
            ..JobDescriptors::default()
        };
        let job = job_with(&permit, &argv, context, descriptors);
        let mut running = launcher.launch(job, rootwrap::launch::Target::Own, DEADLINE).await.unwrap();
        let text = std::io::read_to_string(std::fs::File::from(read)).unwrap();
        running.wait().await;
        running.clean_up().await;
        if unset.is_ok() {
            assert_eq!(text, "xterm\n1234");
        } else {
            assert_eq!(text, "xterm\n");
        }
    });
}
