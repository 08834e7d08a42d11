//! `{ optional = ELEMENT }`: it, or nothing where the rest does not match otherwise.

use super::compile::{Body, Compiler, Marks, Place, Reported};
use super::program::Inst;
use crate::policy::spec::Element;

/// Compiles one optional element.
pub(super) fn emit(compiler: &mut Compiler, body: &mut Body, element: &Element, marks: Marks, place: Place) -> Result<(), Reported> {
    let split = body.hole();
    compiler.emit(body, element, marks, place)?;
    let second = body.here();
    body.fill(split, Inst::Split { first: split + 1, second });
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{literal, matches, optional, sequence, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn it_may_be_missing() {
        let args = [
            optional(sequence(vec![literal("dev"), value(ElementKind::Interface)])),
            literal("up"),
        ];
        assert!(matches(&args, &["up"]));
        assert!(matches(&args, &["dev", "eth0", "up"]));
        assert!(!matches(&args, &["dev", "up"]));
        assert!(!matches(&args, &["dev", "eth0", "dev", "eth0", "up"]));
    }

    #[test]
    fn it_gives_back_what_the_rest_needs() {
        let args = [optional(value(ElementKind::Interface)), value(ElementKind::Interface)];
        assert!(matches(&args, &["tap1"]));
        assert!(matches(&args, &["br-int", "tap1"]));
        assert!(!matches(&args, &[]));
        assert!(!matches(&args, &["a", "b", "c"]));
    }
}
