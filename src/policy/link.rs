//! What filters must agree on among themselves: names, inner commands, and the life of a command whose caller is gone.

use super::BuildError;
use super::hash::Map;
use super::index::Filter;
use super::pattern::{Arena, Compiler, Inst};
use super::spec::{FilterSpec, OnDisconnect, Placement};

const DETACH_HINT: &str = "set placement = \"caller\": the command then lives in the caller's cgroup and is accounted there";

/// What one filter must keep by itself.
pub(super) fn check(compiler: &mut Compiler, filter: &FilterSpec) {
    let execution = &filter.execution;
    let detached = execution.on_disconnect == OnDisconnect::Detach;
    if detached && !filter.inner_only && execution.placement == Placement::Own {
        compiler.report(
            filter.span,
            format!(
                "the filter `{}` says on_disconnect = \"detach\" with placement = \"own\"",
                filter.name
            ),
            DETACH_HINT,
        );
    }
    if filter.command.spelled.is_empty()
        || filter
            .command
            .spelled
            .iter()
            .any(|spelled| spelled.is_empty() || spelled.contains('\0'))
    {
        compiler.report(filter.command.span, "the command has no name", "");
    }
}

/// Gives every `command` element the filters that it names; reports what does not go together.
pub(super) fn names(filters: &[Filter], arena: &mut Arena, errors: &mut Vec<BuildError>) {
    let mut by_name: Map<&str, u32> = Map::default();
    by_name.reserve(filters.len());
    for (at, filter) in (0..).zip(filters) {
        if by_name.insert(&filter.spec.name, at).is_some() {
            errors.push(error(
                &filter.spec,
                format!("there are two filters `{}`", filter.spec.name),
                "names are unique in a policy",
            ));
        }
    }
    for outer in filters.iter().filter(|filter| filter.compiled.takes_command) {
        let elements: Vec<u32> = arena
            .program(outer.compiled.program)
            .iter()
            .filter_map(|inst| if let Inst::Command(inner) = inst { Some(*inner) } else { None })
            .collect();
        for element in elements {
            let Some(inner) = arena.inner_mut().get_mut(element as usize).filter(|inner| inner.filters.is_some()) else {
                continue;
            };
            let mut found = Vec::new();
            for (name, span) in &inner.named {
                let target = by_name.get(name.as_str()).and_then(|at| Some((*at, filters.get(*at as usize)?)));
                let problem = match target {
                    None => Some((
                        format!("there is no filter `{name}`"),
                        "name a filter of this policy that is not disabled",
                    )),
                    Some((at, target)) => {
                        found.push(at);
                        conflict(outer, target)
                    }
                };
                if let Some((message, hint)) = problem {
                    let span = *span;
                    errors.push(BuildError {
                        span,
                        ..error(&outer.spec, message, hint)
                    });
                }
            }
            found.sort_unstable();
            found.dedup();
            inner.filters = Some(found.into());
        }
    }
}

/// Why one filter cannot stand behind the other.
fn conflict(outer: &Filter, inner: &Filter) -> Option<(String, &'static str)> {
    let name = &inner.spec.name;
    let (ours, theirs) = (&outer.spec.execution, &inner.spec.execution);
    if inner.compiled.takes_command {
        let message = format!("the filter `{name}` has a `command` element itself");
        return Some((message, "commands go one level deep"));
    }
    if inner.compiled.signal.is_some() {
        return Some((format!("the filter `{name}` sends a signal and runs nothing"), "use it on its own"));
    }
    if let (Some(ours), Some(theirs)) = (&ours.run_as.ids, &theirs.run_as.ids) {
        if ours != theirs {
            let message = format!("the filter `{name}` has another run_as than `{}`", outer.spec.name);
            return Some((message, "both commands run as one user: make run_as equal"));
        }
    }
    if theirs.on_disconnect == OnDisconnect::Detach && ours.placement == Placement::Own {
        let message = format!("the filter `{name}` says on_disconnect = \"detach\", and this filter has placement = \"own\"");
        return Some((message, DETACH_HINT));
    }
    None
}

fn error(filter: &FilterSpec, message: String, hint: &str) -> BuildError {
    BuildError {
        span: filter.span,
        message,
        hint: Some(hint.to_owned()),
    }
}
