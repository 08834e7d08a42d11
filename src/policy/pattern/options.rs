//! `{ options = { "-w, --wait, --wait=" = ... } }`: options in any order.
//!
//! Each at most once unless `many`. Spellings are exact: no abbreviations, no bundles. One that ends in `=` has its value joined,
//! any other takes the argument or arguments after it. The element ends at the first argument that is no spelling. It is
//! possessive: an argument that is a spelling is an option, and a value takes as much as it can.

use std::collections::HashMap;

use super::compile::{Body, Compiler, Marks, Place, Reported, is_value};
use super::program::{Inst, Program};
use crate::policy::spec::{Element, ElementKind, OptionSpec, Span};
use crate::policy::text::quoted;

/// A compiled options element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct OptionSet {
    /// All spellings; the longest first, so that the first that fits is the right one.
    pub(super) keys: Box<[Key]>,
    pub(super) entries: Box<[Entry]>,
}

/// One spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Key {
    pub(super) spelling: Box<[u8]>,
    /// Its value is in the same argument.
    pub(super) joined: bool,
    pub(super) entry: usize,
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Entry {
    /// What follows a spelling without `=`.
    pub(super) value: Following,
    /// The part that judges a joined value.
    pub(super) joined: Option<u32>,
    pub(super) required: bool,
    pub(super) many: bool,
    /// For messages.
    pub(super) name: Box<[u8]>,
}

/// The arguments after a spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) enum Following {
    /// None.
    Nothing,
    /// Exactly one.
    One(u32),
    /// As many as this program takes at most.
    Several(Box<Program>),
}

impl OptionSet {
    /// The option that this argument is a spelling of.
    pub(super) fn find(&self, argument: &[u8]) -> Option<&Key> {
        self.keys.iter().find(|key| {
            if key.joined {
                argument.starts_with(&key.spelling)
            } else {
                *key.spelling == *argument
            }
        })
    }

    /// In words.
    pub(super) fn expected(&self) -> String {
        let names: Vec<String> = self.entries.iter().take(12).map(|entry| quoted(&entry.name)).collect();
        match names.as_slice() {
            [only] => format!("the option {only}"),
            _ => format!("an option ({})", names.join(", ")),
        }
    }
}

/// Compiles and checks one options element.
pub(super) fn compile(compiler: &mut Compiler, span: Span, specs: &[OptionSpec], marks: Marks) -> Result<OptionSet, Reported> {
    if specs.is_empty() {
        return compiler.fail(span, "`options` lists no option", "");
    }
    let mut keys: Vec<Key> = Vec::new();
    let mut entries = Vec::new();
    let mut seen = HashMap::new();
    let mut result = Ok(());
    for spec in specs {
        for spelling in &spec.keys {
            let key = Key {
                spelling: spelling.as_bytes().into(),
                joined: spelling.ends_with('='),
                entry: entries.len(),
            };
            if spelling.is_empty() || spelling == "=" || spelling.contains('\0') {
                result = compiler.fail(spec.span, "an option needs a spelling such as `-w` or `--wait=`", "");
            } else if seen.insert(spelling.as_str(), ()).is_some() {
                result = compiler.fail(spec.span, format!("`{spelling}` is listed twice"), "");
            }
            keys.push(key);
        }
        match entry(compiler, spec, marks) {
            Ok(entry) => entries.push(entry),
            Err(Reported) => result = Err(Reported),
        }
    }
    // Exact spellings before joined ones, longer ones before their beginnings.
    keys.sort_by_key(|key| (key.joined, std::cmp::Reverse(key.spelling.len())));
    result.map(|()| OptionSet {
        keys: keys.into(),
        entries: entries.into(),
    })
}

fn entry(compiler: &mut Compiler, spec: &OptionSpec, marks: Marks) -> Result<Entry, Reported> {
    let Some(name) = spec.keys.first() else {
        return compiler.fail(spec.span, "an option needs a spelling such as `-w` or `--wait=`", "");
    };
    let joined = if spec.keys.iter().any(|key| key.ends_with('=')) {
        Some(joined_value(compiler, spec, marks)?)
    } else {
        None
    };
    let value = match &spec.value {
        None => Following::Nothing,
        Some(_) if spec.keys.iter().all(|key| key.ends_with('=')) => Following::Nothing,
        Some(element) if is_value(element) => Following::One(compiler.part(element, marks)?),
        Some(element) => {
            let mut body = Body::default();
            compiler.emit(&mut body, element, marks, Place::OPTION_VALUE)?;
            body.push(Inst::Accept);
            Following::Several(body.insts.into())
        }
    };
    Ok(Entry {
        value,
        joined,
        required: spec.required,
        many: spec.many,
        name: name.as_bytes().into(),
    })
}

