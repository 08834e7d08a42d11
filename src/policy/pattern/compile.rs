//! From elements to programs.
//!
//! Reports every error of a filter, each at its place. Values are interned: compiling the same filter twice costs the arena its
//! instructions only.

use std::sync::Arc;

use super::intern::{ProgramRef, Table};
use super::options::OptionSet;
use super::program::{Inst, MAX_LENGTH};
use super::{Arena, Part, Secrets, SignalFilter, Value};
use super::{
    any, command, concat, follow, host, int, interface, ip, list, literal, mac, one_of, optional, options, path_under, regex, render,
};
use super::{repeat, secret, sequence, signal, uuid};
use crate::policy::BuildError;
use crate::policy::hash::Map;
use crate::policy::spec::{Element, ElementKind, FilterSpec, Span};

/// Variables by name, each with the index of its value's part.
type Allowed = Box<[(Box<str>, u32)]>;

/// One filter, compiled: its program and what is beside it.
#[derive(Debug)]
pub(in crate::policy) struct Compiled {
    pub(in crate::policy) program: ProgramRef,
    /// Variables that a caller may set: name and index of the value's part.
    pub(in crate::policy) environment: Allowed,
    /// Instead of the program, for a filter that sends a signal.
    pub(in crate::policy) signal: Option<Box<SignalFilter>>,
    /// Where secrets may stand, if there are any.
    pub(in crate::policy) secrets: Option<Box<Secrets>>,
    /// For people.
    pub(in crate::policy) pattern: Box<str>,
    /// Ends in a `command` element.
    pub(in crate::policy) takes_command: bool,
}

/// An error was reported; nothing more to say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported;

/// Modifiers of the elements around.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    dash: bool,
    secret: bool,
}

impl Marks {
    fn and(self, element: &Element) -> Self {
        Self {
            dash: self.dash || element.dash,
            secret: self.secret || element.secret,
        }
    }
}

/// What may stand at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Nothing follows: `command` may stand here.
    last: bool,
    /// Not inside an option's value: `options` may stand here.
    options: bool,
}

impl Place {
    const ARGS: Self = Self { last: true, options: true };
    pub(super) const OPTION_VALUE: Self = Self {
        last: false,
        options: false,
    };

    pub(super) fn before_others(self) -> Self {
        Self { last: false, ..self }
    }
}

/// A program in the making.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) insts: Vec<Inst>,
    /// Where the options elements stand, for messages.
    pub(super) options: Vec<(usize, Span)>,
}

impl Body {
    pub(super) fn push(&mut self, inst: Inst) {
        self.insts.push(inst);
    }

    /// The index of the next instruction.
    pub(super) fn here(&self) -> u32 {
        u32::try_from(self.insts.len()).unwrap_or(u32::MAX)
    }

    /// A place to fill in later.
    pub(super) fn hole(&mut self) -> u32 {
        let at = self.here();
        self.push(Inst::Jump(at + 1));
        at
    }

    pub(super) fn fill(&mut self, at: u32, inst: Inst) {
        if let Some(hole) = self.insts.get_mut(at as usize) {
            *hole = inst;
        }
    }
}

/// Compiles the filters of one policy.
#[derive(Default)]
pub(in crate::policy) struct Compiler {
    pub(super) arena: Arena,
    parts: Table<Part>,
    options: Table<OptionSet>,
    programs: Map<Box<[Inst]>, ProgramRef>,
    regexes: Map<Box<str>, Arc<regex::Pattern>>,
    errors: Vec<BuildError>,
}

impl Compiler {
    /// The arena, or every error.
    pub(in crate::policy) fn finish(mut self) -> (Arena, Vec<BuildError>) {
        self.arena.shrink();
        (self.arena, self.errors)
    }

    /// Notes an error.
    pub(in crate::policy) fn report(&mut self, span: Span, message: impl Into<String>, hint: &str) {
        self.errors.push(BuildError {
            span,
            message: message.into(),
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
        });
    }

    pub(super) fn fail<T>(&mut self, span: Span, message: impl Into<String>, hint: &str) -> Result<T, Reported> {
        self.report(span, message, hint);
        Err(Reported)
    }

    fn checked(&mut self, span: Span, result: Result<(), String>) -> Result<(), Reported> {
        result.or_else(|message| self.fail(span, message, ""))
    }

    /// Compiles one filter; `None` when errors were reported.
    pub(in crate::policy) fn filter(&mut self, filter: &FilterSpec) -> Option<Compiled> {
        let environment = self.environment(filter);
        let (program, signal) = if signal::is_wanted(&filter.args) {
            (Ok(ProgramRef::default()), signal::compile(self, filter).map(Some))
        } else {
            (self.program(&filter.args), Ok(None))
        };
        let (program, environment, signal) = (program.ok()?, environment.ok()?, signal.ok()?);
        let takes_command = self.arena.program(program).iter().any(|inst| matches!(inst, Inst::Command(_)));
        Some(Compiled {
            program,
            environment,
            signal,
            secrets: secret::find(filter).map(Box::new),
            pattern: render::arguments(&filter.args).into(),
            takes_command,
        })
    }

