//! The compiled matcher against a naive one: random patterns, random arguments, the same answers.
//!
//! The model divides arguments by plain recursion, exponential and obviously right, straight from the description of the language.

#![cfg(feature = "daemon")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod policy_common;

use policy_common::{allows, literal, policy, value};
use proptest::prelude::*;
use rootwrap::policy::spec::{Element, ElementKind, OptionSpec, Span};

/// What the rest of the pattern says about the arguments left.
type Rest<'a> = &'a dyn Fn(&[&str]) -> bool;

fn model(elements: &[Element], args: &[&str], rest: Rest<'_>) -> bool {
    match elements.split_first() {
        None => rest(args),
        Some((first, others)) => one(first, args, &|left| model(others, left, rest)),
    }
}

fn one(element: &Element, args: &[&str], rest: Rest<'_>) -> bool {
    match &element.kind {
        ElementKind::Sequence(elements) => model(elements, args, rest),
        ElementKind::Optional(item) => one(item, args, rest) || rest(args),
        ElementKind::OneOf(elements) => elements.iter().any(|element| one(element, args, rest)),
        ElementKind::Repeat { item, min, max } => repeat(item, *min, *max, args, rest),
        ElementKind::Options(options) => parse_options(options, args).is_some_and(rest),
        _ => args
            .split_first()
            .is_some_and(|(first, left)| takes(element, first, true) && rest(left)),
    }
}

fn repeat(item: &Element, min: u32, max: Option<u32>, args: &[&str], rest: Rest<'_>) -> bool {
    if max == Some(0) {
        return min == 0 && rest(args);
    }
    let again = |left: &[&str]| left.len() < args.len() && repeat(item, min.saturating_sub(1), max.map(|max| max - 1), left, rest);
    let empty = one(item, args, &|left| left.len() == args.len());
    one(item, args, &again) || ((min == 0 || empty) && rest(args))
}

fn parse_options<'a>(options: &[OptionSpec], mut args: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let mut seen = vec![0; options.len()];
    'next: while let Some((first, left)) = args.split_first() {
        for (at, option) in options.iter().enumerate() {
            for key in &option.keys {
                if key.ends_with('=') {
                    if let Some(text) = first.strip_prefix(key.as_str()) {
                        let value = match &option.value.as_ref()?.kind {
                            ElementKind::Optional(inner) => inner,
                            _ => option.value.as_ref()?,
                        };
                        if !takes(value, text, false) {
                            return None;
                        }
                        args = left;
                        seen[at] += 1;
                        continue 'next;
                    }
                } else if first == key {
                    let longest = match &option.value {
                        None => Some(left.len()),
                        Some(value) => (0..=left.len()).find(|end| one(value, left, &|after| after.len() == *end)),
                    };
                    args = &left[left.len() - longest?..];
                    seen[at] += 1;
                    continue 'next;
                }
            }
        }
        break;
    }
    let good = options
        .iter()
        .zip(&seen)
        .all(|(option, seen)| (*seen > 0 || !option.required) && (*seen < 2 || option.many));
    good.then_some(args)
}

/// Whether one element takes one text.
fn takes(element: &Element, text: &str, lead: bool) -> bool {
    let lead = lead && !element.dash;
    match &element.kind {
        ElementKind::Literal(literal) => literal == text.as_bytes(),
        ElementKind::Int { min, max } => text
            .parse::<i64>()
            .is_ok_and(|number| number.to_string() == text && (*min..=*max).contains(&number)),
        ElementKind::Any => !(text.is_empty() || lead && text.starts_with('-')),
        ElementKind::OneOf(elements) => elements.iter().any(|element| takes(element, text, lead)),
        ElementKind::List { item, separator } => text
            .split(separator.as_str())
            .enumerate()
            .all(|(at, piece)| takes(item, piece, lead && at == 0)),
        ElementKind::Concat(parts) => split(parts, text, lead),
        ElementKind::Sequence(elements) if elements.len() == 1 => takes(&elements[0], text, lead),
        other => panic!("not in the model: {other:?}"),
    }
}

/// Every split of a text among the parts.
fn split(parts: &[Element], text: &str, lead: bool) -> bool {
    match parts.split_first() {
        None => text.is_empty(),
        Some((first, others)) => (0..=text.len()).any(|at| takes(first, &text[..at], lead) && split(others, &text[at..], lead && at == 0)),
    }
}

fn kind() -> impl Strategy<Value = ElementKind> {
    prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "-x", "7", ""]).prop_map(|text| ElementKind::Literal(text.as_bytes().to_vec())),
        2 => Just(ElementKind::Any),
        1 => Just(ElementKind::Int { min: -2, max: 7 }),
        // Splits of these are unique, so that the proposal of the regular expression is the only one.
        1 => Just(ElementKind::Concat(vec![literal("a"), value(ElementKind::Int { min: 0, max: 7 })])),
        1 => Just(ElementKind::Concat(vec![
            value(ElementKind::Int { min: -2, max: 7 }),
            value(ElementKind::OneOf(vec![literal(""), literal("b")])),
        ])),
        1 => Just(ElementKind::List {
            item: Box::new(value(ElementKind::OneOf(vec![literal("a"), value(ElementKind::Int { min: -2, max: 7 })]))),
            separator: ",".to_owned(),
        }),
    ]
}

