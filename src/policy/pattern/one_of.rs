//! `{ one_of = [ELEMENT..] }`: the first that fits.
//!
//! Where every alternative takes exactly one argument it is a value, here. Otherwise it is compiled to branches: the first
//! alternative with which the rest of the arguments matches too is taken.

use std::sync::Arc;

use super::{Kind, Lean, Part, Value};
use crate::policy::text::either;

/// Alternatives that a message names.
const NAMED: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct OneOf(pub(super) Box<[Arc<Part>]>);

/// What is wrong with a number of alternatives.
pub(super) fn check(alternatives: usize) -> Result<(), String> {
    if alternatives == 0 {
        return Err("`one_of` lists nothing: it could never match".to_owned());
    }
    Ok(())
}

impl OneOf {
    /// Alternatives that are plain text.
    pub(super) fn literals(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter_map(|part| match &part.value {
            Value::Literal(literal) => Some(&*literal.0),
            _ => None,
        })
    }
}

impl Kind for OneOf {
    /// An alternative that leans on no open question is preferred, so that nothing is asked without need.
    fn accepts(&self, text: &[u8], lead: bool, lean: &mut Lean<'_>) -> bool {
        let before = lean.open.clone();
        let mut leaning = None;
        for part in &self.0 {
            lean.open.clone_from(&before);
            if !part.accepts(text, lead, lean) {
                continue;
            }
            if lean.open.len() == before.len() {
                return true;
            }
            leaning.get_or_insert_with(|| lean.open.clone());
        }
        let found = leaning.is_some();
        lean.open = leaning.unwrap_or(before);
        found
    }

    fn shape(&self) -> String {
        let shapes: Vec<String> = self.0.iter().map(|part| part.shape()).collect();
        format!("(?:{})", shapes.join("|"))
    }

    fn leads(&self) -> bool {
        true
    }

    fn expected(&self) -> String {
        let mut words: Vec<String> = self.0.iter().take(NAMED).map(|part| part.expected()).collect();
        if self.0.len() > NAMED {
            words.push(format!("one of {} more", self.0.len() - NAMED));
        }
        match words.len() {
            1 => either(&words),
            _ => format!("one of {}", either(&words)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::Lean;
    use crate::policy::facts::Facts;
    use crate::policy::pattern::testing::{accepts, dash, fails, literal, matches, one_of, part, sequence, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn each_alternative_may_match() {
        let state = one_of(vec![literal("on"), literal("off"), value(ElementKind::Int { min: 0, max: 1 })]);
        for yes in ["on", "off", "0"] {
            assert!(accepts(&state, yes));
        }
        for no in ["", "onoff", "ON", "2"] {
            assert!(!accepts(&state, no));
        }
    }

    #[test]
    fn alternatives_may_take_several_arguments() {
        let args = [one_of(vec![literal("a"), sequence(vec![literal("a"), literal("b")])]), literal("c")];
        assert!(matches(&args, &["a", "c"]));
        assert!(matches(&args, &["a", "b", "c"]));
        assert!(!matches(&args, &["b", "c"]));
        assert!(!matches(&args, &["a", "b"]));
    }

    #[test]
    fn the_dash_rule_holds_for_each_alternative() {
        let kinds = one_of(vec![literal("-a"), value(ElementKind::Any)]);
        assert!(accepts(&kinds, "-a"));
        assert!(!accepts(&kinds, "-b"));
        assert!(accepts(&dash(kinds), "-b"));
    }

    #[test]
    fn nothing_is_asked_where_another_alternative_serves() {
        let path = value(ElementKind::PathUnder {
            base: PathBuf::from("/proc"),
            new: false,
            links_to: vec![],
            caller_writable: false,
        });
        let either = part(&one_of(vec![path, literal("/proc/mdstat")]));
        let facts = Facts::new();
        let mut lean = Lean::new(&facts);
        assert!(either.accepts(b"/proc/mdstat", true, &mut lean));
        assert!(lean.open.is_empty());
        assert!(either.accepts(b"/proc/stat", true, &mut lean));
        assert_eq!(lean.open.len(), 1);
    }

    #[test]
    fn an_empty_choice_is_an_error() {
        assert!(fails(&one_of(vec![])).contains("nothing"));
    }
}
