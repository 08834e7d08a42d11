//! `{ int = [min, max] }`: a decimal number as `[0]` or digits without leading zeros, with `-` below zero, without a plus sign.

use super::{Kind, Lean};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Int {
    pub(super) min: i64,
    pub(super) max: i64,
}

/// What is wrong with a range.
pub(super) fn check(min: i64, max: i64) -> Result<(), String> {
    if min > max {
        return Err(format!("no number is from {min} to {max}"));
    }
    Ok(())
}

/// A number in the one spelling that it has.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !plain {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl Kind for Int {
    fn accepts(&self, text: &[u8], _lead: bool, _lean: &mut Lean<'_>) -> bool {
        parse(text).is_some_and(|number| (self.min..=self.max).contains(&number))
    }

    fn shape(&self) -> String {
        "(?:-?[0-9]{1,20})".to_owned()
    }

    fn leads(&self) -> bool {
        true
    }

    fn expected(&self) -> String {
        if self.min == self.max {
            format!("the integer {}", self.min)
        } else {
            format!("an integer from {} to {}", self.min, self.max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::pattern::testing::{accepts, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn both_ends_belong_to_the_range() {
        let int = value(ElementKind::Int { min: 68, max: 65535 });
        for (text, expected) in [("68", true), ("65535", true), ("67", false), ("65536", false)] {
            assert_eq!(accepts(&int, text), expected, "{text}");
        }
    }

    #[test]
    fn a_number_has_one_spelling() {
        let int = value(ElementKind::Int { min: -10, max: 100 });
        for yes in ["0", "7", "-7", "100"] {
            assert!(accepts(&int, yes), "{yes}");
        }
        for no in [
            "",
            "-",
            "+7",
            "07",
            "00",
            "-0",
            "-07",
            " 7",
            "7 ",
            "7\n",
            "0x7",
            "7.0",
            "1e1",
            "\u{661}",
            "99999999999999999999",
        ] {
            assert!(!accepts(&int, no), "{no:?}");
        }
    }

    #[test]
    fn an_empty_range_is_an_error() {
        assert!(check(2, 1).is_err());
        assert!(check(1, 1).is_ok());
    }

    #[test]
    fn the_smallest_number_is_read() {
        assert_eq!(parse(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse(b"9223372036854775808"), None);
    }
}
