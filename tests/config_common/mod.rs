//! What the tests of files share.
#![allow(dead_code)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rootwrap::config::{Diagnostic, Loaded, Settings, Source, load};

/// A filter that is right; `more` goes into its table.
pub fn filter(name: &str, more: &str) -> String {
    format!("[[filter]]\nname = \"{name}\"\ncommand = \"/bin/sh\"\nargs = []\ncapabilities = []\n{more}\n")
}

pub const CALLERS: &str = "[callers]\nusers = [1500]\n";

/// A directory of root's, with nobody else's above it.
pub fn root_directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("rootwrap-test").tempdir_in("/run").unwrap()
}

pub fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
}

/// Loads one file with this text, owners not asked for.
pub fn load_text(text: &str) -> Result<Loaded, Vec<Diagnostic>> {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("t.toml"), text);
    load_from(&[directory.path().to_owned()], false)
}

pub fn load_from(directories: &[PathBuf], check_owners: bool) -> Result<Loaded, Vec<Diagnostic>> {
    let source = Source {
        directories: directories.to_vec(),
        files: Vec::new(),
        check_owners,
    };
    load(&source, &Settings::default())
}

/// `line:column code` of everything that was said.
pub fn said(result: &Result<Loaded, Vec<Diagnostic>>) -> Vec<String> {
    let diagnostics = match result {
        Ok(loaded) => &loaded.warnings,
        Err(diagnostics) => diagnostics,
    };
    diagnostics.iter().map(|d| format!("{}:{} {}", d.line, d.column, d.code)).collect()
}

/// The messages as people see them, without the directory.
pub fn rendered(diagnostics: &[Diagnostic]) -> String {
    let texts: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| {
            let parent = diagnostic.file.parent().unwrap().display().to_string() + "/";
            diagnostic.to_string().replace(&parent, "")
        })
        .collect();
    texts.join("\n\n")
}

pub fn names(loaded: &Loaded) -> Vec<String> {
    loaded.policy.filters().map(|filter| filter.name.clone()).collect()
}
