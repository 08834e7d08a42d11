//! The kinds of elements, a file each, and the matcher that divides arguments among them.
//!
//! A *value* takes exactly one argument and implements [`Kind`]; a *group* is compiled to instructions of a small program
//! ([`program`]) that the [`machine`] runs. Values are interned: equal ones exist once in a policy, whatever the number of filters.

mod any;
mod command;
mod compile;
mod concat;
mod follow;
mod host;
mod int;
mod interface;
mod intern;
mod ip;
mod list;
mod literal;
mod mac;
mod machine;
mod one_of;
mod optional;
mod options;
mod path_under;
mod pid_of;
mod program;
mod regex;
mod render;
mod repeat;
mod secret;
mod sequence;
mod shape;
mod signal;
#[cfg(test)]
mod testing;
mod uuid;

use std::sync::Arc;

pub(super) use command::Inner;
pub(super) use compile::{Compiled, Compiler};
pub(super) use intern::Arena;
pub(super) use machine::{Budget, By, Covered, Machine, Tracker};
pub(super) use pid_of::PidOf;
pub(super) use program::Inst;
pub(super) use secret::{Secrets, hide, mask_options, mask_positions};
pub(super) use signal::SignalFilter;

use super::facts::{Facts, Question};

/// What a judgement leans on: answers so far, and questions without one, which count as yes for now.
pub(super) struct Lean<'a> {
    facts: &'a Facts,
    /// Questions that were taken for yes.
    pub(super) open: Vec<Question>,
}

impl<'a> Lean<'a> {
    pub(super) fn new(facts: &'a Facts) -> Self {
        Self { facts, open: Vec::new() }
    }

    /// The answer, or yes with the question noted.
    pub(super) fn ask(&mut self, question: Question) -> bool {
        match self.facts.get(&question) {
            Some(answer) => answer,
            None => {
                if !self.open.contains(&question) {
                    self.open.push(question);
                }
                true
            }
        }
    }
}

/// What one argument may be.
pub(super) trait Kind {
    /// Whether it takes the whole text. `lead`: the text is the beginning of an argument, so that the dash rule holds for
    /// the parts of this value.
    fn accepts(&self, text: &[u8], lead: bool, lean: &mut Lean<'_>) -> bool;

    /// A regular expression (bytes, ASCII classes, closed in itself) that matches at least everything this accepts.
    fn shape(&self) -> String;

    /// May take an argument that begins with `-`, or leaves that question to its parts.
    fn leads(&self) -> bool {
        false
    }

    /// In words, for "expected ...".
    fn expected(&self) -> String;
}

/// A value with its modifiers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) value: Value,
    pub(super) dash: bool,
    pub(super) secret: bool,
}

impl Part {
    /// Whether it takes this text; `lead`: as a whole argument.
    pub(super) fn accepts(&self, text: &[u8], lead: bool, lean: &mut Lean<'_>) -> bool {
        !(lead && self.refuses_dash(text)) && self.value.kind().accepts(text, lead && !self.dash, lean)
    }

    /// The dash rule: whether this argument begins with `-` and nothing here may take one that does.
    pub(super) fn refuses_dash(&self, argument: &[u8]) -> bool {
        argument.first() == Some(&b'-') && !self.dash && !self.value.kind().leads()
    }

    /// In words.
    pub(super) fn expected(&self) -> String {
        self.value.kind().expected()
    }

    /// As [`Kind::shape`].
    pub(super) fn shape(&self) -> String {
        self.value.kind().shape()
    }
}

/// The kinds that take exactly one argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Literal(literal::Literal),
    Any(any::Any),
    Regex(Arc<regex::Pattern>),
    Int(int::Int),
    Ip(Box<ip::Ip>),
    Mac(mac::Mac),
    Uuid(uuid::Uuid),
    Host(host::Host),
    Interface(interface::Interface),
    PathUnder(Box<path_under::PathUnder>),
    Concat(Box<concat::Concat>),
    List(Box<list::List>),
    OneOf(one_of::OneOf),
}

impl Value {
    fn kind(&self) -> &dyn Kind {
        match self {
            Self::Literal(kind) => kind,
            Self::Any(kind) => kind,
            Self::Regex(kind) => kind.as_ref(),
            Self::Int(kind) => kind,
            Self::Ip(kind) => kind.as_ref(),
            Self::Mac(kind) => kind,
            Self::Uuid(kind) => kind,
            Self::Host(kind) => kind,
            Self::Interface(kind) => kind,
            Self::PathUnder(kind) => kind.as_ref(),
            Self::Concat(kind) => kind.as_ref(),
            Self::List(kind) => kind.as_ref(),
            Self::OneOf(kind) => kind,
        }
    }
}
