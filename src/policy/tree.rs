//! Filters of a command by their leading fixed words, so that a request meets only filters that begin like it.

use std::collections::HashMap;

use super::index::Filter;
use super::pattern::Arena;

/// Words that are looked at, at most.
const DEPTH: usize = 8;

/// All branches of a policy.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Words by number.
    words: HashMap<Box<[u8]>, u32>,
    /// From a node, by a word, to a node.
    edges: HashMap<(u32, u32), u32>,
    /// The filters whose fixed words end at a node, in order.
    nodes: Vec<Vec<u32>>,
}

impl Tree {
    /// Adds the filters of a command; gives the root of its branch.
    pub(super) fn add(&mut self, filters: &[u32], all: &[Filter], arena: &Arena) -> u32 {
        let root = self.node();
        for at in filters {
            let mut node = root;
            if let Some(filter) = all.get(*at as usize).filter(|_| filters.len() > 1) {
                for word in arena.leading_words(filter.compiled.program).take(DEPTH) {
                    let word = self.word(word);
                    node = match self.edges.get(&(node, word)) {
                        Some(next) => *next,
                        None => {
                            let next = self.node();
                            self.edges.insert((node, word), next);
                            next
                        }
                    };
                }
            }
            if let Some(ends) = self.nodes.get_mut(node as usize) {
                ends.push(*at);
            }
        }
        root
    }

    fn node(&mut self) -> u32 {
        self.nodes.push(Vec::new());
        u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
    }

    fn word(&mut self, word: &[u8]) -> u32 {
        if let Some(number) = self.words.get(word) {
            return *number;
        }
        let number = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.words.insert(word.into(), number);
        number
    }

    /// The filters that begin like these arguments, in order.
    pub(super) fn find(&self, root: u32, args: &[Vec<u8>]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut node = root;
        for argument in args.iter().map(Some).chain([None]) {
            found.extend_from_slice(self.nodes.get(node as usize).map(Vec::as_slice).unwrap_or_default());
            let word = argument.and_then(|argument| self.words.get(argument.as_slice()));
            match word.and_then(|word| self.edges.get(&(node, *word))) {
                Some(next) => node = *next,
                None => break,
            }
        }
        found.sort_unstable();
        found
    }

    /// Gives back what building needed in excess.
    pub(super) fn shrink(&mut self) {
        self.words.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.nodes.iter_mut().for_each(Vec::shrink_to_fit);
        self.nodes.shrink_to_fit();
    }
}
