//! Commands, parked children and the launcher: how they end, and that nothing is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rootwrap::launch::{LaunchError, LauncherProcess, Target};

use crate::support::*;

const READY: &str = "echo ready; read line; exit 3";

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The parked children's numbers.
fn parked(root: &Path) -> Vec<u32> {
    let list = |job: &PathBuf| fs::read_to_string(job.join("cgroup.procs")).unwrap_or_default();
    let jobs = subdirectories(&root.join("jobs"));
    jobs.iter()
        .flat_map(|job| list(job).lines().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

fn kill(pid: u32, signal: &str) {
    tool(&["/bin/kill", signal, &pid.to_string()]);
}

#[test]
fn status_signal_and_use_come_back_and_no_zombie_is_left() {
    with_launcher(2, async |launcher, _| {
        for (script, code, signal) in [
            ("exit 0", Some(0), None),
            ("exit 126", Some(126), None),
            ("kill -9 $$", None, Some(9)),
        ] {
            let argv = ["/bin/sh", "-c", script];
            let mut running = launcher.launch(quiet(&nobody_with(0), &argv), Target::Own, DEADLINE).await.unwrap();
            let exit = running.wait().await;
            assert_eq!((exit.code, exit.signal), (code, signal), "{script}");
            assert!(exit.max_rss > 0 && exit.duration > Duration::ZERO, "{exit:?}");
            assert_eq!(running.wait().await, exit, "the same answer again");
            assert!(!exists(running.pid()));
            let again = running.signal(libc::SIGTERM, false).unwrap_err();
            assert_eq!(again.raw_os_error(), Some(libc::ESRCH));
            let group = running.signaller().signal(libc::SIGTERM, true).unwrap_err();
            assert_eq!(group.raw_os_error(), Some(libc::ESRCH));
            running.clean_up().await;
        }
    });
}

#[test]
fn five_hundred_short_commands_with_signals_in_between_leave_nothing() {
    with_launcher(4, async |launcher, _| {
        for round in 0..500 {
            let job = quiet(&nobody_with(0), &["/bin/true"]);
            let mut running = launcher.launch(job, Target::Own, DEADLINE).await.unwrap();
            let signaller = running.signaller();
            if round % 3 == 0 {
                let _ = signaller.signal(libc::SIGKILL, round % 2 == 0);
            }
            let exit = running.wait().await;
            assert!(exit.code == Some(0) || exit.signal == Some(libc::SIGKILL), "{exit:?}");
            assert!(signaller.signal(libc::SIGKILL, true).is_err());
            assert!(!exists(running.pid()));
            running.clean_up().await;
        }
    });
}

#[test]
fn signals_reach_the_command_or_its_whole_group() {
    with_launcher(1, async |launcher, _| {
        let script = "trap 'echo got; exit 5' USR1; /bin/sh -c 'trap \"echo child; exit\" USR1; echo ready; sleep 1000 & wait' & \
                      wait $!; wait; exit 9";
        let mut started = start(launcher, &nobody_with(0), &["/bin/sh", "-c", script]).await;
        assert_eq!(started.line(), "ready");
        started.running.signal(libc::SIGUSR1, true).unwrap();
        let mut lines = [started.line(), started.line()];
        lines.sort();
        assert_eq!(lines, ["child", "got"]);
        for number in [0, -1, 65, i32::MIN] {
            let refused = started.running.signal(number, true);
            assert!(refused.is_err(), "{number}");
        }
        assert_eq!(started.running.wait().await.code, Some(5));
        started.running.clean_up().await;
    });
}

#[test]
fn ending_is_sigterm_first_and_sigkill_where_that_is_ignored() {
    with_launcher(1, async |launcher, _| {
        let polite = "trap 'exit 4' TERM; echo ready; while :; do read line; done";
        let mut started = start(launcher, &nobody_with(0), &["/bin/sh", "-c", polite]).await;
        assert_eq!(started.line(), "ready");
        assert_eq!(started.running.end(DEADLINE).await.code, Some(4));
        started.running.clean_up().await;
        let stubborn = "trap '' TERM; echo ready; while :; do read line; done";
        let mut started = start(launcher, &root_with(0), &["/bin/sh", "-c", stubborn]).await;
        assert_eq!(started.line(), "ready");
        assert_eq!(started.running.end(Duration::from_millis(20)).await.signal, Some(libc::SIGKILL));
        started.running.clean_up().await;
    });
}

#[test]
fn a_stopped_command_ends_by_sigterm() {
    with_launcher(1, async |launcher, _| {
        let mut started = start(launcher, &nobody_with(0), &["/bin/sh", "-c", READY]).await;
        assert_eq!(started.line(), "ready");
        started.running.signal(libc::SIGSTOP, false).unwrap();
        assert_eq!(started.running.end(DEADLINE).await.signal, Some(libc::SIGTERM));
        started.running.clean_up().await;
    });
}

#[test]
fn what_a_command_left_behind_in_sessions_of_its_own_is_killed_with_its_cgroup() {
    with_launcher(1, async |launcher, root| {
        let script = "setsid sh -c 'trap \"\" TERM HUP; echo $$; sleep 1000 & setsid sleep 1000 & wait' & read line";
        let mut started = start(launcher, &root_with(0), &["/bin/sh", "-c", script]).await;
        let survivor: u32 = started.line().parse().unwrap();
        drop(started.stdin);
        started.running.wait().await;
        assert!(exists(survivor));
        let cgroup = fs::read_to_string(format!("/proc/{survivor}/cgroup")).unwrap();
        let cgroup = cgroup.lines().find_map(|line| line.strip_prefix("0::")).unwrap().to_owned();
        let directory = root.join("jobs").join(Path::new(&cgroup).file_name().unwrap());
        assert!(directory.is_dir());
        fs::create_dir(directory.join("below")).unwrap();
        started.running.clean_up().await;
        assert!(!directory.exists());
        eventually_in_runtime(|| !exists(survivor)).await;
    });
}

#[test]
fn a_command_in_the_callers_cgroup_is_born_there_and_what_it_started_stays() {
    with_launcher(1, async |launcher, _| {
        let callers = TestCgroup::new();
        let argv = ["/bin/sh", "-c", "sleep 1000 & cat /proc/self/cgroup; echo $!"];
        let target = Target::Cgroup(callers.descriptor());
        let mut started = start_in(launcher, target, &root_with(0), &argv).await.unwrap();
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &String| line.parse::<u32>().is_err()) {
            lines.push(started.line());
        }
        let name = callers.0.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("0::") && line.ends_with(&format!("/{name}"))),
            "{lines:?}"
        );
        assert_eq!(started.running.wait().await.code, Some(0));
        started.running.clean_up().await;
        assert!(callers.processes().contains(lines.last().unwrap()));
    });
}

