//! Which files count: `*.toml` of all directories, later ones masking earlier ones by name, in the order of names.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Dir;

use super::report::Report;
use super::trusted::Untrusted;
use super::trusted::walk::{Owners, link_target, walk};

/// Bytes of one file, at most.
const MAXIMUM_SIZE: u64 = 16 * 1024 * 1024;

const OWNER_HINT: &str = "whoever can change it decides what runs as root: chown it to root, and chmod go-w";

/// A file's name and contents.
pub(crate) type Contents = (PathBuf, Vec<u8>);

/// Reads the files of directories. What is missing is fine; what is unsafe or cannot be read is reported.
pub(crate) fn read(directories: &[PathBuf], owners: Owners, report: &Report) -> Vec<Contents> {
    let mut files: BTreeMap<OsString, Option<PathBuf>> = BTreeMap::new();
    for directory in directories {
        match names(directory, owners) {
            Ok(names) => {
                for (name, masks) in names {
                    if let Some(why) = skipped(&name) {
                        let hint = "only *.toml counts; remove it, or rename it if it is meant";
                        report.path_warning(&directory.join(&name), "skipped-file", &format!("skipped: {why}"), Some(hint));
                    } else {
                        let path = directory.join(&name);
                        files.insert(name, (!masks).then_some(path));
                    }
                }
            }
            Err(Untrusted::Missing(_)) => {}
            Err(error) => refuse(directory, &error, report),
        }
    }
    files
        .into_values()
        .flatten()
        .filter_map(|path| read_file(&path, owners, report))
        .collect()
}

/// Reads files that were named, in the order of their names.
pub(crate) fn read_files(files: &[PathBuf], owners: Owners, report: &Report) -> Vec<Contents> {
    let mut files: Vec<&PathBuf> = files.iter().collect();
    files.sort_by_key(|path| path.file_name().map(OsStr::to_owned));
    files.dedup();
    files.into_iter().filter_map(|path| read_file(path, owners, report)).collect()
}

/// Reads one file; relative paths are those of `check FILE`.
pub(crate) fn read_file(path: &Path, owners: Owners, report: &Report) -> Option<Contents> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match walk(&absolute, owners).and_then(|found| found.read(MAXIMUM_SIZE)) {
        Ok(bytes) => Some((path.to_owned(), bytes)),
        Err(error) => {
            refuse(path, &error, report);
            None
        }
    }
}

fn is_on_the_way(component: &Path, path: &Path) -> bool {
    std::path::absolute(path).is_ok_and(|path| path.starts_with(component))
}

fn refuse(path: &Path, error: &Untrusted, report: &Report) {
    match error {
        Untrusted::Unsafe { component, why } if is_on_the_way(component, path) => {
            report.path_error(component, "unsafe-owner", why, Some(OWNER_HINT));
        }
        // Behind a symlink: to chmod what it leads to (/tmp, say) is seldom the cure.
        Untrusted::Unsafe { component, why } => {
            let message = format!("a symlink leads to {}, which is {why}", component.display());
            report.path_error(
                path,
                "unsafe-owner",
                &message,
                Some("let it lead to a file that only root can change, or put the file here"),
            );
        }
        Untrusted::Missing(missing) => {
            let hint = "a symlink to nowhere? point it at /dev/null to mask a file";
            report.path_error(path, "unreadable", &format!("{} is not there", missing.display()), Some(hint));
        }
        Untrusted::Io { error, .. } => report.path_error(path, "unreadable", &format!("cannot be read: {error}"), None),
        Untrusted::NotExecutable(_) => report.path_error(path, "unreadable", "cannot be read", None),
    }
}

/// Names in a directory, each with whether it is a symlink to /dev/null.
fn names(directory: &Path, owners: Owners) -> Result<Vec<(OsString, bool)>, Untrusted> {
    let found = walk(&std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned()), owners)?;
    if !found.is_directory() {
        return Err(Untrusted::Io {
            path: directory.to_owned(),
            error: "not a directory".into(),
        });
    }
    let listing = Dir::new(found.list()?).map_err(|errno| Untrusted::from_errno(directory, errno))?;
    let mut names = Vec::new();
    for entry in listing {
        let entry = entry.map_err(|errno| Untrusted::from_errno(directory, errno))?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            let masks = link_target(&found.descriptor, &name).is_some_and(|target| target == Path::new("/dev/null"));
            names.push((name, masks));
        }
    }
    Ok(names)
}

/// Why a name does not count.
fn skipped(name: &OsStr) -> Option<&'static str> {
    let bytes = name.as_bytes();
    let holds = |part: &str| name.to_string_lossy().contains(part);
    if bytes.starts_with(b".") {
        Some("hidden")
    } else if bytes.ends_with(b".toml") {
        None
    } else if bytes.ends_with(b"~") || bytes.ends_with(b".bak") || bytes.ends_with(b".swp") {
        Some("an editor's copy")
    } else if holds(".dpkg-") || holds(".rpm") || holds(".ucf-") {
        Some("a copy by the package manager")
    } else {
        Some("its name does not end in .toml")
    }
}
