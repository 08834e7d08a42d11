//! `{ interface = true }`: the name of a network interface.
//!
//! 1 to 15 bytes, not `.` or `..`. The kernel allows nearly every byte; here it is letters, digits and `_ . + -` only, because
//! names end up in sysctl keys, sysfs paths and scripts. A filter that needs more says it with `regex`.

use super::{Kind, Lean};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Interface;

impl Kind for Interface {
    fn accepts(&self, text: &[u8], _lead: bool, _lean: &mut Lean<'_>) -> bool {
        (1..16).contains(&text.len())
            && text != b"."
            && text != b".."
            && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(byte))
    }

    fn shape(&self) -> String {
        "(?:[0-9A-Za-z_.+-]{1,15})".to_owned()
    }

    fn expected(&self) -> String {
        "the name of a network interface".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{accepts, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn names_of_up_to_fifteen_bytes() {
        let interface = value(ElementKind::Interface);
        for yes in ["eth0", "br-int", "eth0.100", "qr-5d9d7a3e-1f", "a.b_c+d", "..."] {
            assert!(accepts(&interface, yes), "{yes}");
        }
        for no in [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "a:1",
            "a\n",
            "-x",
            "a%d",
            "a=b",
            "a@b",
            "é",
            "abcdefghijklmnop",
        ] {
            assert!(!accepts(&interface, no), "{no:?}");
        }
    }
}