fn leaf() -> impl Strategy<Value = Element> {
    (kind(), prop::bool::weighted(0.2)).prop_map(|(kind, dash)| Element { dash, ..value(kind) })
}

fn option(item: Element, key: &str, flags: u8) -> OptionSpec {
    OptionSpec {
        keys: match flags % 3 {
            0 => vec![key.to_owned()],
            1 => vec![key.to_owned(), format!("{key}=")],
            _ => vec![format!("{key}=")],
        },
        value: Some(item),
        required: flags & 4 != 0,
        many: flags & 8 != 0,
        span: Span::default(),
    }
}

fn element() -> impl Strategy<Value = Element> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            several.clone().prop_map(|elements| value(ElementKind::Sequence(elements))),
            several.clone().prop_map(|elements| value(ElementKind::OneOf(elements))),
            inner.clone().prop_map(|item| value(ElementKind::Optional(Box::new(item)))),
            (inner.clone(), 0_u32..3, prop::option::of(0_u32..3)).prop_map(|(item, min, more)| {
                value(ElementKind::Repeat {
                    item: Box::new(item),
                    min,
                    max: more.map(|more| (min + more).max(1)),
                })
            }),
            (inner.clone(), inner, any::<u8>(), any::<u8>())
                .prop_map(|(a, b, x, y)| value(ElementKind::Options(vec![option(a, "-p", x), option(b, "--q", y)]))),
        ]
    })
}

fn argument() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "b", "-x", "7", "", "c", "-1", "8", "-p", "--q", "--q=a", "-p=7", "--q=-x", "a7", "a8", "7b", "-1b", "a,7", "-1,a", "a,",
        "-z", "--q=",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_matcher_and_the_model_agree(
        elements in prop::collection::vec(element(), 0..4),
        lists in prop::collection::vec(prop::collection::vec(argument(), 0..7), 8),
    ) {
        // Patterns that are errors (options that are not clear, values that are groups) have no answer to compare.
        if let Ok(policy) = policy(vec![policy_common::filter("test", "/bin/test", elements.clone())]) {
            for args in &lists {
                let argv: Vec<&str> = std::iter::once("test").chain(args.iter().copied()).collect();
                prop_assert_eq!(allows(&policy, &argv), model(&elements, args, &|left| left.is_empty()), "{:?}", args);
            }
        }
    }

    #[test]
    fn arguments_made_from_a_pattern_match_it(elements in prop::collection::vec(element(), 1..4), choices in prop::collection::vec(any::<u8>(), 64)) {
        if let Ok(policy) = policy(vec![policy_common::filter("test", "/bin/test", elements.clone())]) {
            let mut choices = choices.into_iter().cycle();
            let mut args = Vec::new();
            elements.iter().for_each(|element| write(element, &mut choices, &mut args));
            prop_assume!(args.len() < 12);
            let argv: Vec<&str> = std::iter::once("test").chain(args.iter().map(String::as_str)).collect();
            let words: Vec<&str> = argv[1..].to_vec();
            prop_assert_eq!(allows(&policy, &argv), model(&elements, &words, &|left| left.is_empty()), "{:?}", words);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(argv in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6), elements in prop::collection::vec(element(), 0..3)) {
        if let Ok(policy) = policy(vec![policy_common::filter("test", "/bin/test", elements)]) {
            let mut named = argv.clone();
            named.insert(0, b"test".to_vec());
            policy_common::decide_bytes(&policy, &argv);
            policy_common::decide_bytes(&policy, &named);
        }
    }
}

/// Arguments that a pattern describes.
fn write(element: &Element, choices: &mut impl Iterator<Item = u8>, out: &mut Vec<String>) {
    let choice = choices.next().unwrap_or(0);
    match &element.kind {
        ElementKind::Literal(text) => out.push(String::from_utf8_lossy(text).into_owned()),
        ElementKind::Int { .. } => out.push((i32::from(choice % 10) - 2).to_string()),
        ElementKind::Any => out.push(["a", "-p", "z", "--q"][usize::from(choice % 4)].to_owned()),
        ElementKind::OneOf(elements) => write(&elements[usize::from(choice) % elements.len()], choices, out),
        ElementKind::Sequence(elements) => elements.iter().for_each(|element| write(element, choices, out)),
        ElementKind::Optional(item) => {
            if choice % 2 == 0 {
                write(item, choices, out);
            }
        }
        ElementKind::Repeat { item, min, .. } => (0..min + u32::from(choice % 2)).for_each(|_| write(item, choices, out)),
        ElementKind::List { .. } => out.push(["a", "a,7", "7,a,a", "-1"][usize::from(choice % 4)].to_owned()),
        ElementKind::Concat(_) => out.push(["a7", "a0", "7b", "-1"][usize::from(choice % 4)].to_owned()),
        ElementKind::Options(options) => {
            for option in options {
                if !option.required && choice % 2 == 1 {
                    continue;
                }
                let key = &option.keys[usize::from(choice / 2) % option.keys.len()];
                let mut value = Vec::new();
                option.value.iter().for_each(|element| write(element, choices, &mut value));
                if key.ends_with('=') {
                    out.push(format!("{key}{}", value.join("")));
                } else {
                    out.push(key.clone());
                    out.extend(value);
                }
            }
        }
        other => panic!("not in the model: {other:?}"),
    }
}
