//! Filters of a command by their leading fixed words, so that a request meets only filters that begin like it.

use std::collections::HashMap;

use super::hash::Map;
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
    edges: Map<(u32, u32), u32>,
    /// For each node the first of the filters whose fixed words end there, as an index into the next, plus one.
    nodes: Vec<u32>,
    /// A filter, and the index plus one of the next at the same node.
    ends: Vec<(u32, u32)>,
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
            if let Some(first) = self.nodes.get_mut(node as usize) {
                self.ends.push((*at, *first));
                *first = u32::try_from(self.ends.len()).unwrap_or(0);
            }
        }
        root
    }

    fn node(&mut self) -> u32 {
        self.nodes.push(0);
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
            let mut next = self.nodes.get(node as usize).copied().unwrap_or(0);
            while let Some((filter, after)) = (next as usize).checked_sub(1).and_then(|at| self.ends.get(at)) {
                found.push(*filter);
                next = *after;
            }
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
        self.nodes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Compiler;
    use super::super::spec::{Element, ElementKind, Span};
    use super::*;

    fn filter(compiler: &mut Compiler, words: &[&str]) -> Filter {
        let kind = |word: &&str| match *word {
            "*" => ElementKind::Any,
            word => ElementKind::Literal(word.as_bytes().to_vec()),
        };
        let element = |word| Element {
            span: Span::default(),
            kind: kind(word),
            dash: false,
            secret: false,
        };
        let spec = crate::policy::testing::filter("x", "/bin/x", words.iter().map(element).collect());
        let compiled = compiler.filter(&spec).unwrap();
        Filter {
            spec: std::sync::Arc::new(spec),
            compiled,
        }
    }

    #[test]
    fn filters_that_begin_otherwise_are_left_out_and_order_is_kept() {
        let mut compiler = Compiler::default();
        let patterns: [&[&str]; 6] = [&["a", "b"], &["*"], &["a", "c"], &["a", "*"], &[], &["a", "b", "*"]];
        let all: Vec<Filter> = patterns.iter().map(|words| filter(&mut compiler, words)).collect();
        let (arena, _) = compiler.finish();
        let mut tree = Tree::default();
        let root = tree.add(&[0, 1, 2, 3, 4, 5], &all, &arena);
        let find = |args: &[&str]| {
            let args: Vec<Vec<u8>> = args.iter().map(|word| word.as_bytes().to_vec()).collect();
            tree.find(root, &args)
        };
        assert_eq!(find(&["a", "b"]), [0, 1, 3, 4, 5]);
        assert_eq!(find(&["a", "c", "x"]), [1, 2, 3, 4]);
        assert_eq!(find(&["a", "new"]), [1, 3, 4]);
        assert_eq!(find(&["b"]), [1, 4]);
        assert_eq!(find(&[]), [1, 4]);
    }
}
