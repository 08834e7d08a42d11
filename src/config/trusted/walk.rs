//! The walk from `/` to a file: every component opened with O_PATH | O_NOFOLLOW below the one before, and looked at.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, openat, readlinkat};
use rustix::io::Errno;

use super::{Identity, Untrusted};

/// As many as the kernel follows: path_resolution(7).
const MAXIMUM_LINKS: usize = 40;

/// Whose a component may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    /// Only root's, and writable by nobody else.
    Root,
    /// Anybody's: for files under review.
    Anybody,
}

/// Where a walk ended.
#[derive(Debug)]
pub(crate) struct Found {
    /// O_PATH.
    pub descriptor: OwnedFd,
    /// Of the descriptor.
    pub stat: Stat,
    /// Its directory and its name there; `None` for `/`.
    place: Option<(OwnedFd, OsString)>,
    /// Without symlinks.
    path: PathBuf,
}

impl Found {
    pub fn is_regular(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::RegularFile
    }

    pub fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::Directory
    }

    /// Opens the directory for listing.
    pub fn list(&self) -> Result<OwnedFd, Untrusted> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.descriptor, ".", flags, Mode::empty()).map_err(|errno| Untrusted::from_errno(&self.path, errno))
    }

    /// Reads the file, at most `limit` bytes; what is opened is compared with what was checked.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, Untrusted> {
        let failed = |error: String| Untrusted::Io {
            path: self.path.clone(),
            error,
        };
        let (directory, name) = match &self.place {
            Some(place) if self.is_regular() => place,
            _ => return Err(failed("not a regular file".into())),
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let descriptor =
            openat(directory, name.as_os_str(), flags, Mode::empty()).map_err(|errno| Untrusted::from_errno(&self.path, errno))?;
        let stat = fstat(&descriptor).map_err(|errno| Untrusted::from_errno(&self.path, errno))?;
        if Identity::of(&stat) != Identity::of(&self.stat) {
            return Err(failed("changed while it was looked at; try again".into()));
        }
        let mut bytes = Vec::new();
        File::from(descriptor)
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| failed(error.to_string()))?;
        if bytes.len() as u64 > limit {
            return Err(failed(format!("larger than {limit} bytes")));
        }
        Ok(bytes)
    }
}

/// Walks to `path`, which must be absolute.
pub(crate) fn walk(path: &Path, owners: Owners) -> Result<Found, Untrusted> {
    if !path.is_absolute() {
        return Err(Untrusted::Io {
            path: path.to_owned(),
            error: "not an absolute path".into(),
        });
    }
    let mut walker = Walker::new(path, owners)?;
    while let Some(name) = walker.ahead.pop_front() {
        walker.step(&name)?;
    }
    walker.finish()
}

struct Walker {
    owners: Owners,
    /// Below which everything is; also where absolute symlinks lead.
    root: Place,
    /// From the root's children down to where the walk is.
    behind: Vec<Place>,
    ahead: VecDeque<OsString>,
    links: usize,
}

struct Place {
    descriptor: OwnedFd,
    stat: Stat,
    name: OsString,
}

impl Walker {
    fn new(path: &Path, owners: Owners) -> Result<Self, Untrusted> {
        let root = Path::new("/");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = open(root, flags, Mode::empty()).map_err(|errno| Untrusted::from_errno(root, errno))?;
        let stat = fstat(&descriptor).map_err(|errno| Untrusted::from_errno(root, errno))?;
        check(root, &stat, owners)?;
        Ok(Self {
            owners,
            root: Place {
                descriptor,
                stat,
                name: OsString::new(),
            },
            behind: Vec::new(),
            ahead: components(path),
            links: 0,
        })
    }

    fn here(&self) -> &Place {
        self.behind.last().unwrap_or(&self.root)
    }

    fn path(&self) -> PathBuf {
        let mut path = PathBuf::from("/");
        path.extend(self.behind.iter().map(|place| &place.name));
        path
    }

    fn step(&mut self, name: &OsStr) -> Result<(), Untrusted> {
        if name == ".." {
            if FileType::from_raw_mode(self.here().stat.st_mode) != FileType::Directory {
                return Err(Untrusted::from_errno(&self.path(), Errno::NOTDIR));
            }
            self.behind.pop();
            return Ok(());
        }
        let path = self.path().join(name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let failed = |errno: Errno| Untrusted::from_errno(&path, errno);
        let descriptor = openat(&self.here().descriptor, name, flags, Mode::empty()).map_err(failed)?;
        let stat = fstat(&descriptor).map_err(failed)?;
        check(&path, &stat, self.owners)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return self.follow(&path, descriptor.as_fd());
        }
        self.behind.push(Place {
            descriptor,
            stat,
            name: name.to_owned(),
        });
        Ok(())
    }

    fn follow(&mut self, path: &Path, link: std::os::fd::BorrowedFd<'_>) -> Result<(), Untrusted> {
        self.links += 1;
        if self.links > MAXIMUM_LINKS {
            return Err(Untrusted::from_errno(path, Errno::LOOP));
        }
        let target = readlinkat(link, "", Vec::new()).map_err(|errno| Untrusted::from_errno(path, errno))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            self.behind.clear();
        }
        let mut ahead = components(&target);
        ahead.append(&mut self.ahead);
        self.ahead = ahead;
        Ok(())
    }

    fn finish(mut self) -> Result<Found, Untrusted> {
        let path = self.path();
        let Some(last) = self.behind.pop() else {
            return Ok(Found {
                descriptor: self.root.descriptor,
                stat: self.root.stat,
                place: None,
                path,
            });
        };
        let directory = self.behind.pop().unwrap_or(self.root).descriptor;
        Ok(Found {
            descriptor: last.descriptor,
            stat: last.stat,
            place: Some((directory, last.name)),
            path,
        })
    }
}

fn components(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

/// Whether nobody but root can change this component. The mode of a symlink means nothing.
fn check(path: &Path, stat: &Stat, owners: Owners) -> Result<(), Untrusted> {
    if owners == Owners::Anybody {
        return Ok(());
    }
    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    let why = if stat.st_uid != 0 {
        format!("owned by uid {}, not by root", stat.st_uid)
    } else if !is_link && stat.st_mode & 0o002 != 0 {
        "writable by everybody".into()
    } else if !is_link && stat.st_mode & 0o020 != 0 {
        format!("writable by its group (gid {})", stat.st_gid)
    } else {
        return Ok(());
    };
    Err(Untrusted::Unsafe {
        component: path.to_owned(),
        why,
    })
}

/// The target of a symlink in an open directory; `None` where the name is no symlink.
pub(crate) fn link_target(directory: &OwnedFd, name: &OsStr) -> Option<PathBuf> {
    let target = readlinkat(directory, name, Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
}
