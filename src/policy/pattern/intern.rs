//! Everything compiled that filters share: values, option sets and inner commands, each once.

use std::hash::Hash;
use std::sync::Arc;

use super::options::OptionSet;
use super::program::{Inst, Program};
use super::{Inner, Part, Value};
use crate::policy::hash::Map;

/// What programs point into.
#[derive(Debug, Default)]
pub(in crate::policy) struct Arena {
    pub(super) parts: Vec<Arc<Part>>,
    pub(super) options: Vec<Arc<OptionSet>>,
    pub(super) inner: Vec<Inner>,
    insts: Vec<Inst>,
}

/// Where in the arena a program is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::policy) struct ProgramRef {
    start: u32,
    length: u32,
}

impl Arena {
    /// The program of a filter.
    pub(in crate::policy) fn program(&self, program: ProgramRef) -> &Program {
        let start = program.start as usize;
        self.insts.get(start..start + program.length as usize).unwrap_or_default()
    }

    /// The fixed words that a program begins with. A secret ends them: whether it was tried on an argument matters for its mask.
    pub(in crate::policy) fn leading_words(&self, program: ProgramRef) -> impl Iterator<Item = &[u8]> {
        self.program(program).iter().map_while(|inst| match inst {
            Inst::Take(part) => match self.part(*part)? {
                Part {
                    value: Value::Literal(literal),
                    secret: false,
                    ..
                } => Some(&*literal.0),
                _ => None,
            },
            _ => None,
        })
    }

    /// A value.
    pub(in crate::policy) fn part(&self, index: u32) -> Option<&Part> {
        self.parts.get(index as usize).map(Arc::as_ref)
    }

    /// An options element.
    pub(super) fn option_set(&self, index: u32) -> Option<&OptionSet> {
        self.options.get(index as usize).map(Arc::as_ref)
    }

    /// A command element.
    pub(in crate::policy) fn inner(&self, index: u32) -> Option<&Inner> {
        self.inner.get(index as usize)
    }

    /// All command elements, to fill in the filters that they name.
    pub(in crate::policy) fn inner_mut(&mut self) -> &mut [Inner] {
        &mut self.inner
    }

    pub(super) fn add_program(&mut self, insts: &Program) -> ProgramRef {
        let start = self.insts.len();
        self.insts.extend_from_slice(insts);
        ProgramRef {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            length: u32::try_from(insts.len()).unwrap_or(0),
        }
    }

    /// Gives back what building needed in excess.
    pub(in crate::policy) fn shrink(&mut self) {
        self.parts.shrink_to_fit();
        self.options.shrink_to_fit();
        self.inner.shrink_to_fit();
        self.insts.shrink_to_fit();
    }
}

/// Equal things get the same index.
pub(super) struct Table<T>(Map<Arc<T>, u32>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Map::default())
    }
}

impl<T: Hash + Eq> Table<T> {
    pub(super) fn find(&self, wanted: &T) -> Option<u32> {
        self.0.get(wanted).copied()
    }

    pub(super) fn add(&mut self, items: &mut Vec<Arc<T>>, item: T) -> u32 {
        if let Some(index) = self.find(&item) {
            return index;
        }
        let index = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let item = Arc::new(item);
        items.push(Arc::clone(&item));
        self.0.insert(item, index);
        index
    }
}
