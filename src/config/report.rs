//! Everything that was found wrong so far; rendered and sorted at the end.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use super::document::Document;
use super::{Diagnostic, Severity};
use crate::policy::spec::Span;

/// More messages than anybody reads.
const MAXIMUM_MESSAGES: usize = 1000;

/// Collects messages; spans become lines and columns when all files are known.
#[derive(Debug, Default)]
pub(crate) struct Report {
    findings: RefCell<Vec<Finding>>,
    errors: Cell<usize>,
}

#[derive(Debug)]
struct Finding {
    place: Place,
    severity: Severity,
    code: &'static str,
    message: String,
    hint: Option<String>,
}

#[derive(Debug)]
enum Place {
    Span(Span),
    Path(PathBuf),
}

impl Report {
    pub fn new() -> Self {
        Self::default()
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.errors.get()
    }

    pub fn error(&self, span: Span, code: &'static str, message: &str, hint: &str) {
        self.add(Place::Span(span), Severity::Error, code, message, Some(hint));
    }

    /// An error that says itself what to do.
    pub fn plain_error(&self, span: Span, code: &'static str, message: &str) {
        self.add(Place::Span(span), Severity::Error, code, message, None);
    }

    pub fn warning(&self, span: Span, code: &'static str, message: &str, hint: &str) {
        self.add(Place::Span(span), Severity::Warning, code, message, Some(hint));
    }

    /// An error about a file or directory as a whole.
    pub fn path_error(&self, path: &Path, code: &'static str, message: &str, hint: Option<&str>) {
        self.add(Place::Path(path.to_owned()), Severity::Error, code, message, hint);
    }

    /// A warning about a file or directory as a whole.
    pub fn path_warning(&self, path: &Path, code: &'static str, message: &str, hint: Option<&str>) {
        self.add(Place::Path(path.to_owned()), Severity::Warning, code, message, hint);
    }

    fn add(&self, place: Place, severity: Severity, code: &'static str, message: &str, hint: Option<&str>) {
        if severity == Severity::Error {
            self.errors.set(self.errors.get().saturating_add(1));
        }
        self.findings.borrow_mut().push(Finding {
            place,
            severity,
            code,
            message: message.to_owned(),
            hint: hint.map(str::to_owned),
        });
    }

    /// All messages: those about paths first, then in the order of files and lines.
    pub fn into_diagnostics(self, documents: &[Document]) -> Vec<Diagnostic> {
        let mut findings = self.findings.into_inner();
        findings.sort_by(|a, b| {
            a.place
                .key()
                .cmp(&b.place.key())
                .then_with(|| a.severity.rank().cmp(&b.severity.rank()))
        });
        // Errors are never the ones left out.
        if findings.len() > MAXIMUM_MESSAGES {
            let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
            let mut warnings_left = MAXIMUM_MESSAGES.saturating_sub(errors);
            findings.retain(|finding| {
                finding.severity == Severity::Error || {
                    let keep = warnings_left > 0;
                    warnings_left = warnings_left.saturating_sub(1);
                    keep
                }
            });
            findings.truncate(MAXIMUM_MESSAGES);
        }
        let mut diagnostics: Vec<Diagnostic> = findings.into_iter().map(|finding| finding.render(documents)).collect();
        diagnostics.dedup();
        diagnostics
    }
}

impl Severity {
    fn rank(self) -> u8 {
        match self {
            Self::Error => 0,
            Self::Warning => 1,
        }
    }
}

impl Place {
    fn key(&self) -> (u8, &Path, u32, u32, u32) {
        match self {
            Self::Path(path) => (0, path, 0, 0, 0),
            Self::Span(span) => (1, Path::new(""), span.file, span.start, span.end),
        }
    }
}

impl Finding {
    fn render(self, documents: &[Document]) -> Diagnostic {
        let (file, position) = match self.place {
            Place::Path(path) => (path, None),
            Place::Span(span) => match documents.get(span.file as usize) {
                Some(document) => (document.path.clone(), Some(document.position(span))),
                None => (PathBuf::new(), None),
            },
        };
        let (line, column, length, source_line) = match position {
            Some(position) => (position.line, position.column, position.length, Some(position.source_line)),
            None => (0, 0, 0, None),
        };
        Diagnostic {
            severity: self.severity,
            code: self.code,
            file,
            line,
            column,
            length,
            message: self.message,
            hint: self.hint,
            source_line,
        }
    }
}
