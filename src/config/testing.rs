//! What the tests of this module share.

/// A fresh directory below which everything up to `/` is root's. Tests of owners run as root.
pub fn root_directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("rootwrap-test").tempdir_in("/run").unwrap()
}
