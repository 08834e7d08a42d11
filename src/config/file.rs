//! One filters.d file: its tables, in the order in which they depend on each other.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::DeTable;

use super::document::Document;
use super::element::Elements;
use super::execution::{self, Partial};
use super::filter::{self, Surroundings};
use super::reader::{Reader, Table};
use super::world::World;
use super::{TestCase, callers, tests_table, unsupported};
use crate::policy::spec::{FilterSpec, Span};

const KEYS: &[&str] = &["callers", "define", "defaults", "filter", "disable", "test", "profile"];

/// What a file says, what has errors left out.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub filters: Vec<FilterSpec>,
    /// Names of filters of earlier files.
    pub disabled: Vec<(String, Span)>,
    pub tests: Vec<TestCase>,
    /// Lines of the tests' filters are checked when all filters are known.
    pub tested_filters: Vec<(String, Span)>,
}

/// Reads a file that was parsed.
pub(crate) fn read<'a>(reader: Reader<'a>, document: &'a Document, parsed: &'a Spanned<DeTable<'a>>, world: &World<'_>) -> Contents {
    let root = reader.root(parsed);
    root.only("a filters file", KEYS);
    let block = |key: &str| root.get(key).and_then(|node| reader.table(node, &format!("`{key}`")));
    let elements = Elements::new(reader, block("define"));
    let callers = root
        .get("callers")
        .map(|_| block("callers").and_then(|table| callers::read(table, world)));
    let defaults = match block("defaults") {
        Some(table) => {
            only_defaults(table);
            Partial::read(table, &elements, world)
        }
        None => Partial::default(),
    };
    let around = Surroundings {
        document,
        elements: &elements,
        callers,
        defaults,
        world,
    };
    for profile in tables(root, "profile") {
        check_profile(profile, world);
    }
    let mut contents = Contents {
        filters: tables(root, "filter").filter_map(|table| filter::read(table, &around)).collect(),
        ..Contents::default()
    };
    contents.disabled = tables(root, "disable").filter_map(disabled).collect();
    for table in tables(root, "test") {
        contents.tests.extend(tests_table::read(table, document, world));
        let named = table
            .get("filter")
            .and_then(|node| Some((node.value.as_str()?.to_owned(), node.span)));
        contents.tested_filters.extend(named);
    }
    contents
}

/// Each table of a list such as `[[filter]]`.
fn tables<'a>(root: Table<'a>, key: &'static str) -> impl Iterator<Item = Table<'a>> {
    let what = format!("[[{key}]]");
    let nodes = root.get(key).and_then(|node| {
        root.reader
            .array_or(node, &format!("`{key}` is a list of tables, each with {what} above it"))
    });
    nodes.into_iter().flatten().filter_map(move |node| root.reader.table(node, &what))
}

fn only_defaults(table: Table<'_>) {
    let wrong: HashMap<&str, &str> = [
        ("name", "give each filter its own"),
        ("command", "give each filter its own"),
        ("args", "give each filter its own"),
        ("capabilities", "say for each filter what it needs"),
        ("callers", "write a [callers] table: it counts for the whole file"),
    ]
    .into();
    let mut known = execution::KEYS.to_vec();
    for (key, span, _) in table.iter() {
        if let Some((key, hint)) = wrong.get_key_value(key) {
            let message = format!("`{key}` has no place in [defaults]");
            table.reader.error(span, "unknown-key", &message, hint);
            known.push(key);
        }
    }
    table.only("defaults", &known);
}

fn disabled(table: Table<'_>) -> Option<(String, Span)> {
    table.only("a disable table", &["filter"]);
    let node = table.required("a disable table", "filter", "name the filter of an earlier file")?;
    Some((table.reader.string(node, "`filter`")?.to_owned(), node.span))
}

/// Profiles are checked and refused: they would serve existing rootwrap.conf files.
fn check_profile(table: Table<'_>, world: &World<'_>) {
    let reader = table.reader;
    table.only("a profile", &["name", "config", "callers", "strict", "capabilities"]);
    for key in ["name", "config"] {
        let node = table.required("a profile", key, "a profile has a name, a config and callers");
        node.and_then(|node| reader.string(node, &format!("`{key}`")));
    }
    if let Some(block) = table.get("callers").and_then(|node| reader.table(node, "`callers`")) {
        callers::read(block, world);
    }
    if let Some((_, span, node)) = table.iter().min_by_key(|(_, span, _)| span.start) {
        let at = super::reader::Node { span, ..node };
        unsupported::unsupported(reader, at, "[[profile]]");
    } else {
        reader
            .report
            .plain_error(table.span, "unsupported-key", "[[profile]] is not supported by this build");
    }
}
