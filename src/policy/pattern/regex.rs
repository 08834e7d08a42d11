//! `{ regex = '...' }`: one argument that the whole expression matches.
//!
//! Linear-time engine on bytes; classes, case and word boundaries are ASCII. The expression is parsed alone first and anchored
//! as a syntax tree, not as text: no parenthesis, comment or flag in it can undo the anchors.

use std::hash::{Hash, Hasher};

use regex::bytes::Regex;

use super::{Kind, Lean, shape};

/// Longest expression, in bytes.
const MAX_LENGTH: usize = 16 * 1024;

#[derive(Debug)]
pub(in crate::policy) struct Pattern {
    source: Box<str>,
    regex: Regex,
    shape: Box<str>,
    leads: bool,
}

impl Pattern {
    pub(super) fn new(source: &str) -> Result<Self, String> {
        if source.len() > MAX_LENGTH {
            return Err(format!(
                "the regular expression has {} bytes, at most {MAX_LENGTH} are allowed",
                source.len()
            ));
        }
        let hir = shape::parse(source)?;
        let shape = shape::print(&hir);
        Ok(Self {
            source: source.into(),
            regex: shape::anchored(&shape)?,
            leads: shape::always_begins_with(&hir, b'-'),
            shape: shape.into(),
        })
    }
}

// The same text gives the same expression.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}
impl Eq for Pattern {}
impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}

impl Kind for Pattern {
    fn accepts(&self, text: &[u8], _lead: bool, _lean: &mut Lean<'_>) -> bool {
        self.regex.is_match(text)
    }

    fn shape(&self) -> String {
        self.shape.to_string()
    }

    /// Only when every match begins with a dash: in `-a|b`, `b` would let nothing else through, but `-a|.*` would.
    fn leads(&self) -> bool {
        self.leads
    }

    fn expected(&self) -> String {
        format!("something that matches `{}`", self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;
    use crate::policy::pattern::testing::{accepts, dash, value};
    use crate::policy::spec::ElementKind;

    fn matches(pattern: &str, text: &str) -> bool {
        accepts(&value(ElementKind::Regex(pattern.to_owned())), text)
    }

    #[test]
    fn alternatives_are_anchored_on_both_sides() {
        assert!(matches("set|get", "get"));
        for no in ["set --evil", "xget", "set\n", "get\n", "", "setget"] {
            assert!(!matches("set|get", no), "{no:?}");
        }
    }

    #[test]
    fn flags_cannot_undo_the_anchors() {
        assert!(!matches("(?m)a$", "a\nb"));
        assert!(!matches("(?m)^a", "b\na"));
        assert!(!matches("(?m)^a$", "a\n"));
        assert!(!matches("(?s)a.", "a\n\n"));
        assert!(matches("(?i)AB", "ab"));
        assert!(!matches("(?U)a+", "ab"));
    }

    #[test]
    fn comments_cannot_swallow_the_anchors() {
        assert!(matches("(?x) a # b", "a"));
        assert!(!matches("(?x) a # b", "ab"));
        assert!(!matches("(?x)a#", "a#"));
        assert!(matches("a#b", "a#b"));
    }

    #[test]
    fn parentheses_cannot_leave_the_group() {
        assert!(Pattern::new("a)|(?:b").is_err());
        assert!(Pattern::new("(a").is_err());
        assert!(Pattern::new("a)").is_err());
    }

    #[test]
    fn own_anchors_still_work() {
        assert!(matches("^ab$", "ab"));
        assert!(!matches("^ab$", "ab\n"));
        assert!(matches(r"\Aab\z", "ab"));
    }

    #[test]
    fn bytes_are_matched_and_classes_are_ascii() {
        assert!(matches(r"\d+", "12"));
        assert!(!matches(r"\d+", "\u{661}"));
        assert!(matches("é", "é"));
        assert!(Pattern::new(r"\pL").is_err());
        let any = value(ElementKind::Regex("x.".to_owned()));
        assert!(crate::policy::pattern::testing::accepts_bytes(&any, b"x\xff"));
        assert!(crate::policy::pattern::testing::accepts_bytes(&any, b"x\0"));
        assert!(!crate::policy::pattern::testing::accepts_bytes(&any, b"x\n"));
    }

    #[test]
    fn a_leading_dash_is_taken_only_when_every_match_has_one() {
        assert!(matches("-[rf]+", "-rf"));
        assert!(matches("(-a|-b)", "-b"));
        assert!(matches("^-a", "-a"));
        assert!(!matches("-a|.*", "--evil"));
        assert!(!matches("-?a", "-a"));
        assert!(!matches("[-+]a", "-a"));
        assert!(!matches(".*", "-a"));
        assert!(accepts(&dash(value(ElementKind::Regex(".*".to_owned()))), "-a"));
    }

    #[test]
    fn large_expressions_are_refused_with_the_limit() {
        let long = vec!["abcdefgh"; 10_000].join("|");
        assert!(Pattern::new(&long).unwrap_err().contains("16384"));
        assert!(Pattern::new(&"a".repeat(1 << 20)).is_err());
        assert!(Pattern::new("(a{1000}){1000}").is_err());
    }

    #[test]
    fn nested_repetition_over_a_long_argument_is_linear() {
        assert!(!matches("(a*)*b", &"a".repeat(64 * 1024)));
    }

    /// Pieces of expressions, put together at random. No comments: these could swallow the anchors of the plain way.
    const PIECES: [&str; 30] = [
        "a", "b", "-", "\n", "|", "(", ")", "*", "+", "?", "{2}", "{0}", "{1,}", ".", "^", "$", "[ab]", "[^a]", "(?m)", "(?s)", "(?i)",
        "(?x)", "(?U)", "(?u)", r"\b", r"\A", r"\z", r"\x00", r"\d", "é",
    ];

    proptest::proptest! {
        #[test]
        fn a_pattern_takes_what_the_expression_in_a_group_takes_and_leads_only_where_all_of_it_begins_with_a_dash(
            pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 1..12),
            texts in proptest::collection::vec("[ab0\n\u{0}é-]{0,6}", 1..20),
        ) {
            use crate::policy::pattern::Kind;
            let source: String = pieces.concat();
            let plain = format!(r"\A(?:{source})\z");
            let plain = regex::bytes::RegexBuilder::new(&plain).unicode(false).build();
            if let (Ok(pattern), Ok(plain)) = (Pattern::new(&source), plain) {
                for text in texts {
                    let expected = plain.is_match(text.as_bytes());
                    let facts = crate::policy::facts::Facts::lexical();
                    let got = pattern.accepts(text.as_bytes(), true, &mut crate::policy::pattern::Lean::new(&facts));
                    proptest::prop_assert_eq!(got, expected, "{:?} on {:?}", source, text);
                    proptest::prop_assert!(!(expected && pattern.leads() && !text.starts_with('-')), "{:?} takes {:?}", source, text);
                }
            }
        }
    }
}
