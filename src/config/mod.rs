//! Files into policies: TOML, directories with masking, owner checks, names, diagnostics, and the service's own settings.
//!
//! Everything that is wrong is reported in one go, as `file:line:col` with the source line. Any error makes the whole
//! policy void; warnings do not.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

mod accounts;
mod callers;
mod capabilities;
mod command;
pub mod diagnostic;
mod directories;
mod document;
mod duration;
mod element;
mod execution;
mod file;
mod filter;
mod identity;
mod load;
mod paths;
mod reader;
mod report;
mod run_as;
pub mod settings;
mod suggest;
#[cfg(test)]
pub(crate) mod testing;
pub mod tests_runner;
mod tests_table;
pub mod trusted;
mod unsupported;
mod variables;
mod world;
mod writable;

use std::path::PathBuf;

pub use diagnostic::{Diagnostic, Severity};
pub use load::load;
pub use settings::Settings;
pub use tests_runner::{TestResult, run_tests};

use crate::policy::Policy;

/// Where policies are read from, and how strictly.
#[derive(Clone, Debug)]
pub struct Source {
    /// filters.d directories; a file of a later one masks the file of the same name in an earlier one.
    pub directories: Vec<PathBuf>,
    /// Single files to load instead (for `check FILE`).
    pub files: Vec<PathBuf>,
    /// Whether owners and modes are checked; only `check` and offline `explain` may switch this off.
    pub check_owners: bool,
}

/// What a load gives.
#[derive(Debug)]
pub struct Loaded {
    /// Ready to decide.
    pub policy: Policy,
    /// The `[[test]]`s of all files.
    pub tests: Vec<TestCase>,
    /// Warnings: unknown users, lints.
    pub warnings: Vec<Diagnostic>,
}

/// One `[[test]]`.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// Where it stands: `file:line`.
    pub source: String,
    /// Index of its file in the policy, for a test without `as`.
    pub file: u32,
    /// The command.
    pub argv: Vec<Vec<u8>>,
    /// `as`: a user, a number, or a table of user, group, groups, unit, label.
    pub subject: Option<crate::policy::Subject>,
    /// A user or group of `as` that does not exist here: the subject is a stranger then.
    pub unknown: Option<String>,
    /// `env`.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// `cwd = true`: the caller passes its directory.
    pub has_cwd: bool,
    /// `expect`.
    pub allow: bool,
    /// The filter that must allow it.
    pub filter: Option<String>,
    /// The capabilities that it must get, as bits.
    pub capabilities: Option<crate::policy::spec::Capabilities>,
}
