//! `{ repeat = ELEMENT }` with `min` (1) and `max`: the element several times, as often as the rest allows.

use super::compile::{Body, Compiler, Marks, Place, Reported};
use super::program::Inst;
use crate::policy::decision::MAX_ARGUMENTS;
use crate::policy::spec::Element;

/// What is wrong with the bounds.
pub(super) fn check(min: u32, max: Option<u32>) -> Result<(), String> {
    match max {
        Some(0) => Err("`max = 0` allows nothing: leave the element out".to_owned()),
        Some(max) if min > max => Err(format!("`min = {min}` is more than `max = {max}`")),
        _ if min as usize > MAX_ARGUMENTS => Err(format!(
            "`min = {min}` is more than the {MAX_ARGUMENTS} arguments that a command can have"
        )),
        _ => Ok(()),
    }
}

/// Compiles a repetition: a loop where there is no upper bound, a counter for a single value, else copies.
pub(super) fn emit(
    compiler: &mut Compiler,
    body: &mut Body,
    (item, min, max): (&Element, u32, Option<u32>),
    marks: Marks,
    place: Place,
) -> Result<(), Reported> {
    // An iteration that takes nothing changes nothing: more than all arguments are as good as no bound.
    let max = max.filter(|max| (*max as usize) < MAX_ARGUMENTS);
    if let (Some(max), Some(part)) = (max.and_then(|max| u16::try_from(max).ok()), compiler.value(item, marks)?) {
        let min = u16::try_from(min).unwrap_or(max);
        body.push(Inst::Many { part, min, max });
        return Ok(());
    }
    for _ in 0..min {
        compiler.emit(body, item, marks, place.before_others())?;
    }
    match max {
        None => {
            let split = body.hole();
            compiler.emit(body, item, marks, place.before_others())?;
            body.push(Inst::Jump(split));
            let second = body.here();
            body.fill(split, Inst::Split { first: split + 1, second });
        }
        Some(max) => {
            let mut splits = Vec::new();
            for _ in min..max {
                splits.push(body.hole());
                compiler.emit(body, item, marks, place.before_others())?;
            }
            let second = body.here();
            for split in splits {
                body.fill(split, Inst::Split { first: split + 1, second });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{fails, literal, matches, one_of, optional, repeat, sequence, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn bounds_count_iterations() {
        for item in [literal("x"), one_of(vec![literal("x"), sequence(vec![literal("y"), literal("z")])])] {
            let args = [repeat(item, 2, Some(3))];
            for (count, expected) in [(0, false), (1, false), (2, true), (3, true), (4, false)] {
                assert_eq!(matches(&args, &vec!["x"; count]), expected, "{count}");
            }
        }
    }

    #[test]
    fn iterations_may_take_several_arguments() {
        let args = [repeat(sequence(vec![literal("dev"), value(ElementKind::Interface)]), 1, None)];
        assert!(matches(&args, &["dev", "a", "dev", "b"]));
        assert!(!matches(&args, &["dev", "a", "dev"]));
        assert!(!matches(&args, &[]));
    }

    #[test]
    fn it_gives_back_what_the_rest_needs() {
        let args = [
            repeat(value(ElementKind::Any), 0, None),
            literal("x"),
            repeat(value(ElementKind::Any), 0, Some(1)),
        ];
        assert!(matches(&args, &["x"]));
        assert!(matches(&args, &["a", "x", "b"]));
        assert!(matches(&args, &["x", "x", "x"]));
        assert!(!matches(&args, &["x", "a", "b"]));
    }

    #[test]
    fn empty_iterations_count_and_end() {
        let args = [repeat(optional(literal("x")), 3, Some(5))];
        for (count, expected) in [(0, true), (2, true), (5, true), (6, false)] {
            assert_eq!(matches(&args, &vec!["x"; count]), expected, "{count}");
        }
        assert!(matches(&[repeat(repeat(optional(literal("x")), 0, None), 0, None)], &["x"; 50]));
    }

    #[test]
    fn impossible_bounds_are_errors() {
        assert!(fails(&repeat(literal("x"), 2, Some(1))).contains("more than"));
        assert!(fails(&repeat(literal("x"), 0, Some(0))).contains("max = 0"));
        assert!(fails(&repeat(literal("x"), 5000, None)).contains("4096"));
        let wide = repeat(repeat(sequence(vec![literal("x"), literal("y")]), 1, Some(1000)), 1, Some(1000));
        assert!(fails(&wide).contains("instructions"));
    }
}
