//! Files in memory that nobody can change: memfd_create(2) with seals.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, SeekFrom};
use rustix::io::Errno;

/// A close-on-exec file that holds `data`, to be read from its start; its contents and length are sealed. `name` is what
/// /proc/PID/fd shows.
///
/// # Errors
/// EMFILE, ENOMEM and others of memfd_create(2) and write(2).
pub fn sealed(name: &str, data: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know NOEXEC_SEAL.
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags)?,
        other => other?,
    };
    let mut rest = data;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = rest.get(written..).unwrap_or_default();
    }
    rustix::fs::seek(&file, SeekFrom::Start(0))?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_data_then_it_is_read_from_the_start_and_cannot_be_changed() {
        let file = sealed("test", b"hello").unwrap();
        assert_eq!(rustix::io::write(&file, b"x").unwrap_err(), Errno::PERM);
        let mut buffer = [0; 16];
        assert_eq!(rustix::io::read(&file, &mut buffer).unwrap(), 5);
        assert_eq!(&buffer[..5], b"hello");
        assert!(rustix::io::fcntl_getfd(&file).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }
}
