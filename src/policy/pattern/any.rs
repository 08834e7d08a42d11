//! `{ any = true }`: exactly one argument that is not empty.

use super::{Kind, Lean};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Any;

impl Kind for Any {
    fn accepts(&self, text: &[u8], _lead: bool, _lean: &mut Lean<'_>) -> bool {
        !text.is_empty()
    }

    fn shape(&self) -> String {
        "(?s:.+)".to_owned()
    }

    fn expected(&self) -> String {
        "an argument that is not empty".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{accepts, dash, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn anything_but_nothing_and_dashes() {
        let any = value(ElementKind::Any);
        for yes in ["x", "a b", "\n", "a-"] {
            assert!(accepts(&any, yes), "{yes:?}");
        }
        for no in ["", "-", "--evil"] {
            assert!(!accepts(&any, no), "{no:?}");
        }
        assert!(accepts(&dash(any), "--evil"));
    }
}
