//! Questions to probe children.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use rootwrap::launch::{LaunchError, Launcher, ProbeAnswer, ProbeJob, Step, Target};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sha2::{Digest, Sha256};

use crate::support::*;

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_vec()
}

async fn ask(launcher: &Launcher, probe: ProbeJob) -> ProbeAnswer {
    launcher.probe(probe, DEADLINE).await.unwrap()
}

#[test]
fn a_path_below_its_base_is_yes_and_one_that_leaves_it_is_no() {
    with_launcher(1, async |launcher, _| {
        let directory = TrustedDirectory::new();
        let at = |path: &str| directory.0.join(path);
        fs::create_dir_all(at("base/private")).unwrap();
        fs::write(at("base/private/file"), "").unwrap();
        fs::set_permissions(at("base/private"), mode(0o700)).unwrap();
        symlink("/etc/shadow", at("base/evil")).unwrap();
        let question = |path: &str, new| ProbeJob::PathUnder {
            path: bytes(&at(path)),
            base: bytes(&at("base")),
            links_to: vec![],
            new,
        };
        assert_eq!(ask(launcher, question("base/private/file", false)).await, ProbeAnswer::Yes);
        assert_eq!(ask(launcher, question("base/private/new", true)).await, ProbeAnswer::Yes);
        for (path, new) in [
            ("base/private/new", false),
            ("base/evil", false),
            ("base/evil", true),
            ("other", true),
        ] {
            assert!(matches!(ask(launcher, question(path, new)).await, ProbeAnswer::No(_)), "{path}");
        }
    });
}

fn pidfd(pid: u32) -> OwnedFd {
    pidfd_open(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), PidfdFlags::empty()).unwrap()
}

#[test]
fn a_process_is_known_by_the_file_that_it_runs_not_by_its_name() {
    with_launcher(1, async |launcher, _| {
        let directory = TrustedDirectory::new();
        let twin = directory.copy("/bin/sleep", "sleep", 0o755);
        let hard_link = directory.0.join("link");
        fs::hard_link(&twin, &hard_link).unwrap();
        let job = quiet(&nobody_with(0), &[&twin, "1000"]);
        let mut running = launcher.launch(job, Target::Own, DEADLINE).await.unwrap();
        let pid = running.pid();
        let question = |executables: &[&str]| ProbeJob::PidOf {
            pidfd: pidfd(pid),
            pid,
            executables: executables.iter().map(|path| path.as_bytes().to_vec()).collect(),
        };
        assert_eq!(ask(launcher, question(&[&twin])).await, ProbeAnswer::Yes);
        assert_eq!(
            ask(launcher, question(&["/missing", hard_link.to_str().unwrap()])).await,
            ProbeAnswer::Yes
        );
        assert!(matches!(ask(launcher, question(&["/bin/sleep"])).await, ProbeAnswer::No(_)));
        assert!(matches!(ask(launcher, question(&[])).await, ProbeAnswer::No(_)));
        let another = ProbeJob::PidOf {
            pidfd: pidfd(pid),
            pid: std::process::id(),
            executables: vec![twin.as_bytes().to_vec()],
        };
        assert!(
            matches!(ask(launcher, another).await, ProbeAnswer::No(_)),
            "the number of another process"
        );
        // Exchanged on disk: it runs a file that has no path any more.
        fs::remove_file(&hard_link).unwrap();
        let newer = directory.copy("/bin/sleep", "newer", 0o755);
        fs::rename(newer, &twin).unwrap();
        assert!(matches!(ask(launcher, question(&[&twin])).await, ProbeAnswer::No(_)));
        let kept = question(&[&twin]);
        running.end(Duration::ZERO).await;
        assert!(matches!(ask(launcher, kept).await, ProbeAnswer::No(_)), "it is gone");
        running.clean_up().await;
    });
}

#[test]
fn a_digest_is_that_of_the_open_file() {
    with_launcher(1, async |launcher, _| {
        let directory = TrustedDirectory::new();
        let path = directory.copy("/bin/true", "secret", 0o700);
        let expected: [u8; 32] = Sha256::digest(fs::read(&path).unwrap()).into();
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        let executable = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap();
        fs::remove_file(&path).unwrap();
        let answer = ask(launcher, ProbeJob::Digest { executable }).await;
        assert_eq!(answer, ProbeAnswer::Digest(expected));
        let unreadable = fs::File::open("/").unwrap().into();
        let refused = launcher.probe(ProbeJob::Digest { executable: unreadable }, DEADLINE).await;
        assert!(
            matches!(
                refused,
                Err(LaunchError::Step {
                    step: Step::Executable,
                    errno: libc::EISDIR
                })
            ),
            "{refused:?}"
        );
    });
}
