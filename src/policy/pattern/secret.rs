//! Where secrets may stand in the arguments of a filter, so that also a refused request is logged without them.

use crate::policy::spec::{Element, ElementKind, FilterSpec};

use super::compile::contains_secret;

/// What is written instead.
const MASK: &[u8] = b"***";

/// Where the secrets of one filter may stand.
#[derive(Debug, Default)]
pub(in crate::policy) struct Secrets {
    /// Text after which so many arguments are secret.
    after: Vec<(Vec<u8>, usize)>,
    /// Text after which the rest of the same argument is secret.
    joined: Vec<Vec<u8>>,
    /// First and last index into the arguments.
    positions: Vec<(usize, usize)>,
    /// Words of the filter, which are not secret themselves.
    words: Vec<Vec<u8>>,
    /// Variables.
    pub(in crate::policy) environment: Vec<String>,
}

/// The secrets of a filter; `None`: it has none.
pub(super) fn find(filter: &FilterSpec) -> Option<Secrets> {
    let mut secrets = Secrets::default();
    sequence(&filter.args, false, (0, 0), &mut secrets);
    for (name, element) in &filter.execution.env_allow {
        if contains_secret(element) {
            secrets.environment.push(name.clone());
        }
    }
    let some = !(secrets.positions.is_empty() && secrets.after.is_empty() && secrets.joined.is_empty() && secrets.environment.is_empty());
    some.then_some(secrets)
}

/// Smallest and largest number of arguments before and of an element.
type Span = (usize, usize);

