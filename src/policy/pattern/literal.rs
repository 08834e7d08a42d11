//! `"text"`: that one argument, byte for byte.

use super::{Kind, Lean, shape};
use crate::policy::text::quoted;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Literal(pub(super) Box<[u8]>);

/// What is wrong with a text.
pub(super) fn check(text: &[u8]) -> Result<(), String> {
    if text.contains(&0) {
        return Err("an argument never holds a NUL byte: this could never match".to_owned());
    }
    Ok(())
}

impl Kind for Literal {
    fn accepts(&self, text: &[u8], _lead: bool, _lean: &mut Lean<'_>) -> bool {
        *self.0 == *text
    }

    fn shape(&self) -> String {
        shape::escape(&self.0)
    }

    fn leads(&self) -> bool {
        true
    }

    fn expected(&self) -> String {
        if self.0.is_empty() { "nothing".to_owned() } else { quoted(&self.0) }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{accepts, literal};

    #[test]
    fn only_the_same_bytes_match() {
        let text = literal("a b");
        assert!(accepts(&text, "a b"));
        for other in ["a", "a b ", "a  b", "A b", "", "a b\n"] {
            assert!(!accepts(&text, other), "{other:?}");
        }
    }

    #[test]
    fn a_literal_may_be_empty_or_begin_with_a_dash() {
        assert!(accepts(&literal(""), ""));
        assert!(accepts(&literal("-rf"), "-rf"));
    }

    #[test]
    fn a_nul_byte_is_an_error() {
        assert!(super::check(b"a\0").is_err());
    }
}
