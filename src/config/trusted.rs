//! Paths that only root can change: every component root-owned and writable by nobody else.
//!
//! A path is walked by hand from `/` with O_PATH | O_NOFOLLOW (see `walk`): what was checked is what is held, and a symlink is
//! followed only after it, and the directory that it stands in, were found to be root's.

mod cache;
pub(crate) mod walk;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Stat;

pub use cache::ExecutableCache;
use walk::Owners;

/// An executable whose path was walked component by component. Only [`open_executable`] makes it.
#[derive(Debug)]
pub struct VerifiedExecutable {
    descriptor: Arc<OwnedFd>,
    path: PathBuf,
    identity: Identity,
}

impl VerifiedExecutable {
    /// O_PATH descriptor of the file itself.
    #[must_use]
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.descriptor
    }
    /// The path as the filter spells it (final symlinks not resolved): what is executed, and argv\[0\].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Device and inode of the file, to compare with what is about to be executed.
    #[must_use]
    pub fn device_and_inode(&self) -> (u64, u64) {
        (self.identity.device, self.identity.inode)
    }
}

/// What tells that a file is still the one that was looked at. ctime changes with owner, mode, links and contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Identity {
    // The widths of these fields differ between architectures.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, clippy::cast_possible_wrap)]
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        }
    }
}

/// Why a path is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// It is not there.
    #[error("{0}: no such file")]
    Missing(PathBuf),
    /// Somebody else owns or may write a component.
    #[error("{component}: {why}")]
    Unsafe {
        /// Which component.
        component: PathBuf,
        /// Owner or mode, in words.
        why: String,
    },
    /// It is there, but is no regular file that may be executed.
    #[error("{0}: not an executable regular file")]
    NotExecutable(PathBuf),
    /// The kernel said no.
    #[error("{path}: {error}")]
    Io {
        /// Where.
        path: PathBuf,
        /// errno in words.
        error: String,
    },
}

impl Untrusted {
    pub(crate) fn from_errno(path: &Path, errno: rustix::io::Errno) -> Self {
        match errno {
            rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR => Self::Missing(path.to_owned()),
            other => Self::Io {
                path: path.to_owned(),
                error: std::io::Error::from(other).to_string(),
            },
        }
    }
}

/// Opens an executable, checking owner and mode of every component, symlinks and what they lead to included.
///
/// # Errors
/// [`Untrusted`].
pub fn open_executable(path: &Path) -> Result<VerifiedExecutable, Untrusted> {
    find_executable(path, Owners::Root)
}

/// As [`open_executable`], where owners are asked for only as `owners` says.
pub(crate) fn find_executable(path: &Path, owners: Owners) -> Result<VerifiedExecutable, Untrusted> {
    let found = walk::walk(path, owners)?;
    if !found.is_regular() || found.stat.st_mode & 0o111 == 0 {
        return Err(Untrusted::NotExecutable(path.to_owned()));
    }
    Ok(VerifiedExecutable {
        identity: Identity::of(&found.stat),
        descriptor: Arc::new(found.descriptor),
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::root_directory;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn program(path: &Path) {
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn given_a_program_of_root_then_its_descriptor_is_that_file() {
        let directory = root_directory();
        let path = directory.path().join("tool");
        program(&path);
        let verified = open_executable(&path).unwrap();
        let stat = rustix::fs::fstat(verified.descriptor().as_ref()).unwrap();
        let expected = rustix::fs::stat(&path).unwrap();
        assert_eq!((stat.st_dev, stat.st_ino), (expected.st_dev, expected.st_ino));
        assert_eq!(verified.path(), path);
    }

    #[test]
    fn given_a_link_chain_of_root_then_the_path_stays_as_spelled() {
        let directory = root_directory();
        program(&directory.path().join("real"));
        symlink("real", directory.path().join("first")).unwrap();
        symlink(directory.path().join("first"), directory.path().join("second")).unwrap();
        let verified = open_executable(&directory.path().join("second")).unwrap();
        assert_eq!(verified.path(), directory.path().join("second"));
        let real = rustix::fs::stat(directory.path().join("real")).unwrap();
        assert_eq!(verified.device_and_inode(), (real.st_dev, real.st_ino));
    }

    #[test]
    fn given_a_link_into_a_directory_of_another_user_then_it_is_unsafe() {
        let directory = root_directory();
        let theirs = directory.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        program(&theirs.join("tool"));
        chown(&theirs, Some(1500), Some(1500)).unwrap();
        symlink("theirs/tool", directory.path().join("link")).unwrap();
        let error = open_executable(&directory.path().join("link")).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: owned by uid 1500, not by root", theirs.display()));
    }

    #[test]
    fn given_modes_that_let_others_write_then_it_is_unsafe() {
        let directory = root_directory();
        let path = directory.path().join("tool");
        program(&path);
        for (mode, why) in [(0o775, "writable by its group"), (0o757, "writable by everybody")] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert!(open_executable(&path).unwrap_err().to_string().contains(why), "{mode:o}");
        }
    }

    #[test]
    fn given_what_is_no_program_then_it_says_so() {
        let directory = root_directory();
        let path = directory.path().join("data");
        std::fs::write(&path, "").unwrap();
        assert_eq!(open_executable(&path).unwrap_err(), Untrusted::NotExecutable(path));
        let itself = directory.path().to_owned();
        assert_eq!(open_executable(&itself).unwrap_err(), Untrusted::NotExecutable(itself));
        let missing = directory.path().join("none/at/all");
        assert!(matches!(open_executable(&missing).unwrap_err(), Untrusted::Missing(_)));
        assert!(matches!(open_executable(Path::new("bin/sh")).unwrap_err(), Untrusted::Io { .. }));
    }
}
