//! Directories of cgroup2: make, kill, wait until empty, remove. See cgroups(7) and the kernel's cgroup-v2 documentation.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// A cgroup that this process made and removes. Dropping it removes nothing.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes the cgroup `path`; its parent must be on a cgroup2 mount.
    ///
    /// # Errors
    /// EEXIST and all others of mkdir(2).
    pub fn create(path: PathBuf) -> io::Result<Self> {
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755))?;
        Ok(Self { path })
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An O_PATH descriptor, for CLONE_INTO_CGROUP.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.path, flags, Mode::empty())?)
    }

    /// SIGKILL to every process in it and below it, forks in flight included.
    ///
    /// # Errors
    /// Those of write(2).
    pub fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// The processes directly in it and in all cgroups below, as numbers of this pid namespace.
    ///
    /// # Errors
    /// Those of reading.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        let mut all = Vec::new();
        for directory in self.directories()? {
            let list = match fs::read_to_string(directory.join("cgroup.procs")) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            all.extend(list.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid > 1));
        }
        Ok(all)
    }

    /// `cgroup.events`, for [`is_populated`]; it raises POLLPRI after each change once it has been read.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open_events(&self) -> io::Result<File> {
        File::open(self.path.join("cgroup.events"))
    }

    /// Removes it and what the command made below it. Gone already is fine.
    ///
    /// # Errors
    /// EBUSY while a process is in it or below.
    pub fn remove(&self) -> io::Result<()> {
        match remove_directory(&self.path) {
            // It holds processes, or cgroups that hold none.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            other => return other,
        }
        for directory in self.directories()?.iter().rev() {
            remove_directory(directory)?;
        }
        Ok(())
    }

    /// It and all below it, parents first.
    fn directories(&self) -> io::Result<Vec<PathBuf>> {
        let mut all = vec![self.path.clone()];
        let mut next = 0;
        while let Some(directory) = all.get(next).cloned() {
            next += 1;
            let entries = match fs::read_dir(&directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            for entry in entries {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    all.push(entry.path());
                }
            }
        }
        Ok(all)
    }
}

/// Whether a process is in the cgroup of this `cgroup.events` or below it.
///
/// # Errors
/// Those of reading; ENODEV when the cgroup is gone.
pub fn is_populated(events: &File) -> io::Result<bool> {
    let mut buffer = [0; 256];
    let length = rustix::io::retry_on_intr(|| rustix::io::pread(events, &mut buffer[..], 0))?;
    let text = buffer.get(..length).unwrap_or_default();
    Ok(!text.split(|byte| *byte == b'\n').any(|line| line == b"populated 0"))
}

fn remove_directory(path: &Path) -> io::Result<()> {
    match rustix::fs::rmdir(path) {
        Err(rustix::io::Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}
