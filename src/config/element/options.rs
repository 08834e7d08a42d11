//! `options`: a table of spellings and what follows them.

use std::collections::HashSet;

use super::Elements;
use crate::config::reader::{Node, Table};
use crate::policy::spec::{Element, ElementKind, OptionSpec, Span};

/// Keys of an entry in its long form.
const KEYS: &[&str] = &["value", "required", "many"];

impl<'a> Elements<'a> {
    pub(super) fn options(&self, node: Node<'a>) -> Option<ElementKind> {
        let table = self.reader.table(node, "`options`")?;
        if table.len() == 0 {
            self.reader
                .error(node.span, "empty-list", "`options` is empty", "write at least one option");
            return None;
        }
        let mut seen = HashSet::new();
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_unstable_by_key(|(_, span, _)| span.start);
        let options: Vec<Option<OptionSpec>> = entries
            .into_iter()
            .map(|(key, span, node)| self.option(key, span, node, &mut seen))
            .collect();
        options.into_iter().collect::<Option<Vec<_>>>().map(ElementKind::Options)
    }

    fn option(&self, key: &'a str, span: Span, node: Node<'a>, seen: &mut HashSet<&'a str>) -> Option<OptionSpec> {
        let spellings = self.spellings(key, span, seen);
        let mut option = OptionSpec {
            keys: Vec::new(),
            value: None,
            required: false,
            many: false,
            span,
        };
        match self.long_form(node) {
            Some(table) => self.read_long_form(table, &mut option)?,
            None => option.value = self.option_value(node)?,
        }
        option.keys = spellings?;
        if option.value.is_none() && option.keys.iter().any(|key| key.ends_with('=')) {
            let message = "a spelling that ends in `=` has a value, this option has none";
            let hint = "take the `=` away, or say what its value is";
            self.reader.error(span, "option-value", message, hint);
            return None;
        }
        Some(option)
    }

    /// `-w, --wait, --wait=`, each said once in the whole table.
    fn spellings(&self, key: &'a str, span: Span, seen: &mut HashSet<&'a str>) -> Option<Vec<String>> {
        let spellings: Vec<&str> = key.split(',').map(str::trim).collect();
        for spelling in &spellings {
            let bad = spelling.trim_end_matches('=').is_empty() || spelling.contains(|c: char| c.is_whitespace() || c.is_control());
            if bad {
                let message = format!("`{key}` is no list of spellings of an option");
                let hint = "write them with commas, as in \"-w, --wait, --wait=\"";
                self.reader.error(span, "bad-option", &message, hint);
                return None;
            }
            if !seen.insert(spelling) {
                let message = format!("the option `{spelling}` is here twice");
                self.reader.error(
                    span,
                    "duplicate-option",
                    &message,
                    "say each spelling once; `many = true` lets it be repeated",
                );
                return None;
            }
        }
        Some(spellings.into_iter().map(str::to_owned).collect())
    }

    fn long_form(&self, node: Node<'a>) -> Option<Table<'a>> {
        node.value
            .is_table()
            .then(|| self.reader.table(node, "an option"))?
            .filter(|table| KEYS.iter().any(|key| table.get(key).is_some()))
    }

    fn read_long_form(&self, table: Table<'a>, option: &mut OptionSpec) -> Option<()> {
        table.only("an option", KEYS);
        let value = table.required("an option", "value", "write value = true for an option without a value");
        let flag = |key: &str| match table.get(key) {
            Some(node) => self.reader.boolean(node, &format!("`{key}`")),
            None => Some(false),
        };
        let value = value.map(|node| self.option_value(node));
        (option.required, option.many) = (flag("required")?, flag("many")?);
        option.value = value??;
        Some(())
    }

    /// `None`: errors; `Some(None)`: it takes no value.
    fn option_value(&self, node: Node<'a>) -> Option<Option<Element>> {
        if node.value.is_bool() {
            self.reader.only_true(node, "an option without a value")?;
            return Some(None);
        }
        self.element(node).map(Some)
    }
}