    fn program(&mut self, args: &[Element]) -> Result<ProgramRef, Reported> {
        let mut body = Body {
            insts: Vec::with_capacity(args.len() + 1),
            options: Vec::new(),
        };
        sequence::emit(self, &mut body, args, Marks::default(), Place::ARGS)?;
        body.push(Inst::Accept);
        follow::check(self, &body)?;
        if let Some(program) = self.programs.get(body.insts.as_slice()) {
            return Ok(*program);
        }
        let program = self.arena.add_program(&body.insts);
        self.programs.insert(body.insts.into(), program);
        Ok(program)
    }

    fn environment(&mut self, filter: &FilterSpec) -> Result<Allowed, Reported> {
        let parts: Vec<_> = filter
            .execution
            .env_allow
            .iter()
            .map(|(name, element)| Ok((name.as_str().into(), self.part(element, Marks::default())?)))
            .collect();
        parts.into_iter().collect()
    }

    /// Compiles any element into a program.
    pub(super) fn emit(&mut self, body: &mut Body, element: &Element, marks: Marks, place: Place) -> Result<(), Reported> {
        if body.insts.len() > MAX_LENGTH {
            return self.fail(
                element.span,
                format!("the filter needs more than {MAX_LENGTH} instructions"),
                "leave `max` out of a `repeat`, or split the filter",
            );
        }
        if let Some(part) = self.value(element, marks)? {
            body.push(Inst::Take(part));
            return Ok(());
        }
        let marks = marks.and(element);
        match &element.kind {
            ElementKind::Sequence(elements) => sequence::emit(self, body, elements, marks, place),
            ElementKind::Optional(element) => optional::emit(self, body, element, marks, place),
            ElementKind::OneOf(elements) => self.branches(body, element.span, elements, marks, place),
            ElementKind::Repeat { item, min, max } => {
                self.checked(element.span, repeat::check(*min, *max))?;
                repeat::emit(self, body, (item, *min, *max), marks, place)
            }
            ElementKind::Options(_) if !place.options => self.fail(
                element.span,
                "`options` cannot stand inside the value of an option",
                "list all options in one `options` element",
            ),
            ElementKind::Options(specs) => {
                let set = options::compile(self, element.span, specs, marks)?;
                let index = self.options.add(&mut self.arena.options, set);
                body.options.push((body.insts.len(), element.span));
                body.push(Inst::Options(index));
                Ok(())
            }
            ElementKind::Command(_) if !place.last => self.fail(
                element.span,
                "`command` must be the last element",
                "everything after it belongs to the inner command",
            ),
            ElementKind::Command(filters) => {
                command::emit(self, body, element.span, filters);
                Ok(())
            }
            // All others are values.
            _ => self.part(element, marks).map(drop),
        }
    }

    /// `one_of` whose alternatives take different numbers of arguments.
    fn branches(&mut self, body: &mut Body, span: Span, elements: &[Element], marks: Marks, place: Place) -> Result<(), Reported> {
        self.checked(span, one_of::check(elements.len()))?;
        let mut jumps = Vec::new();
        let mut result = Ok(());
        for (at, element) in elements.iter().enumerate() {
            let more = at + 1 < elements.len();
            let split = more.then(|| body.hole());
            result = self.emit(body, element, marks, place).and(result);
            if let Some(split) = split {
                jumps.push(body.hole());
                let second = body.here();
                body.fill(split, Inst::Split { first: split + 1, second });
            }
        }
        let end = body.here();
        jumps.into_iter().for_each(|jump| body.fill(jump, Inst::Jump(end)));
        result
    }

