//! Which of a permit's executables is run: the first that is there, verified component by component.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;

use crate::config::trusted::{ExecutableCache, Untrusted, VerifiedExecutable};

/// Why none can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// None of them is there.
    Missing,
    /// The first that is there must not be run: somebody else than root could change it, or it is no program.
    Untrusted(String),
}

/// The first candidate that exists. One that exists but is unsafe is not skipped: what the filter means first is not to be run then.
///
/// # Errors
/// [`Unusable`].
pub fn first(cache: &ExecutableCache, candidates: &[PathBuf]) -> Result<Arc<VerifiedExecutable>, Unusable> {
    for candidate in candidates {
        // Spares the walk along the path where it leads nowhere.
        if matches!(rustix::fs::stat(candidate), Err(Errno::NOENT | Errno::NOTDIR)) {
            continue;
        }
        match cache.open(candidate) {
            Ok(executable) => return Ok(executable),
            Err(Untrusted::Missing(_)) => {}
            Err(error) => return Err(Unusable::Untrusted(error.to_string())),
        }
    }
    Err(Unusable::Missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_candidates_then_the_first_that_exists_is_taken() {
        let cache = ExecutableCache::new();
        let candidates = [PathBuf::from("/usr/bin/no-such-program"), PathBuf::from("/usr/bin/env")];
        assert_eq!(first(&cache, &candidates).unwrap().path(), candidates[1]);
        assert_eq!(first(&cache, &candidates[..1]).unwrap_err(), Unusable::Missing);
        assert_eq!(first(&cache, &[]).unwrap_err(), Unusable::Missing);
    }

    #[test]
    fn given_one_that_is_no_program_then_the_next_is_not_tried() {
        let cache = ExecutableCache::new();
        let candidates = [PathBuf::from("/etc/passwd"), PathBuf::from("/usr/bin/env")];
        assert!(matches!(first(&cache, &candidates), Err(Unusable::Untrusted(_))));
    }

    #[test]
    fn given_nothing_in_a_directory_that_others_may_write_then_the_next_is_taken_as_check_says() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let candidates = [directory.path().join("env"), PathBuf::from("/usr/bin/env")];
        let cache = ExecutableCache::new();
        assert_eq!(first(&cache, &candidates).unwrap().path(), candidates[1]);
        std::fs::copy("/usr/bin/env", &candidates[0]).unwrap();
        assert!(matches!(first(&cache, &candidates), Err(Unusable::Untrusted(_))));
    }
}
