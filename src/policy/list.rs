//! What a caller may run: the answer to `ListFilters`.

use super::{Policy, Subject};

/// One filter of a caller, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// `file:line`.
    pub source: String,
    /// As the filter spells it; alternatives with `|`.
    pub command: String,
    /// The arguments: `link set dev INTERFACE mtu INT[68-65535]`.
    pub pattern: String,
    /// Names of capabilities(7), or `all`.
    pub capabilities: Vec<&'static str>,
    /// The user that it runs as.
    pub run_as: String,
    /// Only behind another filter's command.
    pub inner_only: bool,
}

/// The filters that this caller may use, in the order in which they are tried.
pub fn list<'a>(_policy: &'a Policy, _subject: &'a Subject) -> impl Iterator<Item = Listed> + 'a {
    std::iter::empty()
}
