//! Paths that only root can change: every component root-owned and writable by nobody else.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// An executable whose path was walked component by component. Only [`open_executable`] makes it.
#[derive(Debug)]
pub struct VerifiedExecutable {
    descriptor: std::sync::Arc<OwnedFd>,
    path: PathBuf,
}

impl VerifiedExecutable {
    /// O_PATH descriptor of the file itself.
    #[must_use]
    pub fn descriptor(&self) -> &std::sync::Arc<OwnedFd> {
        &self.descriptor
    }
    /// The path as the filter spells it (final symlinks not resolved): what is executed, and argv\[0\].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
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

/// Opens an executable, checking owner and mode of every component, symlinks and what they lead to included.
///
/// # Errors
/// [`Untrusted`].
pub fn open_executable(_path: &Path) -> Result<VerifiedExecutable, Untrusted> {
    todo!()
}
