//! What may stand right after an options element: nothing that could be taken for one of its options.

use super::compile::{Body, Compiler, Reported};
use super::options::{Key, OptionSet};
use super::program::Inst;
use super::{Arena, Lean, Part, Value, shape};
use crate::policy::facts::Facts;
use crate::policy::text::quoted;

const HINT: &str = "options end at the first argument that is none: put a literal in between, or a pattern that none of them matches";

/// Reports every options element whose end is not clear.
pub(super) fn check(compiler: &mut Compiler, body: &Body) -> Result<(), Reported> {
    let mut result = Ok(());
    for (at, span) in &body.options {
        let Some(Inst::Options(index)) = body.insts.get(*at) else {
            continue;
        };
        let conflict = compiler
            .arena
            .option_set(*index)
            .and_then(|set| conflict(&compiler.arena, body, set, at + 1));
        if let Some(message) = conflict {
            result = compiler.fail(*span, message, HINT);
        }
    }
    result
}

/// The first conflict among the instructions that can be next from `start` on.
fn conflict(arena: &Arena, body: &Body, set: &OptionSet, start: usize) -> Option<String> {
    let mut seen = vec![false; body.insts.len()];
    let mut todo = vec![start];
    while let Some(at) = todo.pop() {
        match seen.get_mut(at) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        let found = match body.insts.get(at)? {
            Inst::Take(part) => part_conflict(arena.part(*part)?, set),
            Inst::Many { part, min, .. } => {
                if *min == 0 {
                    todo.push(at + 1);
                }
                part_conflict(arena.part(*part)?, set)
            }
            Inst::Split { first, second } => {
                todo.extend([*first as usize, *second as usize]);
                None
            }
            Inst::Jump(target) => {
                todo.push(*target as usize);
                None
            }
            Inst::Options(index) => {
                let other = arena.option_set(*index)?;
                if !other.entries.iter().any(|entry| entry.required) {
                    todo.push(at + 1);
                }
                options_conflict(set, other)
            }
            Inst::Command(_) => set.keys.iter().find(|key| !key.spelling.starts_with(b"-")).map(|key| {
                format!(
                    "the command after these options could be taken for the option {}",
                    quoted(&key.spelling)
                )
            }),
            Inst::Accept => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn part_conflict(part: &Part, set: &OptionSet) -> Option<String> {
    let key = set.keys.iter().find(|key| may_be(part, key))?;
    Some(format!(
        "what follows these options ({}) could be taken for the option {}",
        part.expected(),
        quoted(&key.spelling)
    ))
}

fn options_conflict(set: &OptionSet, other: &OptionSet) -> Option<String> {
    let same = |a: &Key, b: &Key| match (a.joined, b.joined) {
        (false, false) => a.spelling == b.spelling,
        (true, false) => b.spelling.starts_with(&a.spelling),
        (false, true) => a.spelling.starts_with(&b.spelling),
        (true, true) => a.spelling.starts_with(&b.spelling) || b.spelling.starts_with(&a.spelling),
    };
    let key = set.keys.iter().find(|key| other.keys.iter().any(|other| same(key, other)))?;
    Some(format!("the option {} can come from two `options` elements", quoted(&key.spelling)))
}

/// Whether the part takes an argument that is this option.
fn may_be(part: &Part, key: &Key) -> bool {
    if !key.joined {
        let facts = Facts::lexical();
        return part.accepts(&key.spelling, true, &mut Lean::new(&facts));
    }
    may_begin_with(part, &key.spelling)
}

/// Whether the part takes an argument that begins so. May say yes too often, never no.
fn may_begin_with(part: &Part, prefix: &[u8]) -> bool {
    match &part.value {
        Value::Literal(literal) => literal.0.starts_with(prefix),
        Value::OneOf(one_of) => one_of.0.iter().any(|part| may_begin_with(part, prefix)),
        value => {
            let dash = part.dash || prefix.first() != Some(&b'-') || value.kind().leads();
            dash && shape::parse(&part.shape()).map_or(true, |hir| shape::may_begin_with(&hir, prefix))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{concat, dash, fails_all, literal, one_of, option, optional, options, repeat, sequence, value};
    use crate::policy::spec::{Element, ElementKind};

    fn any() -> Element {
        value(ElementKind::Any)
    }

    fn wait() -> Element {
        options(vec![option(&["-w", "--wait="], Some(value(ElementKind::Int { min: 0, max: 9 })))])
    }

    fn words() -> Element {
        options(vec![option(&["dev"], Some(value(ElementKind::Interface)))])
    }

    #[test]
    fn what_cannot_be_an_option_may_follow() {
        for next in [
            any(),
            literal("-x"),
            literal("--wait"),
            value(ElementKind::Regex("-[rf]+".to_owned())),
            value(ElementKind::Int { min: -9, max: 9 }),
            options(vec![option(&["-n"], None)]),
            concat(vec![literal("--x="), any()]),
        ] {
            assert_eq!(fails_all(&[wait(), next.clone()]), "", "{next:?}");
        }
        assert_eq!(fails_all(&[repeat(sequence(vec![literal("--"), wait()]), 1, None)]), "");
    }

    #[test]
    fn what_could_be_an_option_is_an_error() {
        for next in [
            literal("-w"),
            literal("--wait=5"),
            dash(any()),
            value(ElementKind::Regex("-[a-z]".to_owned())),
            value(ElementKind::Regex("--[a-z]+=?.*".to_owned())),
            one_of(vec![literal("x"), literal("-w")]),
            concat(vec![literal("--wa"), value(ElementKind::Regex(".*".to_owned()))]),
            options(vec![option(&["--wait=", "-q"], Some(any()))]),
            options(vec![option(&["--wait=7"], None)]),
        ] {
            assert!(fails_all(&[wait(), next.clone()]).contains("option"), "{next:?}");
        }
    }

    #[test]
    fn what_follows_is_found_through_groups() {
        assert!(fails_all(&[wait(), optional(literal("x")), literal("-w")]).contains("-w"));
        assert!(fails_all(&[wait(), repeat(literal("x"), 0, None), literal("-w")]).contains("-w"));
        assert!(fails_all(&[repeat(wait(), 1, None)]).contains("two"));
        assert!(fails_all(&[wait(), options(vec![option(&["-n"], None)]), literal("-w")]).contains("-w"));
        assert_eq!(fails_all(&[wait(), literal("x"), literal("-w")]), "");
    }

    #[test]
    fn options_without_a_dash_are_compared_too() {
        assert!(fails_all(&[words(), value(ElementKind::Interface)]).contains("dev"));
        assert!(fails_all(&[words(), any()]).contains("dev"));
        assert_eq!(fails_all(&[words(), literal("up")]), "");
        assert_eq!(fails_all(&[words(), value(ElementKind::Mac)]), "");
        let command = value(ElementKind::Command(crate::policy::spec::InnerFilters::Any));
        assert!(fails_all(&[words(), command.clone()]).contains("dev"));
        assert_eq!(fails_all(&[wait(), command]), "");
    }
}
