//! `[ELEMENT..]`: one after the other. Earlier elements take most.

use super::compile::{Body, Compiler, Marks, Place, Reported};
use crate::policy::spec::Element;

/// Compiles the elements in their order.
pub(super) fn emit(compiler: &mut Compiler, body: &mut Body, elements: &[Element], marks: Marks, place: Place) -> Result<(), Reported> {
    let mut result = Ok(());
    let last = elements.len().wrapping_sub(1);
    for (at, element) in elements.iter().enumerate() {
        let place = if at == last { place } else { place.before_others() };
        // All errors are wanted, not the first.
        result = compiler.emit(body, element, marks, place).and(result);
    }
    result
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{literal, matches, sequence, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn all_arguments_must_be_covered() {
        let args = [
            literal("link"),
            sequence(vec![literal("set"), value(ElementKind::Interface)]),
            literal("up"),
        ];
        assert!(matches(&args, &["link", "set", "eth0", "up"]));
        for no in [
            &["link", "set", "eth0"][..],
            &["link", "set", "eth0", "up", "x"],
            &["link set", "eth0", "up"],
            &["set", "link", "eth0", "up"],
            &["link", "set", "eth0", "up", ""],
            &[],
        ] {
            assert!(!matches(&args, no), "{no:?}");
        }
    }

    #[test]
    fn no_elements_take_no_arguments() {
        assert!(matches(&[], &[]));
        assert!(!matches(&[], &[""]));
        assert!(matches(&[sequence(vec![])], &[]));
    }

    #[test]
    fn arguments_are_never_joined_or_split() {
        let args = [literal("a b")];
        assert!(matches(&args, &["a b"]));
        assert!(!matches(&args, &["a", "b"]));
        assert!(!matches(&[literal("a"), literal("b")], &["a b"]));
    }
}