fn plus(a: Span, b: Span) -> Span {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

fn sequence(elements: &[Element], secret: bool, start: Span, found: &mut Secrets) -> Span {
    let mut at = start;
    let mut before: Option<&[u8]> = None;
    for element in elements {
        let end = walk(element, secret, at, found);
        if let Some(word) = before.filter(|_| begins_secret(element, secret)) {
            found.after.push((word.to_vec(), end.1.saturating_sub(at.1).max(1)));
        }
        at = end;
        before = match &element.kind {
            ElementKind::Literal(text) => Some(text),
            _ => None,
        };
    }
    at
}

/// Whether what an element takes first may be secret. Options say so themselves.
fn begins_secret(element: &Element, secret: bool) -> bool {
    let secret = secret || element.secret;
    match &element.kind {
        ElementKind::Sequence(elements) => elements.first().is_some_and(|first| begins_secret(first, secret)),
        ElementKind::OneOf(elements) => elements.iter().any(|element| begins_secret(element, secret)),
        ElementKind::Optional(item) | ElementKind::Repeat { item, .. } => begins_secret(item, secret),
        ElementKind::Options(_) | ElementKind::Command(_) => false,
        _ => secret || contains_secret(element),
    }
}

/// Notes the secrets of an element that starts after so many arguments; gives how many there are after it.
fn walk(element: &Element, secret: bool, at: Span, found: &mut Secrets) -> Span {
    let secret = secret || element.secret;
    match &element.kind {
        ElementKind::Sequence(elements) => sequence(elements, secret, at, found),
        ElementKind::Optional(element) => {
            let end = walk(element, secret, at, found);
            (at.0, end.1)
        }
        ElementKind::OneOf(elements) => {
            let ends: Vec<Span> = elements.iter().map(|element| walk(element, secret, at, found)).collect();
            let least = ends.iter().map(|end| end.0).min().unwrap_or(at.0);
            (least, ends.iter().map(|end| end.1).max().unwrap_or(at.1))
        }
        ElementKind::Repeat { item, min, max } => {
            let count = found.positions.len();
            let one = walk(item, secret, at, found);
            let (least, most) = (one.0 - at.0, one.1.saturating_sub(at.1));
            let times = max.map_or(usize::MAX, |max| max as usize);
            let end = (
                at.0 + least * (*min as usize).min(4096),
                at.1.saturating_add(most.saturating_mul(times)),
            );
            found.positions.iter_mut().skip(count).for_each(|position| position.1 = end.1);
            end
        }
        ElementKind::Options(options) => {
            for option in options {
                let separate = option.keys.iter().filter(|key| !key.ends_with('='));
                found.words.extend(separate.map(|key| key.as_bytes().to_vec()));
                let Some(value) = option.value.as_ref().filter(|value| secret || contains_secret(value)) else {
                    continue;
                };
                let length = walk(value, secret, (0, 0), &mut Secrets::default()).1.max(1);
                for key in &option.keys {
                    if let Some(separate) = key.strip_suffix('=') {
                        found.joined.push(key.as_bytes().to_vec());
                        // Spelled in another way: `--key x`.
                        found.after.push((separate.as_bytes().to_vec(), 1));
                    } else {
                        found.after.push((key.as_bytes().to_vec(), length));
                        // Spelled in other ways: `--key=x`, `-kx`.
                        found.joined.push(format!("{key}=").into_bytes());
                        if key.len() == 2 && key.starts_with('-') {
                            found.joined.push(key.as_bytes().to_vec());
                        }
                    }
                }
            }
            (at.0, usize::MAX)
        }
        ElementKind::Command(_) => (at.0 + 1, usize::MAX),
        kind => {
            if secret || contains_secret(element) {
                found.positions.push((at.0, at.1));
                found.joined.extend(prefix(kind));
            } else if let ElementKind::Literal(text) = kind {
                found.words.push(text.clone());
            }
            plus(at, (1, 1))
        }
    }
}

/// The fixed text before the secret of a `concat`: `password=`.
fn prefix(kind: &ElementKind) -> Option<Vec<u8>> {
    let ElementKind::Concat(parts) = kind else {
        return None;
    };
    let fixed = parts.iter().map_while(|part| match &part.kind {
        ElementKind::Literal(text) if !part.secret => Some(text.as_slice()),
        _ => None,
    });
    let text = fixed.collect::<Vec<_>>().concat();
    (text.len() > 1).then_some(text)
}

/// Masks what stands after options that a filter marks, wherever they stand.
pub(in crate::policy) fn mask_options(secrets: &Secrets, args: &[Vec<u8>], masked: &mut [Vec<u8>]) {
    for (at, argument) in args.iter().enumerate() {
        let after = secrets
            .after
            .iter()
            .filter(|(word, _)| word == argument)
            .map(|(_, count)| *count)
            .max();
        for at in (at + 1..args.len()).take(after.unwrap_or(0)) {
            mask(secrets, at, args, masked);
        }
        let key = secrets
            .joined
            .iter()
            .filter(|key| argument.starts_with(key))
            .min_by_key(|key| key.len());
        if let (Some(key), None, Some(masked)) = (key, after, masked.get_mut(at)) {
            *masked = [key.as_slice(), MASK].concat();
        }
    }
}

/// Masks where secret elements of a filter may stand.
pub(in crate::policy) fn mask_positions(secrets: &Secrets, args: &[Vec<u8>], masked: &mut [Vec<u8>]) {
    for (first, last) in &secrets.positions {
        for at in *first..args.len().min(last.saturating_add(1)) {
            if first == last {
                hide(at, masked);
            } else {
                mask(secrets, at, args, masked);
            }
        }
    }
}

/// Masks an argument unless it is one of the filter's own words.
fn mask(secrets: &Secrets, at: usize, args: &[Vec<u8>], masked: &mut [Vec<u8>]) {
    if !args.get(at).is_some_and(|argument| secrets.words.contains(argument)) {
        hide(at, masked);
    }
}

/// Masks one argument.
pub(in crate::policy) fn hide(at: usize, masked: &mut [Vec<u8>]) {
    if let Some(argument) = masked.get_mut(at) {
        *argument = MASK.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{filter, literal, one_of, option, optional, options, repeat, secret, value};
    use super::*;

    fn any() -> Element {
        value(ElementKind::Any)
    }

    fn masked(args: &[Element], argv: &[&str]) -> Vec<String> {
        let argv: Vec<Vec<u8>> = argv.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        let mut masked = argv.clone();
        let secrets = find(&filter(args)).unwrap();
        mask_options(&secrets, &argv, &mut masked);
        mask_positions(&secrets, &argv, &mut masked);
        masked.into_iter().map(|argument| String::from_utf8(argument).unwrap()).collect()
    }

    #[test]
    fn a_fixed_position_is_masked_whatever_stands_before_it() {
        let args = [literal("login"), secret(any()), any()];
        assert_eq!(masked(&args, &["logn", "hunter2", "x"]), ["logn", "***", "x"]);
    }

    #[test]
    fn a_position_that_varies_is_masked_but_for_the_filters_own_words() {
        let args = [optional(literal("-v")), literal("login"), secret(any())];
        assert_eq!(masked(&args, &["-v", "login", "hunter2"]), ["-v", "login", "***"]);
        assert_eq!(masked(&args, &["login", "hunter2"]), ["login", "***"]);
        assert_eq!(masked(&args, &["x", "hunter2"]), ["x", "***"]);
        let args = [repeat(secret(any()), 1, None)];
        assert_eq!(masked(&args, &["a", "b"]), ["***", "***"]);
    }

    #[test]
    fn values_of_options_are_masked_wherever_they_stand() {
        let args = [
            options(vec![option(&["-p", "--password="], Some(secret(any()))), option(&["-v"], None)]),
            any(),
        ];
        assert_eq!(
            masked(&args, &["x", "-p", "hunter2", "--password=hunter2", "-phunter2", "-v"]),
            ["x", "-p", "***", "--password=***", "-p***", "-v"]
        );
    }

    #[test]
    fn secrets_inside_an_argument_hide_it_all() {
        let args = [
            value(ElementKind::Concat(vec![literal("key="), secret(any())])),
            one_of(vec![literal("a"), secret(literal("b"))]),
        ];
        assert_eq!(masked(&args, &["key=x", "q"]), ["***", "***"]);
    }

    #[test]
    fn filters_without_secrets_have_none() {
        assert!(find(&filter(&[any(), options(vec![option(&["-v"], None)])])).is_none());
    }
}
