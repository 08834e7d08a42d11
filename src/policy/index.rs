//! The compiled policy: filters by command.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hash::Map;
use super::link;
use super::pattern::{Arena, Compiled, Compiler};
use super::spec::{FilterSpec, PolicySpec, Span};
use super::{Subject, tree::Tree};

/// What is wrong with a filter, found while compiling it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// Where.
    pub span: Span,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BuildError {}

/// A compiled policy. Immutable; the daemon swaps whole policies.
#[derive(Debug, Default)]
pub struct Policy {
    files: Vec<PathBuf>,
    hash: [u8; 32],
    filters: Vec<Filter>,
    arena: Arena,
    /// By spelling and by bare name: indices into the next.
    names: HashMap<Box<[u8]>, u32>,
    commands: Vec<Command>,
    tree: Tree,
}

/// One filter: what the file says, without `args`, and what these were compiled to.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) spec: Arc<FilterSpec>,
    pub(super) compiled: Compiled,
}

impl Filter {
    /// Whether this caller may use it. A test that assumes its caller assumes the user that the command runs as, too.
    pub(super) fn admits(&self, subject: &Subject) -> bool {
        let can_run = self.spec.execution.run_as.ids.is_some() || subject.assumed_by_file.is_some();
        can_run && subject.is_among(&self.spec.callers, self.spec.span.file)
    }
}

/// The filters of one command.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// Indices, in order.
    pub(super) filters: Box<[u32]>,
    /// Some filter has secrets.
    pub(super) secrets: bool,
    /// Some filter has an inner command.
    pub(super) takes_command: bool,
    /// Its branch of the tree.
    root: u32,
}

impl Policy {
    /// Compiles all filters; returns every error, not only the first.
    ///
    /// # Errors
    /// Regular expressions that do not compile, ambiguous options, unknown filters in `command`, and so on.
    pub fn build(spec: PolicySpec) -> Result<Self, Vec<BuildError>> {
        let mut compiler = Compiler::default();
        let mut filters = Vec::with_capacity(spec.filters.len());
        for mut filter in spec.filters {
            link::check(&mut compiler, &filter);
            if let Some(compiled) = compiler.filter(&filter) {
                filter.args = Vec::new();
                filters.push(Filter {
                    spec: Arc::new(filter),
                    compiled,
                });
            }
        }
        let (mut arena, mut errors) = compiler.finish();
        link::names(&filters, &mut arena, &mut errors);
        if !errors.is_empty() {
            errors.sort_by_key(|error| (error.span.file, error.span.start));
            return Err(errors);
        }
        let mut policy = Self {
            files: spec.files,
            hash: spec.hash,
            filters,
            arena,
            names: HashMap::new(),
            commands: Vec::new(),
            tree: Tree::default(),
        };
        policy.index();
        Ok(policy)
    }

    fn index(&mut self) {
        let mut lists: Map<&[u8], Vec<u32>> = Map::default();
        for (at, filter) in (0..).zip(&self.filters) {
            for name in filter
                .spec
                .command
                .spelled
                .iter()
                .flat_map(|spelled| [spelled.as_str(), base_name(spelled)])
            {
                let list = lists.entry(name.as_bytes()).or_default();
                if list.last() != Some(&at) {
                    list.push(at);
                }
            }
        }
        // A spelling and its bare name mostly have the same filters: they share them.
        let mut shared: Map<Vec<u32>, u32> = Map::default();
        let mut names = HashMap::with_capacity(lists.len());
        for (name, list) in lists {
            let next = u32::try_from(shared.len()).unwrap_or(u32::MAX);
            names.insert(name.into(), *shared.entry(list).or_insert(next));
        }
        let mut lists: Vec<(u32, Vec<u32>)> = shared.into_iter().map(|(list, at)| (at, list)).collect();
        lists.sort_unstable_by_key(|(at, _)| *at);
        for (_, list) in lists {
            let filters = || list.iter().filter_map(|at| self.filters.get(*at as usize));
            self.commands.push(Command {
                secrets: filters().any(|filter| filter.compiled.secrets.is_some()),
                takes_command: filters().any(|filter| filter.compiled.takes_command),
                root: self.tree.add(&list, &self.filters, &self.arena),
                filters: list.into(),
            });
        }
        self.tree.shrink();
        self.names = names;
    }

    /// SHA-256 of the files, for `ROOTWRAP_POLICY`.
    #[must_use]
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// The files that it was built from, in order.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// `file:line` of a filter of this policy.
    #[must_use]
    pub fn source(&self, filter: &FilterSpec) -> String {
        let file = self.files.get(filter.span.file as usize).map_or(Path::new("?"), PathBuf::as_path);
        format!("{}:{}", file.display(), filter.line)
    }

    /// All filters in the order in which they are tried.
    pub fn filters(&self) -> impl Iterator<Item = &Arc<FilterSpec>> {
        self.filters.iter().map(|filter| &filter.spec)
    }

    /// How many filters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.filters.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    pub(super) fn all(&self) -> &[Filter] {
        &self.filters
    }

    pub(super) fn filter(&self, at: u32) -> Option<&Filter> {
        self.filters.get(at as usize)
    }

    /// The filters of a command, as a caller names it: by its bare name, or exactly as a filter spells it.
    pub(super) fn command(&self, name: &[u8]) -> Option<&Command> {
        self.commands.get(*self.names.get(name)? as usize)
    }

    /// All filters of a command, in order.
    pub(super) fn candidates<'p>(&'p self, name: &[u8]) -> impl Iterator<Item = (u32, &'p Filter)> + use<'p> {
        let filters = self.command(name).map(|command| &*command.filters).unwrap_or_default();
        filters.iter().filter_map(|at| Some((*at, self.filter(*at)?)))
    }

    /// The filters of a command that could match these arguments, in order: unless all are wanted, those whose leading fixed
    /// words differ are left out.
    pub(super) fn likely_or_all<'p>(
        &'p self,
        name: &[u8],
        args: &[Vec<u8>],
        all: bool,
    ) -> impl Iterator<Item = (u32, &'p Filter)> + use<'p> {
        let found = match self.command(name) {
            None => Vec::new(),
            Some(command) if all => command.filters.to_vec(),
            Some(command) => self.tree.find(command.root, args),
        };
        found.into_iter().filter_map(|at| Some((at, self.filter(at)?)))
    }
}

/// The last component of a path.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
