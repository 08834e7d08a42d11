//! Attributes that are set through proc(5), and file contents by descriptor.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd};

use sha2::{Digest, Sha256};

/// oom_score_adj. A default of 0 that lies below what this process may set is left as it is: the command is then killed sooner,
/// never later. Anything else that cannot be set is an error.
pub(super) fn set_oom_score(score: i32) -> io::Result<()> {
    const PATH: &str = "/proc/self/oom_score_adj";
    let now = read_number(PATH)?;
    if now == i64::from(score) {
        return Ok(());
    }
    match fs::write(PATH, score.to_string()) {
        Err(error) if score == 0 && now > 0 && error.raw_os_error() == Some(libc::EACCES) => Ok(()),
        other => other,
    }
}

/// The caller's loginuid, so that the kernel's audit records name the person. It is set already where the service was started by
/// hand; the kernel then lets CAP_AUDIT_CONTROL change it, unless it is immutable: an error where it differs.
pub(super) fn set_loginuid(loginuid: u32) -> io::Result<()> {
    const PATH: &str = "/proc/self/loginuid";
    if read_number(PATH)? == i64::from(loginuid) {
        return Ok(());
    }
    fs::write(PATH, loginuid.to_string())
}

/// SHA-256 of the file behind a descriptor, which may be O_PATH.
pub(super) fn sha256(file: BorrowedFd<'_>) -> io::Result<[u8; 32]> {
    let mut file = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if length == 0 {
            return Ok(hash.finalize().into());
        }
        hash.update(buffer.get(..length).unwrap_or_default());
    }
}

fn read_number(path: &str) -> io::Result<i64> {
    let text = fs::read_to_string(path)?;
    text.trim().parse().map_err(|_| io::Error::from_raw_os_error(libc::EBADMSG))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsFd;

    #[test]
    fn a_file_is_hashed_through_a_descriptor_that_cannot_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("abc");
        fs::write(&path, "abc").unwrap();
        let file = rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
        let digest = sha256(file.as_fd()).unwrap();
        assert_eq!(&digest[..4], [0xba, 0x78, 0x16, 0xbf]);
    }
}
