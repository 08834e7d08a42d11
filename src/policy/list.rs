//! What a caller may run: the answer to `ListFilters`.

use super::{Policy, Subject, capability};

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
pub fn list<'a>(policy: &'a Policy, subject: &'a Subject) -> impl Iterator<Item = Listed> + 'a {
    policy.all().iter().filter(|filter| filter.admits(subject)).map(|filter| Listed {
        name: filter.spec.name.clone(),
        source: policy.source(&filter.spec),
        command: filter.spec.command.spelled.join("|"),
        pattern: filter.compiled.pattern.to_string(),
        capabilities: capability::names(filter.spec.execution.capabilities),
        run_as: filter.spec.execution.run_as.user.clone(),
        inner_only: filter.spec.inner_only,
    })
}