/// The value behind `=`: an optional one is there when the sign is.
fn joined_value(compiler: &mut Compiler, spec: &OptionSpec, marks: Marks) -> Result<u32, Reported> {
    let element: Option<&Element> = spec.value.as_ref().map(|element| match &element.kind {
        ElementKind::Optional(inner) => inner.as_ref(),
        _ => element,
    });
    match element {
        Some(element) => compiler.part(element, marks),
        None => compiler.fail(
            spec.span,
            "an option whose spelling ends in `=` needs a value",
            "name the value's pattern instead of `true`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{fails, literal, matches, option, optional, options, repeat, sequence, value};
    use crate::policy::spec::{Element, ElementKind};

    fn int() -> Element {
        value(ElementKind::Int { min: 0, max: 600 })
    }

    fn wait() -> Element {
        options(vec![
            option(&["-w", "--wait", "--wait="], Some(optional(int()))),
            option(&["-n"], None),
        ])
    }

    #[test]
    fn options_stand_in_any_order_and_may_be_missing() {
        for yes in [
            &["-w", "-n"][..],
            &["-n", "-w", "10"],
            &["--wait=10"],
            &["--wait", "10", "-n"],
            &["-w"],
            &[],
        ] {
            assert!(matches(&[wait()], yes), "{yes:?}");
        }
        for no in [
            &["-n", "-n"][..],
            &["-w", "10", "20"],
            &["--wait=10", "-w"],
            &["--wait="],
            &["-nw"],
            &["-w10"],
            &["--wai", "10"],
            &["--wait=x"],
            &["-x"],
            &["10", "-w"],
            &[""],
        ] {
            assert!(!matches(&[wait()], no), "{no:?}");
        }
    }

    #[test]
    fn required_options_must_be_there_and_many_may_repeat() {
        let mut level = option(&["-l"], Some(int()));
        level.required = true;
        let mut server = option(&["--server="], Some(value(ElementKind::Host)));
        server.many = true;
        let args = [options(vec![level, server])];
        assert!(matches(&args, &["--server=a", "-l", "1", "--server=b"]));
        assert!(!matches(&args, &["--server=a"]));
        assert!(!matches(&args, &["-l"]));
        assert!(!matches(&args, &["-l", "1", "-l", "2"]));
    }

    #[test]
    fn values_may_take_several_arguments() {
        let pair = sequence(vec![value(ElementKind::Interface), int()]);
        let args = [options(vec![option(&["-p"], Some(pair)), option(&["-v"], None)]), literal("end")];
        assert!(matches(&args, &["-p", "eth0", "5", "-v", "end"]));
        assert!(!matches(&args, &["-p", "eth0", "-v", "end"]));
    }

    #[test]
    fn a_value_takes_as_much_as_it_can_and_keeps_it() {
        let args = [options(vec![option(&["-w"], Some(optional(literal("x"))))]), literal("x")];
        assert!(!matches(&args, &["-w", "x"]));
        assert!(matches(&args, &["-w", "x", "x"]));
        assert!(matches(&args, &["x"]));
    }

    #[test]
    fn the_first_other_argument_ends_the_options() {
        let args = [wait(), literal("add")];
        assert!(matches(&args, &["-n", "add"]));
        assert!(!matches(&args, &["add", "-n"]));
        assert!(matches(&[wait(), literal("--"), value(ElementKind::Interface)], &["-n", "--", "a"]));
    }

    #[test]
    fn joined_values_may_begin_with_a_dash() {
        let args = [options(vec![option(&["--note="], Some(value(ElementKind::Any)))])];
        assert!(matches(&args, &["--note=-x"]));
        assert!(!matches(&args, &["--note="]));
    }

    #[test]
    fn the_longest_spelling_wins() {
        let args = [options(vec![
            option(&["--a="], Some(int())),
            option(&["--a=b="], Some(literal("c"))),
            option(&["--a=5"], None),
        ])];
        assert!(matches(&args, &["--a=b=c"]));
        assert!(matches(&args, &["--a=5", "--a=5"]) == matches(&args, &["--a=6", "--a=6"]));
        assert!(matches(&args, &["--a=6", "--a=5"]));
    }

    #[test]
    fn wrong_lists_are_errors() {
        assert!(fails(&options(vec![])).contains("no option"));
        assert!(fails(&options(vec![option(&["-a"], None), option(&["-a"], None)])).contains("twice"));
        assert!(fails(&options(vec![option(&["--a="], None)])).contains("needs a value"));
        assert!(fails(&options(vec![option(&["--a="], Some(repeat(int(), 1, None)))])).contains("one argument"));
        assert!(fails(&options(vec![option(&[""], None)])).contains("spelling"));
        let nested = options(vec![option(&["-a"], Some(optional(wait())))]);
        assert!(fails(&nested).contains("inside"));
    }
}
