//! Typed reading of TOML values: each function gives the value, or reports what it should have been.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::span_of;
use super::report::Report;
use super::suggest;
use crate::policy::spec::Span;

/// Reads the values of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    pub file: u32,
    pub report: &'a Report,
}

/// A value and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    pub span: Span,
    pub value: &'a DeValue<'a>,
}

/// A table and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    pub reader: Reader<'a>,
    pub span: Span,
    entries: &'a DeTable<'a>,
}

impl<'a> Reader<'a> {
    pub fn error(&self, span: Span, code: &'static str, message: &str, hint: &str) {
        self.report.error(span, code, message, hint);
    }

    pub fn warning(&self, span: Span, code: &'static str, message: &str, hint: &str) {
        self.report.warning(span, code, message, hint);
    }

    pub fn node(&self, value: &'a Spanned<DeValue<'a>>) -> Node<'a> {
        Node {
            span: span_of(self.file, &value.span()),
            value: value.get_ref(),
        }
    }

    pub fn root(&self, table: &'a Spanned<DeTable<'a>>) -> Table<'a> {
        Table {
            reader: *self,
            span: Span {
                file: self.file,
                start: 0,
                end: 0,
            },
            entries: table.get_ref(),
        }
    }

    /// `what` is a whole clause: "`umask` is a string such as \"0022\"".
    pub fn wrong_type(&self, node: Node<'_>, what: &str) {
        self.wrong_type_hint(node, what, None);
    }

    fn wrong_type_hint(&self, node: Node<'_>, what: &str, hint: Option<&str>) {
        let got = match node.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let message = format!("{what}, not {got}");
        match hint {
            Some(hint) => self.error(node.span, "wrong-type", &message, hint),
            None => self.report.plain_error(node.span, "wrong-type", &message),
        }
    }

    pub fn string(&self, node: Node<'a>, what: &str) -> Option<&'a str> {
        if let DeValue::String(text) = node.value {
            return Some(text.as_ref());
        }
        self.wrong_type(node, &format!("{what} is a string"));
        None
    }

    pub fn boolean(&self, node: Node<'_>, what: &str) -> Option<bool> {
        if let DeValue::Boolean(value) = node.value {
            return Some(*value);
        }
        self.wrong_type(node, &format!("{what} is true or false"));
        None
    }

    /// A key that can only be switched on: `false` would say what leaving it out says, or hide a slip.
    pub fn only_true(&self, node: Node<'_>, what: &str) -> Option<()> {
        if self.boolean(node, what)? {
            return Some(());
        }
        self.error(node.span, "out-of-range", &format!("{what} can only be true"), "leave it out");
        None
    }

    pub fn integer(&self, node: Node<'_>, what: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let DeValue::Integer(integer) = node.value else {
            self.wrong_type(node, &format!("{what} is a whole number"));
            return None;
        };
        let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        if let Some(number) = number.filter(|number| range.contains(number)) {
            return Some(number);
        }
        let message = format!("{what} is from {} to {}", range.start(), range.end());
        self.report.plain_error(node.span, "out-of-range", &message);
        None
    }

    pub fn array(&self, node: Node<'a>, what: &str) -> Option<impl Iterator<Item = Node<'a>> + use<'a>> {
        self.bracketed(node, &format!("{what} is a list"))
    }

    /// A list for which one string is often written.
    fn bracketed(&self, node: Node<'a>, what: &str) -> Option<impl Iterator<Item = Node<'a>> + use<'a>> {
        if let DeValue::String(_) = node.value {
            let hint = "write it in brackets, each item a string of its own, as in [\"a\", \"b\"]";
            self.wrong_type_hint(node, what, Some(hint));
            return None;
        }
        self.array_or(node, what)
    }

    /// `what` is a whole clause, for values that could be something else than a list.
    pub fn array_or(&self, node: Node<'a>, what: &str) -> Option<impl Iterator<Item = Node<'a>> + use<'a>> {
        let reader = *self;
        if let DeValue::Array(items) = node.value {
            return Some(items.iter().map(move |item| reader.node(item)));
        }
        self.wrong_type(node, what);
        None
    }

    /// A list of strings; what is none is reported and left out. `what` is a whole clause, `item` the name of one.
    pub fn strings(&self, node: Node<'a>, what: &str, item: &str) -> Option<Vec<(&'a str, Span)>> {
        let items = self.bracketed(node, what)?;
        Some(items.filter_map(|node| Some((self.string(node, item)?, node.span))).collect())
    }

    pub fn table(&self, node: Node<'a>, what: &str) -> Option<Table<'a>> {
        if let DeValue::Table(entries) = node.value {
            return Some(Table {
                reader: *self,
                span: node.span,
                entries,
            });
        }
        let hint = (what == "`callers`").then_some("say of what sort they are, as in { users = [\"alice\"] }");
        self.wrong_type_hint(node, &format!("{what} is a table"), hint);
        None
    }

    /// One of a few words.
    pub fn word<T: Copy>(&self, node: Node<'a>, what: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.string(node, what)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.error(
                node.span,
                "unknown-value",
                &format!("{what} cannot be `{text}`"),
                &suggest::hint(text, &names),
            );
        }
        found.map(|(_, value)| *value)
    }
}

impl<'a> Table<'a> {
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        self.entries.get(key).map(|value| self.reader.node(value))
    }

    /// Reads a key where it is there. A value that gave nothing, with no error told anywhere, would be a restriction ignored:
    /// that must not come from a slip in a reading function.
    pub fn read<T>(&self, key: &str, read: impl FnOnce(Node<'a>) -> Option<T>) -> Option<T> {
        let node = self.get(key)?;
        let value = read(node);
        if value.is_none() && self.reader.report.errors() == 0 {
            self.reader.error(
                node.span,
                "unreadable-value",
                &format!("`{key}` cannot have this value"),
                "see rootwrap.filters(5)",
            );
        }
        value
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Keys with their spans, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Span, Node<'a>)> + use<'a> {
        let reader = self.reader;
        self.entries
            .iter()
            .map(move |(key, value)| (key.get_ref().as_ref(), span_of(reader.file, &key.span()), reader.node(value)))
    }

    /// Where a key stands; the table's own place when it has no such key.
    pub fn key_span(&self, key: &str) -> Span {
        self.iter().find(|(name, _, _)| *name == key).map_or(self.span, |(_, span, _)| span)
    }

    /// Reports every key that is not among `known`.
    pub fn only(&self, what: &str, known: &[&str]) {
        for (key, span, _) in self.iter().filter(|(key, _, _)| !known.contains(key)) {
            self.reader.error(
                span,
                "unknown-key",
                &format!("{what} has no key `{key}`"),
                &suggest::hint(key, known),
            );
        }
    }

    /// A key that must be there.
    pub fn required(&self, what: &str, key: &str, hint: &str) -> Option<Node<'a>> {
        let node = self.get(key);
        if node.is_none() {
            self.reader.error(self.span, "missing-key", &format!("{what} has no `{key}`"), hint);
        }
        node
    }
}
