//! `{ mac = true }`: six hexadecimal pairs with colons, in either case.

use super::{Kind, Lean};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Mac;

impl Kind for Mac {
    fn accepts(&self, text: &[u8], _lead: bool, _lean: &mut Lean<'_>) -> bool {
        text.len() == 17
            && text
                .iter()
                .enumerate()
                .all(|(at, byte)| if at % 3 == 2 { *byte == b':' } else { byte.is_ascii_hexdigit() })
    }

    fn shape(&self) -> String {
        "(?:[0-9A-Fa-f:]{17})".to_owned()
    }

    fn expected(&self) -> String {
        "a MAC address such as 02:00:00:00:00:01".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{accepts, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn six_pairs_with_colons() {
        let mac = value(ElementKind::Mac);
        for yes in ["02:00:00:00:00:01", "AA:bb:CC:dd:EE:ff"] {
            assert!(accepts(&mac, yes), "{yes}");
        }
        for no in [
            "",
            "02-00-00-00-00-01",
            "2:0:0:0:0:1",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "0g:00:00:00:00:01",
            "02:00:00:00:00:01\n",
        ] {
            assert!(!accepts(&mac, no), "{no:?}");
        }
    }
}