    /// The part of an element that takes exactly one argument; `None` for a group.
    pub(super) fn value(&mut self, element: &Element, marks: Marks) -> Result<Option<u32>, Reported> {
        if is_value(element) {
            self.part(element, marks).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The part of an element that must take exactly one argument.
    pub(super) fn part(&mut self, element: &Element, marks: Marks) -> Result<u32, Reported> {
        let marks = marks.and(element);
        if let ElementKind::Sequence(elements) = &element.kind {
            if let [only] = elements.as_slice() {
                return self.part(only, marks);
            }
        }
        let mut part = Part {
            value: self.value_of(element, marks)?,
            dash: marks.dash,
            secret: marks.secret || contains_secret(element),
        };
        if let Some(index) = self.parts.find(&part) {
            return Ok(index);
        }
        if let Value::Concat(concat) = &mut part.value {
            let compiled = concat.compile();
            self.checked(element.span, compiled)?;
        }
        Ok(self.parts.add(&mut self.arena.parts, part))
    }

    fn shared(&mut self, element: &Element, marks: Marks) -> Result<Arc<Part>, Reported> {
        let index = self.part(element, marks)?;
        self.arena.parts.get(index as usize).cloned().ok_or(Reported)
    }

    fn shared_all(&mut self, elements: &[Element], marks: Marks) -> Result<Vec<Arc<Part>>, Reported> {
        let parts: Vec<_> = elements.iter().map(|element| self.shared(element, marks)).collect();
        parts.into_iter().collect()
    }

    fn value_of(&mut self, element: &Element, marks: Marks) -> Result<Value, Reported> {
        let span = element.span;
        Ok(match &element.kind {
            ElementKind::Literal(text) => {
                self.checked(span, literal::check(text))?;
                Value::Literal(literal::Literal(text.as_slice().into()))
            }
            ElementKind::Any => Value::Any(any::Any),
            ElementKind::Mac => Value::Mac(mac::Mac),
            ElementKind::Uuid => Value::Uuid(uuid::Uuid),
            ElementKind::Host => Value::Host(host::Host),
            ElementKind::Interface => Value::Interface(interface::Interface),
            ElementKind::Regex(source) => Value::Regex(self.regex(span, source)?),
            ElementKind::Int { min, max } => {
                self.checked(span, int::check(*min, *max))?;
                Value::Int(int::Int { min: *min, max: *max })
            }
            ElementKind::Ip { family, prefix, within } => {
                self.checked(span, within.iter().try_for_each(ip::check))?;
                Value::Ip(Box::new(ip::Ip {
                    family: *family,
                    prefix: *prefix,
                    within: within.as_slice().into(),
                }))
            }
            ElementKind::PathUnder { base, new, links_to, .. } => {
                let mut directories = std::iter::once(base).chain(links_to);
                self.checked(span, directories.try_for_each(|path| path_under::check(path)))?;
                Value::PathUnder(Box::new(path_under::PathUnder {
                    base: base.clone(),
                    new: *new,
                    links_to: links_to.as_slice().into(),
                }))
            }
            ElementKind::Concat(elements) if elements.is_empty() => {
                return self.fail(span, "`concat` puts nothing together", "write \"\" for an empty argument");
            }
            ElementKind::Concat(elements) => Value::Concat(Box::new(concat::Concat::new(self.shared_all(elements, marks)?))),
            ElementKind::List { item, separator } => {
                let item = self.shared(item, marks)?;
                self.checked(span, list::check(&item, separator))?;
                Value::List(Box::new(list::List {
                    item,
                    separator: separator.as_str().into(),
                }))
            }
            ElementKind::OneOf(elements) => {
                self.checked(span, one_of::check(elements.len()))?;
                Value::OneOf(one_of::OneOf(self.shared_all(elements, marks)?.into()))
            }
            ElementKind::PidOf { .. } => return self.fail(span, signal::MISPLACED, signal::HINT),
            ElementKind::Sequence(_)
            | ElementKind::Optional(_)
            | ElementKind::Repeat { .. }
            | ElementKind::Options(_)
            | ElementKind::Command(_) => {
                return self.fail(
                    span,
                    "this must be exactly one argument",
                    "`optional`, `repeat`, `options`, `command` and sequences cannot stand here",
                );
            }
        })
    }

    fn regex(&mut self, span: Span, source: &str) -> Result<Arc<regex::Pattern>, Reported> {
        if let Some(pattern) = self.regexes.get(source) {
            return Ok(Arc::clone(pattern));
        }
        match regex::Pattern::new(source) {
            Ok(pattern) => {
                let pattern = Arc::new(pattern);
                self.regexes.insert(source.into(), Arc::clone(&pattern));
                Ok(pattern)
            }
            Err(message) => self.fail(span, message, "linear-time syntax: no look-around and no back-references"),
        }
    }
}

/// Whether an element always takes exactly one argument.
pub(super) fn is_value(element: &Element) -> bool {
    match &element.kind {
        ElementKind::Sequence(elements) => matches!(elements.as_slice(), [only] if is_value(only)),
        ElementKind::OneOf(elements) => !elements.is_empty() && elements.iter().all(is_value),
        ElementKind::Optional(_) | ElementKind::Repeat { .. } | ElementKind::Options(_) | ElementKind::Command(_) => false,
        _ => true,
    }
}

/// Whether something inside is secret: then the whole argument is.
pub(super) fn contains_secret(element: &Element) -> bool {
    element.secret
        || match &element.kind {
            ElementKind::Sequence(elements) | ElementKind::OneOf(elements) | ElementKind::Concat(elements) => {
                elements.iter().any(contains_secret)
            }
            ElementKind::Optional(item) | ElementKind::Repeat { item, .. } | ElementKind::List { item, .. } => contains_secret(item),
            ElementKind::Options(options) => options.iter().filter_map(|option| option.value.as_ref()).any(contains_secret),
            _ => false,
        }
}