#[test]
fn killed_parked_children_are_replaced_and_nobody_notices() {
    with_launcher(3, async |launcher, root| {
        for _ in 0..3 {
            eventually_in_runtime(|| parked(root).len() == 3).await;
            let victims = parked(root);
            victims.iter().for_each(|pid| kill(*pid, "-KILL"));
            assert_eq!(shell(launcher, &nobody_with(0), "echo here").await, "here\n");
            eventually_in_runtime(|| parked(root).iter().filter(|pid| !victims.contains(pid)).count() == 3).await;
            eventually_in_runtime(|| victims.iter().all(|pid| !exists(*pid))).await;
        }
    });
}

#[test]
fn a_stopped_parked_child_costs_one_deadline_and_runs_nothing() {
    with_launcher(1, async |launcher, root| {
        let directory = TrustedDirectory::new();
        let marker = directory.0.join("ran");
        let answer = loop {
            eventually_in_runtime(|| parked(root).len() == 1).await;
            parked(root).iter().for_each(|pid| kill(*pid, "-STOP"));
            let job = quiet(&root_with(0), &["/bin/touch", marker.to_str().unwrap()]);
            match launcher.launch(job, Target::Own, Duration::from_millis(200)).await {
                Err(error) => break error,
                // The stopped one had been born, but not yet been parked: this was another.
                Ok(mut other) => {
                    other.wait().await;
                    other.clean_up().await;
                    fs::remove_file(&marker).unwrap();
                }
            }
        };
        assert!(matches!(answer, LaunchError::TimedOut), "{answer:?}");
        assert_eq!(shell(launcher, &nobody_with(0), "echo here").await, "here\n");
        assert!(!marker.exists());
    });
}

#[test]
fn without_a_cgroup_tree_commands_live_in_the_launchers() {
    needs_root();
    let process = LauncherProcess::start(Path::new(env!("CARGO_BIN_EXE_rootwrap-launcher"))).unwrap();
    runtime().block_on(async {
        let launcher = process.into_launcher(1, None).unwrap();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        assert_eq!(shell(&launcher, &nobody_with(0), "cat /proc/self/cgroup").await, own);
        launcher.close().await;
    });
}

#[test]
fn a_killed_launcher_is_noticed_and_running_commands_go_on() {
    needs_root();
    let root = TestCgroup::new();
    let process = LauncherProcess::start(Path::new(env!("CARGO_BIN_EXE_rootwrap-launcher"))).unwrap();
    let pid = process.pid();
    runtime().block_on(async {
        let launcher = process.into_launcher(0, Some(&root.0)).unwrap();
        let mut started = start(&launcher, &nobody_with(0), &["/bin/sh", "-c", READY]).await;
        assert_eq!(started.line(), "ready");
        kill(pid, "-KILL");
        launcher.gone().await;
        let answer = launcher.launch(quiet(&root_with(0), &["/bin/true"]), Target::Own, DEADLINE).await;
        assert!(matches!(answer, Err(LaunchError::LauncherGone)), "{answer:?}");
        assert_eq!(started.finish().await.0.code, Some(3));
        launcher.close().await;
    });
    assert!(!exists(pid));
}

#[test]
fn the_launcher_ends_with_whoever_started_it() {
    needs_root();
    let start = || LauncherProcess::start(Path::new(env!("CARGO_BIN_EXE_rootwrap-launcher"))).unwrap();
    // The socket closes.
    let process = start();
    let pid = process.pid();
    drop(process);
    eventually(|| is_zombie(pid));
    // The thread that started it ends, as if its process had, while the socket stays open.
    let process = std::thread::spawn(move || {
        let process = start();
        // It has asked for the signal once it sits in its own session.
        eventually(|| is_session_leader(process.pid()));
        process
    })
    .join()
    .unwrap();
    eventually(|| is_zombie(process.pid()));
}

fn stat(pid: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().map(str::to_owned).collect()
}

fn is_zombie(pid: u32) -> bool {
    stat(pid)[0] == "Z"
}

fn is_session_leader(pid: u32) -> bool {
    stat(pid)[3] == pid.to_string()
}

#[test]
fn a_launcher_that_rootwrapd_did_not_start_refuses() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_rootwrap-launcher"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("started by rootwrapd"));
}

#[test]
fn the_launcher_is_small() {
    with_launcher_process(4, async |launcher, root, pid| {
        for _ in 0..20 {
            assert_eq!(shell(launcher, &nobody_with(0), "echo here").await, "here\n");
        }
        eventually_in_runtime(|| parked(root).len() == 4).await;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let resident: u32 = field(&status, "VmRSS").trim_end_matches(" kB").parse().unwrap();
        assert!(resident < 4096, "{resident} KiB");
    });
}
