//! Messages about files: `file:line:col: error: what`, the source line, a caret, a hint.

use std::path::PathBuf;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The policy is void.
    Error,
    /// It is not.
    Warning,
}

/// One message. `Display` renders it over several lines.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Stable, kebab-case: `unknown-key`, `unsafe-owner`.
    pub code: &'static str,
    /// The file or directory.
    pub file: PathBuf,
    /// From 1; 0 where it is about the file as a whole.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// How many characters the caret underlines.
    pub length: u32,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The line itself.
    pub source_line: Option<String>,
}
