//! `{ uuid = true }`: 8-4-4-4-12 hexadecimal digits, in either case.

use super::{Kind, Lean};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Uuid;

impl Kind for Uuid {
    fn accepts(&self, text: &[u8], _lead: bool, _lean: &mut Lean<'_>) -> bool {
        text.len() == 36
            && text.iter().enumerate().all(|(at, byte)| {
                if matches!(at, 8 | 13 | 18 | 23) {
                    *byte == b'-'
                } else {
                    byte.is_ascii_hexdigit()
                }
            })
    }

    fn shape(&self) -> String {
        "(?:[0-9A-Fa-f-]{36})".to_owned()
    }

    fn expected(&self) -> String {
        "a UUID".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{accepts, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn digits_in_five_groups() {
        let uuid = value(ElementKind::Uuid);
        for yes in ["5d9d7a3e-1f66-4b0e-9a5c-0123456789ab", "5D9D7A3E-1F66-4B0E-9A5C-0123456789AB"] {
            assert!(accepts(&uuid, yes), "{yes}");
        }
        for no in [
            "",
            "5d9d7a3e1f664b0e9a5c0123456789ab",
            "{5d9d7a3e-1f66-4b0e-9a5c-0123456789ab}",
            "5d9d7a3e-1f66-4b0e-9a5c-0123456789a",
            "5d9d7a3e-1f66-4b0e-9a5c-0123456789ag",
            "5d9d7a3e-1f66-4b0e-9a5c-0123456789ab\n",
            "5d9d7a3e-1f66-4b0e-9a5c0-123456789ab",
        ] {
            assert!(!accepts(&uuid, no), "{no:?}");
        }
    }
}
