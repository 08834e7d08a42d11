//! The compiled policy: filters by command.

use super::spec::{PolicySpec, Span};

/// What is wrong with a filter, found while compiling it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// Where.
    pub span: Span,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// A compiled policy. Immutable; the daemon swaps whole policies.
#[derive(Debug, Default)]
pub struct Policy {
    _private: (),
}

impl Policy {
    /// Compiles all filters; returns every error, not only the first.
    ///
    /// # Errors
    /// Regular expressions that do not compile, ambiguous options, unknown filters in `command`, and so on.
    pub fn build(_spec: PolicySpec) -> Result<Self, Vec<BuildError>> {
        todo!()
    }

    /// SHA-256 of the files, for `ROOTWRAP_POLICY`.
    #[must_use]
    pub fn hash(&self) -> &[u8; 32] {
        todo!()
    }

    /// The files that it was built from, in order.
    #[must_use]
    pub fn files(&self) -> &[std::path::PathBuf] {
        todo!()
    }

    /// `file:line` of a filter of this policy.
    #[must_use]
    pub fn source(&self, _filter: &super::spec::FilterSpec) -> String {
        todo!()
    }

    /// All filters in the order in which they are tried.
    pub fn filters(&self) -> impl Iterator<Item = &std::sync::Arc<super::spec::FilterSpec>> {
        std::iter::empty()
    }

    /// How many filters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
