//! What cannot be done is not started, and the step that failed is named.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rootwrap::config::trusted::open_executable;
use rootwrap::launch::{Job, JobDescriptors, JobError, LaunchError, LauncherProcess, Step, Target};
use rootwrap::policy::spec::{Capabilities, Cwd, Execution};
use sha2::{Digest, Sha256};

use crate::support::*;

const TRUE: [&str; 1] = ["/bin/true"];

/// The step and errno of a job that fails.
async fn failure(launcher: &rootwrap::launch::Launcher, job: Job) -> (Step, i32) {
    match launcher.launch(job, Target::Own, DEADLINE).await {
        Err(LaunchError::Step { step, errno }) => (step, errno),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_demand_that_cannot_be_met_stops_the_command_at_its_step() {
    with_launcher(1, async |launcher, _| {
        let base = nobody_with(0);
        for (execution, expected) in [
            (
                Execution {
                    cwd: Cwd::Path("/missing".into()),
                    ..base.clone()
                },
                (Step::Cwd, libc::ENOENT),
            ),
            (
                Execution {
                    nofile: Some(u64::MAX >> 1),
                    ..base.clone()
                },
                (Step::Limits, libc::EPERM),
            ),
            (
                Execution {
                    oom_score: 5000,
                    ..base.clone()
                },
                (Step::OomScore, libc::EINVAL),
            ),
            (
                Execution {
                    capabilities: Capabilities::Set(1 << 63),
                    ..base.clone()
                },
                (Step::AmbientSet, libc::EINVAL),
            ),
            (
                Execution {
                    run_as: user("overflow", u32::MAX, 1, &[]),
                    ..base.clone()
                },
                (Step::Uid, libc::EINVAL),
            ),
            (
                Execution {
                    run_as: user("overflow", 1, u32::MAX, &[]),
                    ..base.clone()
                },
                (Step::Gid, libc::EINVAL),
            ),
            (
                Execution {
                    sha256: Some([1; 32]),
                    ..base.clone()
                },
                (Step::Digest, libc::EKEYREJECTED),
            ),
        ] {
            assert_eq!(failure(launcher, quiet(&execution, &TRUE)).await, expected);
        }
    });
}

#[test]
fn an_executable_that_was_exchanged_after_it_was_opened_does_not_run() {
    with_launcher(1, async |launcher, _| {
        let directory = TrustedDirectory::new();
        let path = directory.copy("/bin/true", "program", 0o755);
        let job = quiet(&root_with(0), &[&path]);
        let evil = directory.copy("/bin/false", "evil", 0o755);
        fs::rename(evil, &path).unwrap();
        assert_eq!(failure(launcher, job).await, (Step::Executable, libc::ESTALE));
        let job = quiet(&root_with(0), &[&path]);
        fs::remove_file(&path).unwrap();
        assert_eq!(failure(launcher, job).await, (Step::Executable, libc::ENOENT));
    });
}

#[test]
fn a_pinned_executable_runs_by_its_contents_whatever_its_path_leads_to_now() {
    with_launcher(1, async |launcher, _| {
        let directory = TrustedDirectory::new();
        let path = directory.copy("/bin/echo", "program", 0o755);
        let execution = Execution {
            sha256: Some(Sha256::digest(fs::read(&path).unwrap()).into()),
            ..nobody_with(0)
        };
        assert_eq!(output(launcher, &execution, &[&path, "hello"]).await, "hello\n");
        let (read, write) = rustix::pipe::pipe().unwrap();
        let descriptors = JobDescriptors {
            stdout: Some(write.into()),
            ..JobDescriptors::default()
        };
        let job = job(&execution, &[&path, "hello"], descriptors);
        let evil = directory.copy("/bin/false", "evil", 0o755);
        fs::rename(evil, &path).unwrap();
        let mut running = launcher.launch(job, Target::Own, DEADLINE).await.unwrap();
        assert_eq!(running.wait().await.code, Some(0));
        running.clean_up().await;
        assert_eq!(std::io::read_to_string(fs::File::from(read)).unwrap(), "hello\n");
    });
}

#[test]
fn what_the_kernel_cannot_execute_is_a_failure_of_exec() {
    with_launcher(1, async |launcher, _| {
        let directory = TrustedDirectory::new();
        let path = directory.copy("/etc/hostname", "text", 0o755);
        assert_eq!(failure(launcher, quiet(&root_with(0), &[&path])).await, (Step::Exec, libc::ENOEXEC));
        let long = "x".repeat(200_000);
        let argv = ["/bin/echo", &long];
        assert_eq!(failure(launcher, quiet(&root_with(0), &argv)).await, (Step::Exec, libc::E2BIG));
    });
}

#[test]
fn nearly_two_mebibytes_of_arguments_arrive_byte_for_byte() {
    with_launcher(1, async |launcher, _| {
        let words: Vec<String> = (0..1000).map(|n| format!("{n:04}{}", "y".repeat(1850))).collect();
        let mut argv = vec!["/bin/echo"];
        argv.extend(words.iter().map(String::as_str));
        let (read, write) = rustix::pipe::pipe().unwrap();
        let descriptors = JobDescriptors {
            stdout: Some(write.into()),
            ..JobDescriptors::default()
        };
        let job = job(&nobody_with(0), &argv, descriptors);
        let mut running = launcher.launch(job, Target::Own, DEADLINE).await.unwrap();
        let echoed = std::io::read_to_string(fs::File::from(read)).unwrap();
        assert_eq!(running.wait().await.code, Some(0));
        running.clean_up().await;
        assert!(echoed.trim_end().split(' ').eq(words.iter().map(String::as_str)));
    });
}

#[test]
fn a_job_that_does_not_fit_its_permit_cannot_be_made() {
    let permit = permit(&root_with(0), &TRUE);
    let make = |path: &str, inner: Option<&str>, permit| {
        let open = |path: &str| Arc::new(open_executable(Path::new(path)).unwrap());
        Job::new(permit, open(path), inner.map(open), context(), JobDescriptors::default()).map(drop)
    };
    assert!(matches!(make("/bin/false", None, &permit), Err(JobError::Executable(_))));
    assert!(matches!(
        make("/bin/true", Some("/bin/false"), &permit),
        Err(JobError::Executable(_))
    ));
    let nested = nested_permit(&root_with(0), &["/usr/bin/nice"], &["/bin/true"]);
    assert!(matches!(make("/usr/bin/nice", None, &nested), Err(JobError::Executable(_))));
    assert!(matches!(
        make("/usr/bin/nice", Some("/bin/false"), &nested),
        Err(JobError::Executable(_))
    ));
    let caller = Execution {
        cwd: Cwd::Caller,
        ..root_with(0)
    };
    let permit = crate::support::permit(&caller, &TRUE);
    assert_eq!(make("/bin/true", None, &permit), Err(JobError::NoDirectory));
}

#[test]
fn an_inner_command_runs_as_its_own_filter_spells_it() {
    with_launcher(1, async |launcher, _| {
        let (outer, inner) = (["/usr/bin/nice", "-n", "3"], ["/bin/cat", "/proc/self/cmdline"]);
        let permit = nested_permit(&nobody_with(0), &outer, &inner);
        let open = |path: &str| Arc::new(open_executable(Path::new(path)).unwrap());
        let (read, write) = rustix::pipe::pipe().unwrap();
        let descriptors = JobDescriptors {
            stdout: Some(write.into()),
            ..JobDescriptors::default()
        };
        let job = Job::new(&permit, open(outer[0]), Some(open(inner[0])), context(), descriptors).unwrap();
        let mut running = launcher.launch(job, Target::Own, DEADLINE).await.unwrap();
        running.wait().await;
        running.clean_up().await;
        let shown = std::io::read_to_string(fs::File::from(read)).unwrap();
        assert_eq!(shown, "/bin/cat\0/proc/self/cmdline\0");
    });
}

#[test]
fn a_frozen_caller_gets_a_definite_answer_and_nothing_runs_after_the_thaw() {
    with_launcher(1, async |launcher, _| {
        let callers = TestCgroup::new();
        callers.set("cgroup.freeze", "1");
        let directory = TrustedDirectory::new();
        let marker = directory.0.join("ran");
        let job = quiet(&root_with(0), &["/bin/touch", marker.to_str().unwrap()]);
        let answer = launcher
            .launch(job, Target::Cgroup(callers.descriptor()), Duration::from_millis(300))
            .await;
        assert!(matches!(answer, Err(LaunchError::TimedOut)), "{answer:?}");
        callers.set("cgroup.freeze", "0");
        eventually_in_runtime(|| callers.processes().is_empty()).await;
        assert!(!marker.exists());
    });
}

#[test]
fn a_caller_that_kills_its_cgroup_at_any_moment_gets_definite_answers_and_nothing_runs_twice() {
    with_launcher(1, async |launcher, _| {
        let callers = TestCgroup::new();
        let directory = TrustedDirectory::new();
        let over = Arc::new(AtomicBool::new(false));
        let killer = std::thread::spawn({
            let (over, kill) = (over.clone(), callers.0.join("cgroup.kill"));
            move || {
                while !over.load(Ordering::Relaxed) {
                    fs::write(&kill, "1").unwrap();
                    std::thread::yield_now();
                }
            }
        });
        for number in 0..200 {
            let marker = directory.0.join(number.to_string());
            let script = format!("echo ran >> {}", marker.display());
            let job = quiet(&root_with(0), &["/bin/sh", "-c", &script]);
            let answer = launcher.launch(job, Target::Cgroup(callers.descriptor()), DEADLINE).await;
            let may_have_run = match answer {
                Ok(mut running) => {
                    running.wait().await;
                    true
                }
                Err(LaunchError::OutcomeUnknown) => true,
                Err(LaunchError::Fork { errno: libc::ECHILD }) => false,
                Err(other) => panic!("{other:?}"),
            };
            let runs = fs::read_to_string(&marker).unwrap_or_default().lines().count();
            assert!(
                runs <= usize::from(may_have_run),
                "{runs} runs, answered that it may have run: {may_have_run}"
            );
        }
        over.store(true, Ordering::Relaxed);
        killer.join().unwrap();
    });
}

#[test]
fn a_cgroup_that_is_gone_is_no_reason_to_run_elsewhere() {
    with_launcher(1, async |launcher, _| {
        let callers = TestCgroup::new();
        let descriptor = callers.descriptor();
        drop(callers);
        let answer = launcher
            .launch(quiet(&root_with(0), &TRUE), Target::Cgroup(descriptor), DEADLINE)
            .await;
        assert!(
            matches!(
                answer,
                Err(LaunchError::Fork {
                    errno: libc::ENODEV | libc::ENOENT
                })
            ),
            "{answer:?}"
        );
        let no_cgroup = fs::File::open("/etc").unwrap().into();
        let answer = launcher
            .launch(quiet(&root_with(0), &TRUE), Target::Cgroup(no_cgroup), DEADLINE)
            .await;
        assert!(matches!(answer, Err(LaunchError::Fork { errno: libc::EBADF })), "{answer:?}");
    });
}

#[test]
fn a_program_that_is_no_launcher_is_noticed() {
    runtime().block_on(async {
        let process = LauncherProcess::start(Path::new("/bin/true")).unwrap();
        let launcher = process.into_launcher(0, None).unwrap();
        let answer = launcher.launch(quiet(&root_with(0), &TRUE), Target::Own, DEADLINE).await;
        assert!(matches!(answer, Err(LaunchError::LauncherGone)), "{answer:?}");
        launcher.gone().await;
        launcher.close().await;
    });
    assert!(LauncherProcess::start(Path::new("/missing")).is_err());
}
