//! Small files of proc(5), with as few system calls as that takes: they are read for every caller.

use std::mem::MaybeUninit;

use rustix::fs::{Mode, OFlags};

/// Far more than any of them holds; a longer one is cut.
const LIMIT: usize = 16 * 1024;

/// Reads /proc/PID/NAME; `None` where the process or the right to is not there.
#[must_use]
pub fn read(pid: u32, name: &str) -> Option<Vec<u8>> {
    let file = rustix::fs::open(format!("/proc/{pid}/{name}"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut contents = Vec::with_capacity(1024);
    loop {
        let mut piece = [MaybeUninit::uninit(); 1024];
        let (read, rest) =
            rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut piece).map(|(read, rest)| (read.to_vec(), rest.len()))).ok()?;
        contents.extend_from_slice(&read);
        // These files are made in one go: a read that had room left has seen all of it.
        if rest > 0 || contents.len() >= LIMIT {
            return Some(contents);
        }
    }
}

/// As [`read`], for text without the blanks around it.
#[must_use]
pub fn read_text(pid: u32, name: &str) -> Option<String> {
    String::from_utf8(read(pid, name)?.trim_ascii().to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_process_then_its_files_are_read_whole() {
        let own = std::process::id();
        let expected = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        assert_eq!(read(own, "cgroup").unwrap(), expected.as_bytes());
        let long = read(own, "status").unwrap();
        assert!(long.len() > 1024 && long.ends_with(b"\n"));
        assert!(read(own, "no-such-file").is_none() && read(0, "comm").is_none());
    }
}
