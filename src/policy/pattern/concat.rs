//! `{ concat = [VALUE..] }`: one argument made of parts.
//!
//! With one part between fixed text there is only one way to split. Otherwise one regular expression, made of the shapes of the
//! parts, proposes a split and each part judges its piece in full: a wrong split can only refuse.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use regex::bytes::Regex;

use super::{Kind, Lean, Part, Value, shape};

#[derive(Clone, Debug)]
pub(in crate::policy) struct Concat {
    parts: Box<[Arc<Part>]>,
    split: Split,
}

#[derive(Clone, Debug)]
enum Split {
    /// At most one part is not fixed: its index.
    Around(Option<usize>),
    /// A capture group per part.
    Regex(Box<Regex>),
    /// Not compiled: only good for looking up an equal one.
    Unknown,
}

impl Concat {
    /// Not usable before [`Self::compile`].
    pub(super) fn new(parts: Vec<Arc<Part>>) -> Self {
        Self {
            parts: parts.into(),
            split: Split::Unknown,
        }
    }

    /// Makes it usable.
    pub(super) fn compile(&mut self) -> Result<(), String> {
        let mut open = (0..self.parts.len()).filter(|at| self.fixed(*at).is_none());
        let first = open.next();
        self.split = match open.next() {
            None => Split::Around(first),
            Some(_) => {
                let groups: String = self.parts.iter().map(|part| format!("({})", part.shape())).collect();
                Split::Regex(Box::new(shape::compile(&format!(r"\A{groups}\z"))?))
            }
        };
        Ok(())
    }

    /// The text of a part that is a literal.
    fn fixed(&self, at: usize) -> Option<&[u8]> {
        match &self.parts.get(at)?.value {
            Value::Literal(literal) => Some(&literal.0),
            _ => None,
        }
    }

    /// The pieces of the text, one for each part.
    fn pieces<'t>(&self, text: &'t [u8]) -> Option<Vec<&'t [u8]>> {
        match &self.split {
            Split::Unknown => None,
            Split::Regex(regex) => {
                let captures = regex.captures(text)?;
                (1..=self.parts.len()).map(|group| Some(captures.get(group)?.as_bytes())).collect()
            }
            Split::Around(open) => {
                let open = open.unwrap_or(self.parts.len());
                let mut rest = text;
                let mut pieces = Vec::with_capacity(self.parts.len());
                for at in 0..open {
                    let (piece, after) = rest.split_at_checked(self.fixed(at)?.len())?;
                    pieces.push(piece);
                    rest = after;
                }
                let after: usize = (open + 1..self.parts.len()).filter_map(|at| self.fixed(at)).map(<[u8]>::len).sum();
                for at in open..self.parts.len() {
                    let length = if at == open {
                        rest.len().checked_sub(after)?
                    } else {
                        self.fixed(at)?.len()
                    };
                    let (piece, after) = rest.split_at_checked(length)?;
                    pieces.push(piece);
                    rest = after;
                }
                // The fixed parts judge their pieces as well.
                rest.is_empty().then_some(pieces)
            }
        }
    }
}

// Equal parts split alike.
impl PartialEq for Concat {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}
impl Eq for Concat {}
impl Hash for Concat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts.hash(state);
    }
}

impl Kind for Concat {
    fn accepts(&self, text: &[u8], mut lead: bool, lean: &mut Lean<'_>) -> bool {
        let Some(pieces) = self.pieces(text) else {
            return false;
        };
        let questions = lean.open.len();
        for (part, piece) in self.parts.iter().zip(&pieces) {
            if !part.accepts(piece, lead, lean) {
                lean.open.truncate(questions);
                return false;
            }
            // The part that holds the first byte decides about a dash.
            lead &= piece.is_empty();
        }
        pieces.len() == self.parts.len()
    }

    fn shape(&self) -> String {
        format!("(?:{})", self.parts.iter().map(|part| part.shape()).collect::<String>())
    }

    fn leads(&self) -> bool {
        true
    }

    fn expected(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(|part| part.expected()).collect();
        format!("{} in one argument", parts.join(" followed by "))
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{accepts, concat, dash, fails, literal, one_of, value};
    use crate::policy::spec::{Element, ElementKind};

    fn int(min: i64, max: i64) -> Element {
        value(ElementKind::Int { min, max })
    }

    fn regex(pattern: &str) -> Element {
        value(ElementKind::Regex(pattern.to_owned()))
    }

    #[test]
    fn fixed_text_stands_around_one_part() {
        let rate = concat(vec![literal("rate="), int(1, 10), literal("kb"), literal("it")]);
        for (text, expected) in [
            ("rate=7kbit", true),
            ("rate=11kbit", false),
            ("rate=kbit", false),
            ("rate=7", false),
            ("7kbit", false),
            ("rate=7kbit\n", false),
            ("rate=kbi", false),
            ("", false),
        ] {
            assert_eq!(accepts(&rate, text), expected, "{text:?}");
        }
    }

    #[test]
    fn fixed_text_does_not_overlap() {
        let overlap = concat(vec![literal("aba"), regex("x*"), literal("ba")]);
        assert!(!accepts(&overlap, "aba"));
        assert!(accepts(&overlap, "ababa"));
        assert!(accepts(&concat(vec![literal("a"), literal("b")]), "ab"));
        assert!(!accepts(&concat(vec![literal("a"), literal("b")]), "abc"));
    }

    #[test]
    fn each_piece_is_judged_in_full() {
        let address = concat(vec![
            value(ElementKind::Interface),
            literal("="),
            int(0, 9),
            one_of(vec![literal(""), literal("!")]),
        ]);
        for (text, expected) in [
            ("eth0=9", true),
            ("eth0=9!", true),
            ("eth0=10", false),
            ("..=9", false),
            ("eth0=09", false),
            ("=9", false),
        ] {
            assert_eq!(accepts(&address, text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_part_cannot_escape_its_group() {
        let two = concat(vec![regex("a|b"), regex("(?x) c # d"), regex("(?P<n>e)"), regex("(?P<n>f)")]);
        assert!(accepts(&two, "bcef"));
        assert!(!accepts(&two, "a"));
        assert!(!accepts(&two, "bce"));
        assert!(fails(&concat(vec![regex("a)|(?:b"), literal("x")])).contains("regular expression"));
    }

    #[test]
    fn the_part_with_the_first_byte_decides_about_a_dash() {
        assert!(accepts(&concat(vec![literal("--mark="), int(0, 1)]), "--mark=1"));
        assert!(accepts(&concat(vec![int(-5, 5), literal("x")]), "-3x"));
        let free = concat(vec![one_of(vec![literal(""), literal("a")]), regex(".*")]);
        assert!(accepts(&free, "a-b"));
        assert!(!accepts(&free, "-b"));
        assert!(accepts(&dash(free), "-b"));
        assert!(!accepts(&concat(vec![value(ElementKind::Any), literal("x")]), "-yx"));
    }

    #[test]
    fn parts_are_values_and_there_is_one() {
        assert!(fails(&concat(vec![])).contains("nothing"));
        let group = value(ElementKind::Optional(Box::new(literal("x"))));
        assert!(fails(&concat(vec![literal("a"), group])).contains("one argument"));
    }
}
