//! From files to a policy: everything is read and checked, then all messages come at once.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;

use sha2::{Digest, Sha256};

use super::accounts::Accounts;
use super::document::Document;
use super::file::{self, Contents};
use super::reader::Reader;
use super::report::Report;
use super::trusted::walk::Owners;
use super::world::World;
use super::writable::Writable;
use super::{Diagnostic, Loaded, Settings, Source, directories, filter, suggest};
use crate::policy::Policy;
use crate::policy::spec::{Callers, Element, ElementKind, FilterSpec, InnerFilters, PolicySpec, Span, UserRule};

/// Loads a policy.
///
/// # Errors
/// Everything that is wrong, warnings included, in the order of files and lines.
pub fn load(source: &Source, settings: &Settings) -> Result<Loaded, Vec<Diagnostic>> {
    let owners = if source.check_owners { Owners::Root } else { Owners::Anybody };
    let report = Report::new();
    let mut files = directories::read(&source.directories, owners, &report);
    files.extend(directories::read_files(&source.files, owners, &report));
    let hash = hash(&files, settings);
    let documents: Vec<Document> = (0u32..)
        .zip(files)
        .map(|(file, (path, bytes))| Document::new(file, &path, bytes, &report))
        .collect();
    let world = World::new(Accounts::of_this_machine(), settings, owners);
    let read = read_all(&documents, &world, &report);
    let (policy, tests) = assemble(read, &documents, hash, &world, &report);
    let failed = report.errors() > 0;
    let diagnostics = report.into_diagnostics(&documents);
    match policy {
        Some(policy) if !failed => Ok(Loaded {
            policy,
            tests,
            warnings: diagnostics,
        }),
        _ => Err(diagnostics),
    }
}

/// SHA-256 over names and contents, and over the one setting that says what a filter means. Each with its length before it, and
/// each list with its own, so that nothing can move from one into the other.
fn hash(files: &[directories::Contents], settings: &Settings) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(&(settings.exec_dirs.len() as u64).to_be_bytes());
    settings
        .exec_dirs
        .iter()
        .for_each(|directory| part(directory.as_os_str().as_bytes()));
    for (path, bytes) in files {
        part(path.as_os_str().as_bytes());
        part(bytes);
    }
    hash.finalize().into()
}

/// `None` for a file that is no TOML: what it would have said is unknown.
fn read_all(documents: &[Document], world: &World<'_>, report: &Report) -> Vec<Option<Contents>> {
    (0u32..)
        .zip(documents)
        .map(|(file, document)| {
            let parsed = document.parse(file, report)?;
            Some(file::read(Reader { file, report }, document, &parsed, world))
        })
        .collect()
}

fn assemble(
    read: Vec<Option<Contents>>,
    documents: &[Document],
    hash: [u8; 32],
    world: &World<'_>,
    report: &Report,
) -> (Option<Policy>, Vec<super::TestCase>) {
    let complete = read.iter().all(Option::is_some);
    let mut merge = Merge::new(documents, report);
    let (mut tests, mut tested) = (Vec::new(), Vec::new());
    for contents in read.into_iter().flatten() {
        merge.disable(contents.disabled, complete);
        merge.add(contents.filters);
        tests.extend(contents.tests);
        tested.extend(contents.tested_filters);
    }
    if !complete {
        return (None, tests);
    }
    let filters = merge.finish();
    check_tested(&filters, &tested, report);
    lint(&filters, report);
    if world.owners == Owners::Root {
        Writable::new(&world.accounts).check_all(&filters, report);
    }
    let spec = PolicySpec {
        files: documents.iter().map(|document| document.path.clone()).collect(),
        filters,
        hash,
    };
    (build(spec, report), tests)
}

fn build(spec: PolicySpec, report: &Report) -> Option<Policy> {
    match Policy::build(spec) {
        Ok(policy) => Some(policy),
        Err(errors) => {
            for error in errors {
                match error.hint {
                    Some(hint) => report.error(error.span, "bad-filter", &error.message, &hint),
                    None => report.plain_error(error.span, "bad-filter", &error.message),
                }
            }
            None
        }
    }
}

/// The filters so far, in order; `None` where one was disabled.
struct Merge<'a> {
    documents: &'a [Document],
    report: &'a Report,
    filters: Vec<Option<FilterSpec>>,
    /// By name, those that are not disabled.
    places: HashMap<String, usize>,
    disabled: HashMap<String, Span>,
}

