//! `{ command = true | ["filter", ..] }`: the rest is a command that must be allowed itself.
//!
//! Last element only, one level deep, same run_as. Which filters these are is settled when all filters of the policy are
//! known (see [`crate::policy::index`]).

use super::compile::{Body, Compiler};
use super::program::Inst;
use crate::policy::spec::{InnerFilters, Span};

/// One `command` element of a policy.
#[derive(Debug)]
pub(in crate::policy) struct Inner {
    /// The filters by name, as the file has them; empty: any that the caller may use.
    pub(in crate::policy) named: Vec<(String, Span)>,
    /// The same by index into the policy's filters, in ascending order; `None`: any.
    pub(in crate::policy) filters: Option<Box<[u32]>>,
}

impl Inner {
    /// Whether this filter may allow the inner command.
    pub(in crate::policy) fn admits(&self, filter: u32) -> bool {
        self.filters.as_ref().is_none_or(|filters| filters.binary_search(&filter).is_ok())
    }

    /// In words.
    pub(in crate::policy) fn expected(&self) -> String {
        let names: Vec<String> = self.named.iter().map(|(name, _)| format!("`{name}`")).collect();
        if names.is_empty() {
            "a command that one of your filters allows".to_owned()
        } else {
            format!("a command that the filter {} allows", crate::policy::text::either(&names))
        }
    }
}

/// Compiles one `command` element.
pub(super) fn emit(compiler: &mut Compiler, body: &mut Body, span: Span, filters: &InnerFilters) {
    let (named, filters) = match filters {
        InnerFilters::Any => (Vec::new(), None),
        // Filled in later; until then nothing is admitted.
        InnerFilters::Named(names) => (names.clone(), Some(Box::default())),
    };
    if filters.is_some() && named.is_empty() {
        compiler.report(
            span,
            "`command` names no filter",
            "write `command = true` for every filter of the caller",
        );
    }
    let index = u32::try_from(compiler.arena.inner.len()).unwrap_or(u32::MAX);
    compiler.arena.inner.push(Inner { named, filters });
    body.push(Inst::Command(index));
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{fails_all, literal, optional, repeat, value};
    use crate::policy::spec::{ElementKind, InnerFilters};

    #[test]
    fn it_stands_last_and_not_in_a_repetition() {
        let command = || value(ElementKind::Command(InnerFilters::Any));
        assert!(fails_all(&[literal("x"), command()]).is_empty());
        assert!(fails_all(&[literal("x"), optional(command())]).is_empty());
        assert!(fails_all(&[command(), literal("x")]).contains("last element"));
        assert!(fails_all(&[repeat(command(), 1, None)]).contains("last element"));
        assert!(fails_all(&[value(ElementKind::Concat(vec![command()]))]).contains("one argument"));
        assert!(fails_all(&[value(ElementKind::Command(InnerFilters::Named(vec![])))]).contains("no filter"));
    }
}
