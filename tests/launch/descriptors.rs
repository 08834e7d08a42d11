//! 0, 1 and 2, and nothing else.

use std::fs;

use rootwrap::launch::Target;

use crate::support::*;

/// The descriptors of a process that stands still, and what they are.
fn descriptors(pid: u32) -> Vec<(String, String)> {
    let mut all: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let target = fs::read_link(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), target.to_str().unwrap().to_owned())
        })
        .collect();
    all.sort();
    all
}

const WAIT: [&str; 3] = ["/bin/sh", "-c", "echo ready; read line"];

#[test]
fn fifty_commands_at_once_have_their_own_three_descriptors_each() {
    with_launcher(4, async |launcher, _| {
        let execution = nobody_with(0);
        let mut started = Vec::new();
        let mut launches = std::pin::pin!(async {
            let mut tasks = Vec::new();
            for _ in 0..50 {
                tasks.push(start_in(launcher, Target::Own, &execution, &WAIT));
            }
            join_all(tasks).await
        });
        for one in launches.as_mut().await {
            started.push(one.unwrap());
        }
        let mut pipes = Vec::new();
        for one in &mut started {
            assert_eq!(one.line(), "ready");
            let shown = descriptors(one.running.pid());
            let numbers: Vec<_> = shown.iter().map(|(number, _)| number.as_str()).collect();
            assert_eq!(numbers, ["0", "1", "2"], "{shown:?}");
            assert!(shown.iter().all(|(_, target)| target.starts_with("pipe:")));
            assert_eq!(shown[1].1, shown[2].1);
            pipes.extend([shown[0].1.clone(), shown[1].1.clone()]);
        }
        pipes.sort();
        pipes.dedup();
        assert_eq!(pipes.len(), 100, "no pipe is in two commands");
        for one in started {
            assert_eq!(one.finish().await.0.code, Some(1), "end of input");
        }
    });
}

/// Polls all futures at once.
async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, done) in &mut waiting {
            if done.is_none() {
                if let std::task::Poll::Ready(value) = future.as_mut().poll(context) {
                    *done = Some(value);
                }
            }
        }
        if waiting.iter().all(|(_, done)| done.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    waiting.into_iter().map(|(_, done)| done.unwrap()).collect()
}

#[test]
fn missing_descriptors_are_dev_null_and_are_not_shared() {
    with_launcher(1, async |launcher, _| {
        let argv = ["/bin/sleep", "1000"];
        let mut running = launcher.launch(quiet(&root_with(0), &argv), Target::Own, DEADLINE).await.unwrap();
        eventually_in_runtime(|| descriptors(running.pid()).len() == 3).await;
        let shown = descriptors(running.pid());
        assert!(shown.iter().all(|(_, target)| target == "/dev/null"), "{shown:?}");
        running.end(std::time::Duration::ZERO).await;
        running.clean_up().await;
    });
}

#[test]
fn the_launcher_and_parked_children_hold_only_their_sockets() {
    with_launcher_process(2, async |_, root, pid| {
        eventually_in_runtime(|| subdirectories(&root.join("jobs")).len() == 2).await;
        // While it answers a request it holds more.
        eventually_in_runtime(|| {
            let launcher = descriptors(pid);
            let sockets = launcher.iter().filter(|(_, target)| target.starts_with("socket:")).count();
            sockets == 1
                && launcher
                    .iter()
                    .all(|(_, target)| target.starts_with("socket:") || target == "/dev/null")
        })
        .await;
        let parked = || -> Vec<u32> {
            subdirectories(&root.join("jobs"))
                .iter()
                .flat_map(|job| {
                    let list = fs::read_to_string(job.join("cgroup.procs")).unwrap();
                    list.lines().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()
                })
                .collect()
        };
        eventually_in_runtime(|| parked().len() == 2).await;
        for child in parked() {
            eventually_in_runtime(|| descriptors(child).len() == 4).await;
            let shown = descriptors(child);
            assert!(shown[..3].iter().all(|(_, target)| target == "/dev/null"), "{shown:?}");
            assert!(shown[3].1.starts_with("socket:"), "{shown:?}");
        }
    });
}
