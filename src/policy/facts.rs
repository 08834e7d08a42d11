//! Questions that only the system can answer.
//!
//! [`decide`](super::decide) never does I/O. It takes every unknown answer for yes, and when the result leans on one, it returns
//! the questions; the caller of `decide` finds the answers and asks again. Every round answers at least one new question,
//! so this ends.

use std::collections::HashMap;
use std::path::PathBuf;

/// Something to find out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Does this path, walked component by component, stay strictly below its base?
    PathUnder {
        /// As the caller gave it: absolute, lexically below `base`.
        path: Vec<u8>,
        /// Where it must stay.
        base: PathBuf,
        /// Where symlinks may lead as well.
        links_to: Vec<PathBuf>,
        /// The last component need not exist.
        new: bool,
    },
    /// Does this process run one of these executables?
    PidOf {
        /// Greater than zero.
        pid: u32,
        /// Absolute.
        executables: Vec<PathBuf>,
        /// It must also be in the caller's unit.
        same_unit: bool,
    },
}

/// Answers so far.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    answers: HashMap<Question, bool>,
    lexical: bool,
}

impl Facts {
    /// No answer yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every answer is yes: paths are judged by their spelling, processes by their number. For `check` and offline `explain`.
    #[must_use]
    pub fn lexical() -> Self {
        Self {
            answers: HashMap::new(),
            lexical: true,
        }
    }

    /// Records an answer.
    pub fn insert(&mut self, question: Question, answer: bool) {
        self.answers.insert(question, answer);
    }

    /// The answer, where it is known.
    #[must_use]
    pub fn get(&self, question: &Question) -> Option<bool> {
        if self.lexical {
            Some(true)
        } else {
            self.answers.get(question).copied()
        }
    }
}
