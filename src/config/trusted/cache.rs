//! Verified executables, kept open: what did not change is not walked to again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Identity, Untrusted, VerifiedExecutable, open_executable};

/// Each entry holds a descriptor open.
const MAXIMUM_ENTRIES: usize = 512;

/// Executables by path. A look-up costs one stat(2) while the path leads to the same, unchanged file, else a whole walk.
///
/// What the stat cannot see is a directory on the way that others may write *since* the walk: only root can have done that.
#[derive(Debug, Default)]
pub struct ExecutableCache {
    entries: Mutex<HashMap<PathBuf, Arc<VerifiedExecutable>>>,
}

impl ExecutableCache {
    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The executable at `path`, verified now or found unchanged since.
    ///
    /// # Errors
    /// As [`open_executable`]; errors are not kept.
    pub fn open(&self, path: &Path) -> Result<Arc<VerifiedExecutable>, Untrusted> {
        let known = self.lock().get(path).cloned();
        if let Some(known) = known {
            if rustix::fs::stat(path).is_ok_and(|stat| Identity::of(&stat) == known.identity) {
                return Ok(known);
            }
        }
        let verified = open_executable(path).map(Arc::new);
        let mut entries = self.lock();
        match &verified {
            Ok(verified) => {
                if entries.len() >= MAXIMUM_ENTRIES && !entries.contains_key(path) {
                    entries.clear();
                }
                entries.insert(path.to_owned(), Arc::clone(verified));
            }
            Err(_) => {
                entries.remove(path);
            }
        }
        verified
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<VerifiedExecutable>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::root_directory;
    use std::os::unix::fs::{PermissionsExt, chown};

    fn program(path: &Path) {
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn given_no_change_then_the_same_descriptor_comes_back() {
        let directory = root_directory();
        let path = directory.path().join("tool");
        program(&path);
        let cache = ExecutableCache::new();
        let first = cache.open(&path).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.open(&path).unwrap()));
    }

    #[test]
    fn given_a_replaced_file_then_the_new_one_comes_back() {
        let directory = root_directory();
        let path = directory.path().join("tool");
        program(&path);
        let cache = ExecutableCache::new();
        let first = cache.open(&path).unwrap();
        program(&directory.path().join("new"));
        std::fs::rename(directory.path().join("new"), &path).unwrap();
        assert_ne!(first.device_and_inode(), cache.open(&path).unwrap().device_and_inode());
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(cache.open(&path), Err(Untrusted::Missing(_))));
    }

    #[test]
    fn given_a_new_owner_then_it_is_refused() {
        let directory = root_directory();
        let path = directory.path().join("tool");
        program(&path);
        let cache = ExecutableCache::new();
        cache.open(&path).unwrap();
        chown(&path, Some(1500), None).unwrap();
        assert!(matches!(cache.open(&path), Err(Untrusted::Unsafe { .. })));
    }

    #[test]
    fn given_more_paths_than_fit_then_it_stays_bounded() {
        let directory = root_directory();
        let cache = ExecutableCache::new();
        program(&directory.path().join("tool"));
        for number in 0..MAXIMUM_ENTRIES + 3 {
            let path = directory.path().join(format!("t{number}"));
            std::fs::hard_link(directory.path().join("tool"), &path).unwrap();
            cache.open(&path).unwrap();
        }
        assert!(cache.lock().len() <= MAXIMUM_ENTRIES);
    }

    #[test]
    fn given_a_path_that_somebody_keeps_exchanging_then_only_verified_files_come_back() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let directory = root_directory();
        let at = |name: &str| directory.path().join(name);
        program(&at("good"));
        program(&at("evil"));
        chown(at("evil"), Some(1500), None).unwrap();
        std::fs::hard_link(at("good"), at("tool")).unwrap();
        let inode = rustix::fs::stat(at("good")).unwrap().st_ino;
        let (cache, ready) = (ExecutableCache::new(), AtomicBool::new(false));
        std::thread::scope(|threads| {
            let exchanging = threads.spawn(|| {
                for turn in 0..100_000 {
                    let spare = at(if turn % 2 == 0 { "spare-evil" } else { "spare-good" });
                    std::fs::hard_link(at(if turn % 2 == 0 { "evil" } else { "good" }), &spare).unwrap();
                    std::fs::rename(&spare, at("tool")).unwrap();
                    // Renaming one link of a file onto another does nothing.
                    let _ = std::fs::remove_file(&spare);
                    ready.store(true, Ordering::Release);
                }
            });
            while !ready.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let mut refused = 0_u32;
            while !exchanging.is_finished() {
                match cache.open(&at("tool")) {
                    Ok(found) => assert_eq!(found.device_and_inode().1, inode as u64),
                    Err(Untrusted::Unsafe { .. } | Untrusted::Missing(_)) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            assert!(refused > 0);
        });
    }
}
