//! Short ways to write elements in tests.

use super::{Arena, Budget, Compiled, Compiler, Lean, Machine, Part};
use crate::policy::facts::Facts;
use crate::policy::spec::*;

pub(super) fn value(kind: ElementKind) -> Element {
    Element {
        span: Span::default(),
        kind,
        dash: false,
        secret: false,
    }
}

pub(super) fn literal(text: &str) -> Element {
    value(ElementKind::Literal(text.as_bytes().to_vec()))
}

pub(super) fn dash(element: Element) -> Element {
    Element { dash: true, ..element }
}

pub(super) fn secret(element: Element) -> Element {
    Element { secret: true, ..element }
}

pub(super) fn sequence(elements: Vec<Element>) -> Element {
    value(ElementKind::Sequence(elements))
}

pub(super) fn one_of(elements: Vec<Element>) -> Element {
    value(ElementKind::OneOf(elements))
}

pub(super) fn concat(elements: Vec<Element>) -> Element {
    value(ElementKind::Concat(elements))
}

pub(super) fn list(item: Element, separator: &str) -> Element {
    value(ElementKind::List {
        item: Box::new(item),
        separator: separator.to_owned(),
    })
}

pub(super) fn optional(element: Element) -> Element {
    value(ElementKind::Optional(Box::new(element)))
}

pub(super) fn repeat(item: Element, min: u32, max: Option<u32>) -> Element {
    value(ElementKind::Repeat {
        item: Box::new(item),
        min,
        max,
    })
}

pub(super) fn options(specs: Vec<OptionSpec>) -> Element {
    value(ElementKind::Options(specs))
}

pub(super) fn option(keys: &[&str], value: Option<Element>) -> OptionSpec {
    OptionSpec {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        value,
        required: false,
        many: false,
        span: Span::default(),
    }
}

/// A filter with these arguments, for everybody.
pub(super) fn filter(args: &[Element]) -> FilterSpec {
    crate::policy::testing::filter("test", "/usr/bin/test", args.to_vec())
}

fn try_compile(args: &[Element]) -> (Arena, Option<Compiled>, String) {
    let mut compiler = Compiler::default();
    let compiled = compiler.filter(&filter(args));
    let (arena, errors) = compiler.finish();
    let messages: Vec<String> = errors.into_iter().map(|error| error.message).collect();
    (arena, compiled, messages.join("\n"))
}

/// Compiles arguments that are right.
pub(super) fn compile(args: &[Element]) -> (Arena, Compiled) {
    let (arena, compiled, errors) = try_compile(args);
    assert_eq!(errors, "");
    (arena, compiled.unwrap())
}

/// The errors of arguments, or nothing.
pub(super) fn fails_all(args: &[Element]) -> String {
    try_compile(args).2
}

/// The errors of one element.
pub(super) fn fails(element: &Element) -> String {
    fails_all(std::slice::from_ref(element))
}

/// Whether the arguments match as a whole; paths by their spelling.
pub(super) fn matches(args: &[Element], argv: &[&str]) -> bool {
    let (arena, compiled) = compile(args);
    let argv: Vec<Vec<u8>> = argv.iter().map(|argument| argument.as_bytes().to_vec()).collect();
    let (facts, budget) = (Facts::lexical(), Budget::new());
    let mut machine = Machine::new(&arena, &argv, &facts, &budget, None);
    match machine.divide(compiled.program, &mut |_, _| false) {
        Some(covered) => {
            assert!(machine.verify(&covered).0.allows());
            true
        }
        None => false,
    }
}

/// Whether one element takes one argument.
pub(super) fn accepts(element: &Element, argument: &str) -> bool {
    accepts_bytes(element, argument.as_bytes())
}

pub(super) fn accepts_bytes(element: &Element, argument: &[u8]) -> bool {
    let facts = Facts::lexical();
    let part = part(element);
    let accepted = part.accepts(argument, true, &mut Lean::new(&facts));
    if accepted {
        let shape = super::shape::anchored(&part.shape()).unwrap();
        assert!(shape.is_match(argument), "the shape is too narrow: {}", part.shape());
    }
    accepted
}

/// The compiled part of a value.
pub(super) fn part(element: &Element) -> Part {
    let (arena, compiled) = compile(std::slice::from_ref(element));
    match arena.program(compiled.program) {
        [super::program::Inst::Take(part), super::program::Inst::Accept] => arena.part(*part).unwrap().clone(),
        other => panic!("not a value: {other:?}"),
    }
}
