//! What callers may pass as standard input, output and error, and as working directory.
//!
//! The caller opened them, so it could read or write them itself; a privileged command that does so on its behalf must not reach
//! further. Refused are: O_PATH descriptors, directories (but as working directory), block devices, character devices other than
//! terminals and the like of /dev/null, what is no file at all (io_uring, epoll, pidfds), and files of proc(5), sysfs(5) and their
//! like, whose reads and writes are judged by who makes them, not by who opened them. Pipes, sockets, regular files, memfds,
//! terminals, /dev/null, /dev/zero, /dev/full, /dev/random and /dev/urandom are fine.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{FileType, OFlags, Statx};
use tokio::sync::oneshot;

use super::slow::{self, Slow};
use crate::protocol::run::RunDescriptors;
use crate::sys::passed::PassedFd;

/// How long a file system may take to say of what kind it is.
const DEADLINE: Duration = Duration::from_secs(5);

/// Judges all descriptors of a call of this user. What has to be asked of a file system is asked in a thread of the user's own.
///
/// # Errors
/// Which one, and why not.
pub async fn check(descriptors: &RunDescriptors, slow: &Slow, uid: u32) -> Result<(), String> {
    let streams = [
        ("standard input", &descriptors.stdin),
        ("standard output", &descriptors.stdout),
        ("standard error", &descriptors.stderr),
    ];
    for (name, descriptor) in streams {
        if let Some(descriptor) = descriptor {
            stream(descriptor, slow, uid).await.map_err(|why| format!("{name} {why}"))?;
        }
    }
    match &descriptors.cwd {
        Some(directory) => self::directory(directory).map_err(|why| format!("the working directory {why}")),
        None => Ok(()),
    }
}

/// Whether it is a terminal. Asks nobody but terminals and other devices.
#[must_use]
pub fn is_terminal(descriptor: &PassedFd) -> bool {
    slow::stat(descriptor).is_ok_and(|stat| kind(&stat) == FileType::CharacterDevice) && rustix::termios::isatty(descriptor)
}

fn kind(stat: &Statx) -> FileType {
    FileType::from_raw_mode(stat.stx_mode.into())
}

async fn stream(descriptor: &PassedFd, slow: &Slow, uid: u32) -> Result<(), String> {
    if rustix::fs::fcntl_getfl(descriptor).map_err(unreadable)?.contains(OFlags::PATH) {
        return Err("is opened with O_PATH".into());
    }
    let stat = slow::stat(descriptor).map_err(unreadable)?;
    let device = (stat.stx_rdev_major, stat.stx_rdev_minor);
    match kind(&stat) {
        FileType::Fifo | FileType::Socket => Ok(()),
        // Those that are to be refused are on no device.
        FileType::RegularFile if stat.stx_dev_major != 0 => Ok(()),
        FileType::RegularFile => regular(descriptor, slow, uid).await,
        FileType::CharacterDevice if is_harmless_device(device) || rustix::termios::isatty(descriptor) => Ok(()),
        FileType::CharacterDevice => Err("is a device that is neither a terminal nor like /dev/null".into()),
        FileType::BlockDevice => Err("is a block device".into()),
        FileType::Directory => Err("is a directory".into()),
        _ => Err("is no pipe, socket, file or terminal".into()),
    }
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("cannot be looked at: {error}")
}

/// null, zero, full, random, urandom of Documentation/admin-guide/devices.txt.
fn is_harmless_device(device: (u32, u32)) -> bool {
    matches!(device, (1, 3 | 5 | 7 | 8 | 9))
}

/// statfs(2) types of file systems that ask at every read or write who makes it.
const ASKING: &[u64] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6367_7270, // cgroup2
    0x0027_e0eb, // cgroup
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0x6265_6570, // configfs
    0xcafe_4a11, // bpf
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
    0x5049_4446, // pidfs
];

async fn regular(descriptor: &PassedFd, slow: &Slow, uid: u32) -> Result<(), String> {
    let file = descriptor.as_fd().try_clone_to_owned().map_err(unreadable)?;
    let (sender, kind) = oneshot::channel();
    let asked = slow.run(uid, move || {
        // Nobody may be waiting any more.
        let _ = sender.send(rustix::fs::fstatfs(&file));
        drop(file);
    });
    asked.map_err(|_| unreadable("too many others are waited for"))?;
    let statfs = tokio::time::timeout(DEADLINE, kind).await;
    let statfs = statfs.map_err(|_| unreadable("its file system does not answer"))?;
    let statfs = statfs.map_err(unreadable)?.map_err(unreadable)?;
    // The field's width and sign differ between architectures; the types are 32 bits.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
    let kind = (statfs.f_type as u64) & 0xffff_ffff;
    if ASKING.contains(&kind) {
        return Err("is a file of proc, sysfs or their like".into());
    }
    Ok(())
}

fn directory(descriptor: &PassedFd) -> Result<(), String> {
    match slow::stat(descriptor).map(|stat| kind(&stat)).map_err(unreadable)? {
        FileType::Directory => Ok(()),
        _ => Err("is no directory".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::Mode;
    use std::os::fd::OwnedFd;

    fn open(path: &str, flags: OFlags) -> OwnedFd {
        rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    fn judged(stdin: OwnedFd) -> Result<(), String> {
        verdict(&RunDescriptors {
            stdin: Some(stdin.into()),
            ..RunDescriptors::default()
        })
    }

    fn verdict(descriptors: &RunDescriptors) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(descriptors, &Slow::default(), 1))
    }

    #[test]
    fn given_pipes_sockets_files_and_null_then_they_are_taken() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let (socket, _peer) = crate::sys::socket::pair().unwrap();
        let memfd = rustix::fs::memfd_create("m", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let file = tempfile::tempfile().unwrap().into();
        let null = open("/dev/null", OFlags::RDWR);
        for descriptor in [read, write, socket, memfd, file, null] {
            judged(descriptor).unwrap();
        }
    }

    #[test]
    fn given_what_a_privileged_command_could_be_led_astray_with_then_it_is_refused() {
        let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
        for (descriptor, says) in [
            (open("/etc/passwd", OFlags::PATH), "O_PATH"),
            (open("/", OFlags::RDONLY), "directory"),
            (open("/proc/self/oom_score_adj", OFlags::RDWR), "proc"),
            (open("/proc/self/stat", OFlags::RDONLY), "proc"),
            (epoll, "no pipe"),
        ] {
            let why = judged(descriptor).unwrap_err();
            assert!(why.starts_with("standard input is") && why.contains(says), "{why}");
        }
    }

    #[test]
    fn given_a_working_directory_then_it_must_be_one() {
        let with_cwd = |cwd: OwnedFd| RunDescriptors {
            cwd: Some(cwd.into()),
            ..RunDescriptors::default()
        };
        verdict(&with_cwd(open("/", OFlags::PATH))).unwrap();
        verdict(&with_cwd(open("/", OFlags::RDONLY))).unwrap();
        assert!(verdict(&with_cwd(open("/dev/null", OFlags::RDONLY))).is_err());
    }
}
