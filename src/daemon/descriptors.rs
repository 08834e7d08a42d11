//! What callers may pass as standard input, output and error, and as working directory.
//!
//! The caller opened them, so it could read or write them itself; a privileged command that does so on its behalf must not reach
//! further. Refused are: O_PATH descriptors, directories (but as working directory), block devices, character devices other than
//! terminals and the like of /dev/null, what is no file at all (io_uring, epoll, pidfds), and files of proc(5), sysfs(5) and their
//! like, whose reads and writes are judged by who makes them, not by who opened them. Pipes, sockets, regular files, memfds,
//! terminals, /dev/null, /dev/zero, /dev/full, /dev/random and /dev/urandom are fine.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, OFlags};

use crate::protocol::run::RunDescriptors;

/// Judges all descriptors of a call.
///
/// # Errors
/// Which one, and why not.
pub fn check(descriptors: &RunDescriptors) -> Result<(), String> {
    let streams = [
        ("standard input", &descriptors.stdin),
        ("standard output", &descriptors.stdout),
        ("standard error", &descriptors.stderr),
    ];
    for (name, descriptor) in streams {
        if let Some(descriptor) = descriptor {
            stream(descriptor).map_err(|why| format!("{name} {why}"))?;
        }
    }
    match &descriptors.cwd {
        Some(directory) => self::directory(directory).map_err(|why| format!("the working directory {why}")),
        None => Ok(()),
    }
}

fn stream(descriptor: &OwnedFd) -> Result<(), String> {
    let unreadable = |error| format!("cannot be looked at: {error}");
    if rustix::fs::fcntl_getfl(descriptor).map_err(unreadable)?.contains(OFlags::PATH) {
        return Err("is opened with O_PATH".into());
    }
    let stat = rustix::fs::fstat(descriptor).map_err(unreadable)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::Socket => Ok(()),
        FileType::RegularFile => regular(descriptor),
        FileType::CharacterDevice if is_harmless_device(stat.st_rdev) || rustix::termios::isatty(descriptor) => Ok(()),
        FileType::CharacterDevice => Err("is a device that is neither a terminal nor like /dev/null".into()),
        FileType::BlockDevice => Err("is a block device".into()),
        FileType::Directory => Err("is a directory".into()),
        _ => Err("is no pipe, socket, file or terminal".into()),
    }
}

/// null, zero, full, random, urandom of Documentation/admin-guide/devices.txt.
fn is_harmless_device(device: u64) -> bool {
    rustix::fs::major(device) == 1 && matches!(rustix::fs::minor(device), 3 | 5 | 7 | 8 | 9)
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

fn regular(descriptor: &OwnedFd) -> Result<(), String> {
    let statfs = rustix::fs::fstatfs(descriptor).map_err(|error| format!("cannot be looked at: {error}"))?;
    // The field's width and sign differ between architectures; the types are 32 bits.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
    let kind = (statfs.f_type as u64) & 0xffff_ffff;
    if ASKING.contains(&kind) {
        return Err("is a file of proc, sysfs or their like".into());
    }
    Ok(())
}

fn directory(descriptor: &OwnedFd) -> Result<(), String> {
    let stat = rustix::fs::fstat(descriptor).map_err(|error| format!("cannot be looked at: {error}"))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok(()),
        _ => Err("is no directory".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::Mode;

    fn open(path: &str, flags: OFlags) -> OwnedFd {
        rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    fn judged(stdin: OwnedFd) -> Result<(), String> {
        check(&RunDescriptors {
            stdin: Some(stdin),
            ..RunDescriptors::default()
        })
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
        let with_cwd = |cwd| RunDescriptors {
            cwd: Some(cwd),
            ..RunDescriptors::default()
        };
        check(&with_cwd(open("/", OFlags::PATH))).unwrap();
        check(&with_cwd(open("/", OFlags::RDONLY))).unwrap();
        assert!(check(&with_cwd(open("/dev/null", OFlags::RDONLY))).is_err());
    }
}