impl<'a> Merge<'a> {
    fn new(documents: &'a [Document], report: &'a Report) -> Self {
        Self {
            documents,
            report,
            filters: Vec::new(),
            places: HashMap::new(),
            disabled: HashMap::new(),
        }
    }

    fn add(&mut self, filters: Vec<FilterSpec>) {
        for mut filter in filters {
            let known = self.places.get(&filter.name).and_then(|index| self.filters.get(*index)?.as_ref());
            if let Some(known) = known {
                let first = filter::place(self.documents, known.span);
                let message = format!("there are two filters `{}`: the first is at {first}", filter.name);
                let hint = "rename one, or switch the first off in a later file with [[disable]]";
                self.report.error(filter.span, "duplicate-filter", &message, hint);
                // Under a name that no file can give, so that what else is wrong with it is told too.
                filter.name.push_str("#2");
                filter.name.push_str(&self.filters.len().to_string());
            }
            self.places.insert(filter.name.clone(), self.filters.len());
            self.filters.push(Some(filter));
        }
    }

    /// Called before the filters of the same file are added, so it finds those of earlier files only. When a file could not be
    /// read, the filter may stand there.
    fn disable(&mut self, names: Vec<(String, Span)>, complete: bool) {
        for (name, span) in names {
            if let Some(index) = self.places.remove(&name) {
                if let Some(filter) = self.filters.get_mut(index) {
                    *filter = None;
                }
                self.disabled.insert(name, span);
            } else if complete && !self.disabled.contains_key(&name) {
                let hint = match suggest::nearest(&name, self.places.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "[[disable]] works on filters of files with earlier names; remove it if the filter is gone".to_owned(),
                };
                let message = format!("no earlier file has a filter `{name}`");
                self.report.error(span, "unknown-filter", &message, &hint);
            }
        }
    }

    /// What is left. A `command` element that names a disabled filter loses that name.
    fn finish(self) -> Vec<FilterSpec> {
        let mut filters: Vec<FilterSpec> = self.filters.into_iter().flatten().collect();
        let gone = |name: &str| self.disabled.contains_key(name) && !self.places.contains_key(name);
        for filter in &mut filters {
            let Some(Element {
                kind: ElementKind::Command(InnerFilters::Named(names)),
                ..
            }) = filter.args.last_mut()
            else {
                continue;
            };
            for (name, span) in names.iter().filter(|(name, _)| gone(name)) {
                let message = format!("the filter `{name}` is disabled, so it allows no inner command");
                self.report
                    .warning(*span, "disabled-inner", &message, "nothing to do if that is meant");
            }
            if names.iter().any(|(name, _)| gone(name)) {
                names.retain(|(name, _)| !gone(name));
            }
        }
        // With no filter left that could allow its inner command, a filter allows nothing.
        filters.retain(|filter| !matches!(filter.args.last().map(|last| &last.kind), Some(ElementKind::Command(InnerFilters::Named(names))) if names.is_empty()));
        filters
    }
}

fn check_tested(filters: &[FilterSpec], tested: &[(String, Span)], report: &Report) {
    let names: HashSet<&str> = filters.iter().map(|filter| filter.name.as_str()).collect();
    for (name, span) in tested.iter().filter(|(name, _)| !names.contains(name.as_str())) {
        let hint = match suggest::nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "the test cannot pass; name a filter that is there".to_owned(),
        };
        report.warning(*span, "unknown-filter", &format!("there is no filter `{name}`"), &hint);
    }
}

/// A process is at the mercy of others of its uid: they can stop it, kill it and change its limits.
fn lint(filters: &[FilterSpec], report: &Report) {
    for filter in filters {
        let Some(ids) = &filter.execution.run_as.ids else { continue };
        if ids.uid != 0 && uids(&filter.callers).any(|uid| uid == ids.uid) {
            let message = format!("`{}` runs as its own caller, who can interfere with it while it runs", filter.name);
            report.warning(
                filter.span,
                "runs-as-caller",
                &message,
                "run it as another user, or as root with few capabilities",
            );
        }
    }
}

fn uids(callers: &Callers) -> impl Iterator<Item = u32> {
    callers.users.iter().filter_map(|rule| match rule {
        UserRule::Uid(uid) => Some(*uid),
        UserRule::Any | UserRule::Unknown(_) => None,
    })
}
