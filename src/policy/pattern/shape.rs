//! Regular expressions as syntax trees: parsing, printing, and the two questions that the compiler asks about beginnings.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Bytes of one compiled expression.
const SIZE_LIMIT: usize = 1 << 20;
/// Bytes of the cache of its lazy automaton.
const CACHE_LIMIT: usize = 1 << 18;
/// Parentheses inside each other.
const NEST_LIMIT: u32 = 64;

/// Parses an expression on its own; bytes, ASCII classes.
pub(super) fn parse(source: &str) -> Result<Hir, String> {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).nest_limit(NEST_LIMIT).build();
    let hir = parser.parse(source).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => format!("the regular expression is wrong: {}", error.kind()),
        regex_syntax::Error::Translate(error) => format!("the regular expression is wrong: {}", error.kind()),
        _ => "the regular expression is wrong".to_owned(),
    })?;
    Ok(without_captures(&hir))
}

/// The same language without capture groups, so that expressions can be put together.
fn without_captures(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Capture(capture) => without_captures(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_captures).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_captures).collect()),
        HirKind::Repetition(repetition) => {
            let mut repetition = repetition.clone();
            repetition.sub = Box::new(without_captures(&repetition.sub));
            Hir::repetition(repetition)
        }
        _ => hir.clone(),
    }
}

/// As text, closed in itself.
pub(super) fn print(hir: &Hir) -> String {
    format!("(?:{hir})")
}

/// These bytes, as an expression.
pub(super) fn escape(text: &[u8]) -> String {
    print(&Hir::literal(text))
}

/// Compiles what [`print`] wrote, to match the whole text only.
pub(super) fn anchored(shape: &str) -> Result<Regex, String> {
    compile(&format!(r"\A{shape}\z"))
}

/// Compiles an expression made of shapes.
pub(super) fn compile(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text)
        .unicode(false)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(CACHE_LIMIT)
        .nest_limit(4 * NEST_LIMIT)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => format!("the regular expression needs more than {limit} bytes when compiled"),
            _ => "the regular expression does not compile".to_owned(),
        })
}

/// Whether every match begins with this byte.
pub(super) fn always_begins_with(hir: &Hir, byte: u8) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.first() == Some(&byte),
        HirKind::Class(class) => class.literal().is_some_and(|only| *only == [byte]),
        HirKind::Capture(capture) => always_begins_with(&capture.sub, byte),
        HirKind::Repetition(repetition) => repetition.min > 0 && always_begins_with(&repetition.sub, byte),
        HirKind::Alternation(parts) => parts.iter().all(|part| always_begins_with(part, byte)),
        HirKind::Concat(parts) => parts
            .iter()
            .find(|part| !matches!(part.kind(), HirKind::Look(_) | HirKind::Empty))
            .is_some_and(|part| always_begins_with(part, byte)),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

/// Whether some match could begin with `prefix`. May say yes too often, never no.
pub(super) fn may_begin_with(hir: &Hir, prefix: &[u8]) -> bool {
    let mut ends = vec![false; prefix.len() + 1];
    advance(hir, prefix, &[0], &mut ends);
    ends.last() == Some(&true)
}

/// Marks where in `prefix` a match that starts at one of `starts` can end; its length stands for "at or past the end".
fn advance(hir: &Hir, prefix: &[u8], starts: &[usize], ends: &mut [bool]) {
    for &start in starts {
        let rest = prefix.get(start..).unwrap_or_default();
        if rest.is_empty() {
            mark(ends, start);
            continue;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => mark(ends, start),
            HirKind::Literal(literal) => {
                let common = literal.0.len().min(rest.len());
                if literal.0.get(..common) == rest.get(..common) {
                    mark(ends, start + common);
                }
            }
            HirKind::Class(class) => {
                if rest.first().is_some_and(|byte| holds(class, *byte)) {
                    mark(ends, start + 1);
                }
            }
            HirKind::Capture(capture) => advance(&capture.sub, prefix, &[start], ends),
            HirKind::Alternation(parts) => parts.iter().for_each(|part| advance(part, prefix, &[start], ends)),
            HirKind::Concat(parts) => {
                let last = parts.iter().fold(vec![start], |from, part| step(part, prefix, &from));
                last.into_iter().for_each(|end| mark(ends, end));
            }
            HirKind::Repetition(repetition) => {
                // Counts are ignored: that only adds matches.
                let mut seen = vec![start];
                let mut new = vec![start];
                while !new.is_empty() {
                    new = step(&repetition.sub, prefix, &new);
                    new.retain(|end| !seen.contains(end));
                    seen.extend_from_slice(&new);
                }
                let from_one = step(&repetition.sub, prefix, &seen);
                let reached = if repetition.min == 0 { seen } else { from_one };
                reached.into_iter().for_each(|end| mark(ends, end));
            }
        }
    }
}

fn step(hir: &Hir, prefix: &[u8], starts: &[usize]) -> Vec<usize> {
    let mut ends = vec![false; prefix.len() + 1];
    advance(hir, prefix, starts, &mut ends);
    (0..ends.len()).filter(|at| ends.get(*at) == Some(&true)).collect()
}

fn mark(ends: &mut [bool], at: usize) {
    if let Some(end) = ends.get_mut(at) {
        *end = true;
    }
}

fn holds(class: &Class, byte: u8) -> bool {
    match class {
        Class::Bytes(class) => class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&byte)),
        // Only through an explicit (?u); its first bytes are not worked out.
        Class::Unicode(class) => !byte.is_ascii() || class.ranges().iter().any(|r| (r.start()..=r.end()).contains(&char::from(byte))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_beginnings_are_found() {
        for (pattern, prefix, expected) in [
            ("abc", "ab", true),
            ("abc", "abcd", false),
            ("abc", "ac", false),
            ("a|--x=.*", "--x=", true),
            ("[a-z]+", "abc", true),
            ("[a-z]+", "ab=", false),
            ("[a-z]+=?", "ab=", true),
            ("(?:ab)*c", "ababc", true),
            ("(?:ab)+", "x", false),
            ("x?y", "y", true),
        ] {
            assert_eq!(
                may_begin_with(&parse(pattern).unwrap(), prefix.as_bytes()),
                expected,
                "{pattern} {prefix}"
            );
        }
    }

    #[test]
    fn printing_keeps_the_language() {
        for (pattern, yes, no) in [
            ("(?i)a|b", "A", "C"),
            ("(?P<x>a)(?P<y>b)", "ab", "a"),
            (r"(?x) a \  b", "a b", "ab"),
            (r"[^/]+\.log", "x.log", "a/x.log"),
        ] {
            let regex = anchored(&print(&parse(pattern).unwrap())).unwrap();
            assert!(regex.is_match(yes.as_bytes()), "{pattern}");
            assert!(!regex.is_match(no.as_bytes()), "{pattern}");
        }
    }
}
