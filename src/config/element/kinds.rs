//! One function for each kind of element.

use super::Elements;
use crate::config::paths;
use crate::config::reader::{Node, Table};
use crate::policy::spec::{Element, ElementKind, InnerFilters};

/// As many arguments as a command may have.
const MAXIMUM_ARGUMENTS: i64 = 4096;

impl<'a> Elements<'a> {
    /// Reads the value of a kind; `table` holds its modifiers.
    pub(super) fn kind(&self, kind: &str, node: Node<'a>, table: Table<'a>) -> Option<ElementKind> {
        let simple = |kind: ElementKind, key: &str| self.reader.only_true(node, &format!("`{key}`")).map(|()| kind);
        match kind {
            "any" => simple(ElementKind::Any, kind),
            "mac" => simple(ElementKind::Mac, kind),
            "uuid" => simple(ElementKind::Uuid, kind),
            "host" => simple(ElementKind::Host, kind),
            "interface" => simple(ElementKind::Interface, kind),
            "regex" => Some(ElementKind::Regex(self.reader.string(node, "`regex`")?.to_owned())),
            "int" => self.int(node),
            "ip" => self.ip(node, table),
            "path_under" => self.path_under(node, table),
            "pid_of" => self.pid_of(node, table),
            "concat" => self.values(node, "each part of `concat`").map(ElementKind::Concat),
            "list" => self.list(node, table),
            "one_of" => self.not_empty(node, "`one_of`").map(ElementKind::OneOf),
            "optional" => Some(ElementKind::Optional(Box::new(self.element(node)?))),
            "repeat" => self.repeat(node, table),
            "options" => self.options(node),
            "command" => self.command(node),
            _ => None,
        }
    }

    fn not_empty(&self, node: Node<'a>, what: &str) -> Option<Vec<Element>> {
        let items = self.all(node, what)?;
        if items.is_empty() {
            self.reader
                .error(node.span, "empty-list", &format!("{what} is empty"), "write at least one element");
            return None;
        }
        Some(items)
    }

    fn values(&self, node: Node<'a>, what: &str) -> Option<Vec<Element>> {
        let nodes: Vec<Node<'a>> = self.reader.array(node, "`concat`")?.collect();
        if nodes.is_empty() {
            self.reader
                .error(node.span, "empty-list", "`concat` is empty", "write at least one part");
            return None;
        }
        let parts: Vec<Option<Element>> = nodes.into_iter().map(|part| self.value(part, what)).collect();
        parts.into_iter().collect()
    }

    fn int(&self, node: Node<'a>) -> Option<ElementKind> {
        let what = "`int` is [min, max]";
        let items: Vec<Node<'a>> = self.reader.array_or(node, what)?.collect();
        let [min, max] = items.as_slice() else {
            self.reader
                .error(node.span, "wrong-type", what, "write two whole numbers, as in int = [1, 65535]");
            return None;
        };
        let read = |node: &Node<'a>| self.reader.integer(*node, "a bound of `int`", i64::MIN..=i64::MAX);
        let (min, max) = (read(min)?, read(max)?);
        if min > max {
            let message = format!("`int` from {min} to {max} holds no number");
            self.reader
                .error(node.span, "empty-range", &message, "write the smaller number first");
            return None;
        }
        Some(ElementKind::Int { min, max })
    }

    fn flag(&self, table: Table<'a>, key: &str) -> bool {
        let node = table.get(key);
        node.is_some_and(|node| self.reader.boolean(node, &format!("`{key}`")) == Some(true))
    }

    fn path_under(&self, node: Node<'a>, table: Table<'a>) -> Option<ElementKind> {
        let base = paths::absolute(self.reader, node, "`path_under`");
        let links_to = match table.get("links_to") {
            Some(node) => paths::list(self.reader, node, "`links_to`"),
            None => Some(Vec::new()),
        };
        Some(ElementKind::PathUnder {
            base: base?,
            new: self.flag(table, "new"),
            links_to: links_to?,
            caller_writable: self.flag(table, "caller_writable"),
        })
    }

    fn pid_of(&self, node: Node<'a>, table: Table<'a>) -> Option<ElementKind> {
        Some(ElementKind::PidOf {
            executables: paths::list(self.reader, node, "`pid_of`")?,
            same_unit: self.flag(table, "same_unit"),
        })
    }

    fn list(&self, node: Node<'a>, table: Table<'a>) -> Option<ElementKind> {
        let item = self.value(node, "an item of `list`");
        let separator = match table.get("separator") {
            Some(node) => self.separator(node),
            None => Some(",".to_owned()),
        };
        Some(ElementKind::List {
            item: Box::new(item?),
            separator: separator?,
        })
    }

    fn separator(&self, node: Node<'a>) -> Option<String> {
        let text = self.reader.string(node, "`separator`")?;
        if text.is_empty() || text.contains('\0') {
            self.reader.error(
                node.span,
                "out-of-range",
                "`separator` holds at least one character, and no NUL",
                "write it as in \",\"",
            );
            return None;
        }
        Some(text.to_owned())
    }

    fn repeat(&self, node: Node<'a>, table: Table<'a>) -> Option<ElementKind> {
        let item = self.element(node);
        let bound = |key: &str, least: i64, default: Option<u32>| match table.get(key) {
            Some(node) => {
                let number = self.reader.integer(node, &format!("`{key}`"), least..=MAXIMUM_ARGUMENTS)?;
                Some(u32::try_from(number).ok())
            }
            None => Some(default),
        };
        let (min, max) = (bound("min", 0, Some(1))?.unwrap_or(1), bound("max", 1, None)?);
        if max.is_some_and(|max| max < min) {
            let message = format!(
                "`repeat` at least {min} times and at most {} times is never",
                max.unwrap_or_default()
            );
            self.reader
                .error(table.span, "empty-range", &message, "make `max` as large as `min`, or leave it out");
            return None;
        }
        Some(ElementKind::Repeat {
            item: Box::new(item?),
            min,
            max,
        })
    }

    fn command(&self, node: Node<'a>) -> Option<ElementKind> {
        if node.value.is_bool() {
            self.reader.only_true(node, "`command`")?;
            return Some(ElementKind::Command(InnerFilters::Any));
        }
        let names = self
            .reader
            .strings(node, "`command` is true or a list of filters", "the name of a filter")?;
        if names.is_empty() {
            self.reader.error(
                node.span,
                "empty-list",
                "`command` names no filter",
                "name filters, or write command = true",
            );
            return None;
        }
        let named = names.into_iter().map(|(name, span)| (name.to_owned(), span)).collect();
        Some(ElementKind::Command(InnerFilters::Named(named)))
    }
}
