//! `{ list = VALUE }` with `separator`: one argument made of items; `,` is the usual separator.
//!
//! The text is cut at every separator and each piece is judged: an item never holds the separator, and an empty item is
//! only good where the value takes empty text.

use std::sync::Arc;

use super::{Kind, Lean, Part, Value, shape};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct List {
    pub(super) item: Arc<Part>,
    pub(super) separator: Box<str>,
}

/// What is wrong with an item and its separator.
pub(super) fn check(item: &Part, separator: &str) -> Result<(), String> {
    if separator.is_empty() {
        return Err("a list needs a separator of one character or more".to_owned());
    }
    let holds = |text: &[u8]| text.windows(separator.len()).any(|piece| piece == separator.as_bytes());
    let literals: Vec<&[u8]> = match &item.value {
        Value::Literal(literal) => vec![&literal.0],
        Value::OneOf(one_of) => one_of.literals().collect(),
        _ => Vec::new(),
    };
    match literals.into_iter().find(|text| holds(text)) {
        Some(text) => Err(format!(
            "the item {} holds the separator: it could never match",
            crate::policy::text::quoted(text)
        )),
        None => Ok(()),
    }
}

/// The pieces between separators; at least one.
fn items<'t>(text: &'t [u8], separator: &[u8]) -> Vec<&'t [u8]> {
    let mut items = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(separator) {
            items.push(text.get(start..at).unwrap_or_default());
            at += separator.len();
            start = at;
        } else {
            at += 1;
        }
    }
    items.push(text.get(start..).unwrap_or_default());
    items
}

impl Kind for List {
    fn accepts(&self, text: &[u8], mut lead: bool, lean: &mut Lean<'_>) -> bool {
        // A dash that is the separator's, behind an empty item, is nobody's.
        if lead && text.first() == Some(&b'-') && self.separator.starts_with('-') {
            return false;
        }
        let questions = lean.open.len();
        for item in items(text, self.separator.as_bytes()) {
            if !self.item.accepts(item, lead, lean) {
                lean.open.truncate(questions);
                return false;
            }
            lead = false;
        }
        true
    }

    fn shape(&self) -> String {
        let item = self.item.shape();
        format!("(?:{item}(?:{}{item})*)", shape::escape(self.separator.as_bytes()))
    }

    fn leads(&self) -> bool {
        true
    }

    fn expected(&self) -> String {
        format!(
            "a list, separated by {}, of items that are each {}",
            crate::policy::text::quoted(self.separator.as_bytes()),
            self.item.expected()
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{accepts, concat, dash, fails, list, literal, one_of, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn every_item_must_fit() {
        let options = list(
            one_of(vec![
                literal("ro"),
                literal("nosuid"),
                concat(vec![literal("vers="), value(ElementKind::Int { min: 3, max: 4 })]),
            ]),
            ",",
        );
        for yes in ["ro", "ro,nosuid", "vers=3,ro,vers=4", "ro,ro"] {
            assert!(accepts(&options, yes), "{yes}");
        }
        for no in ["", ",", "ro,", ",ro", "ro,,ro", "ro,suid", "ro nosuid", "vers=5", "ro,vers=3\n"] {
            assert!(!accepts(&options, no), "{no:?}");
        }
    }

    #[test]
    fn separators_may_be_longer() {
        let list = list(value(ElementKind::Regex("a?".to_owned())), "::");
        for (text, expected) in [
            ("a::a", true),
            ("a::", true),
            ("", true),
            ("a:a", false),
            (":::", false),
            ("::::", true),
        ] {
            assert_eq!(accepts(&list, text), expected, "{text:?}");
        }
    }

    #[test]
    fn only_the_first_item_begins_the_argument() {
        let list = list(value(ElementKind::Any), ",");
        assert!(accepts(&list, "a,-b"));
        assert!(!accepts(&list, "-a,b"));
    }

    #[test]
    fn items_that_could_never_match_are_errors() {
        assert!(fails(&list(literal("a,b"), ",")).contains("separator"));
        assert!(fails(&list(one_of(vec![literal("a"), literal("b,")]), ",")).contains("separator"));
        assert!(fails(&list(literal("a"), "")).contains("separator"));
    }

    #[test]
    fn a_separator_that_is_a_dash_does_not_let_an_argument_begin_with_one() {
        let maybe = || value(ElementKind::Regex("[a-z]*".to_owned()));
        let dashes = list(maybe(), "-");
        assert!(accepts(&dashes, "a-b") && accepts(&dashes, "a-") && accepts(&dashes, ""));
        for no in ["-", "-a", "--evil"] {
            assert!(!accepts(&dashes, no), "{no}");
            assert!(accepts(&dash(dashes.clone()), no), "{no}");
        }
    }
}
