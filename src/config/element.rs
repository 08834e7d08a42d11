//! The elements of `args`: TOML into [`Element`].

mod address;
mod kinds;
mod options;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};

use toml::de::DeValue;

use super::reader::{Node, Reader, Table};
use super::suggest;
use crate::policy::spec::{Element, ElementKind, OptionSpec, Span};

/// Elements of one file, definitions put in: a bound against definitions that double each other.
const MAXIMUM_ELEMENTS: usize = 400_000;

/// Elements in elements, definitions put in.
const MAXIMUM_DEPTH: usize = 48;

/// Each kind with the modifiers that only it has.
const KINDS: &[(&str, &[&str])] = &[
    ("any", &[]),
    ("regex", &[]),
    ("int", &[]),
    ("ip", &["prefix", "within"]),
    ("mac", &[]),
    ("uuid", &[]),
    ("host", &[]),
    ("interface", &[]),
    ("path_under", &["new", "links_to", "caller_writable"]),
    ("pid_of", &["same_unit"]),
    ("concat", &[]),
    ("list", &["separator"]),
    ("one_of", &[]),
    ("optional", &[]),
    ("repeat", &["min", "max"]),
    ("use", &[]),
    ("options", &[]),
    ("command", &[]),
];

/// Reads the elements of one file.
pub(crate) struct Elements<'a> {
    reader: Reader<'a>,
    definitions: BTreeMap<&'a str, Node<'a>>,
    /// What was read of `[define]`; `None` while it is being read, or when it has errors.
    read: RefCell<HashMap<&'a str, Option<Element>>>,
    reading: RefCell<Vec<&'a str>>,
    count: Cell<usize>,
    depth: Cell<usize>,
}

impl<'a> Elements<'a> {
    /// `define`: the file's `[define]`, where it has one. All of it is read, used or not.
    pub fn new(reader: Reader<'a>, define: Option<Table<'a>>) -> Self {
        let mut definitions = BTreeMap::new();
        for (name, span, node) in define.iter().flat_map(Table::iter) {
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
                let message = format!("`{name}` is no name for a definition");
                reader.error(span, "bad-name", &message, "use letters, digits, `_` and `-`");
            }
            definitions.insert(name, node);
        }
        let elements = Self {
            reader,
            definitions,
            read: RefCell::default(),
            reading: RefCell::default(),
            count: Cell::new(0),
            depth: Cell::new(0),
        };
        for name in elements.definitions.keys() {
            elements.definition(name);
        }
        elements
    }

    /// Reads `args`: all elements, or `None` when one of them has errors.
    pub fn args(&self, node: Node<'a>) -> Option<Vec<Element>> {
        let args = self.all(node, "`args`")?;
        let last = args.len().saturating_sub(1);
        let mut misplaced = Vec::new();
        for (index, element) in args.iter().enumerate() {
            match element.kind {
                ElementKind::Command(_) if index == last => {}
                _ => commands(element, &mut misplaced),
            }
        }
        for span in &misplaced {
            self.reader.error(
                *span,
                "command-not-last",
                "`command` is not the last element of `args`",
                "put it at the end of `args` itself, in no other element",
            );
        }
        misplaced.is_empty().then_some(args)
    }

    /// An element that is exactly one argument.
    pub fn value(&self, node: Node<'a>, what: &str) -> Option<Element> {
        let element = self.element(node)?;
        if is_value(&element) {
            return Some(element);
        }
        self.reader.error(
            node.span,
            "not-one-argument",
            &format!("{what} is exactly one argument, this could be none or several"),
            "write a text, a kind such as `regex` or `int`, or `one_of` of such",
        );
        None
    }

    /// Any element.
    pub fn element(&self, node: Node<'a>) -> Option<Element> {
        self.go_deeper(node.span, 0)?;
        self.depth.set(self.depth.get() + 1);
        let element = self.element_here(node);
        self.depth.set(self.depth.get() - 1);
        element
    }

    fn go_deeper(&self, span: Span, levels: usize) -> Option<()> {
        if self.depth.get() + levels < MAXIMUM_DEPTH {
            return Some(());
        }
        let message = format!("elements stand in each other more than {MAXIMUM_DEPTH} deep");
        self.reader
            .error(span, "too-deep", &message, "no command line needs that: flatten it");
        None
    }

    fn element_here(&self, node: Node<'a>) -> Option<Element> {
        let kind = match node.value {
            DeValue::String(text) => self.literal(node, text)?,
            DeValue::Array(_) => ElementKind::Sequence(self.all(node, "a sequence")?),
            DeValue::Table(_) => return self.table(self.reader.table(node, "an element")?),
            _ => {
                self.reader
                    .wrong_type(node, "an element is a text, a list or a table such as { int = [1, 10] }");
                return None;
            }
        };
        self.made(node.span, kind)
    }

    fn made(&self, span: Span, kind: ElementKind) -> Option<Element> {
        self.spend(span, 1)?;
        Some(Element {
            span,
            kind,
            dash: false,
            secret: false,
        })
    }

    fn spend(&self, span: Span, count: usize) -> Option<()> {
        let before = self.count.get();
        self.count.set(before.saturating_add(count));
        if self.count.get() <= MAXIMUM_ELEMENTS {
            return Some(());
        }
        if before <= MAXIMUM_ELEMENTS {
            let message = format!("with its definitions put in, this file has more than {MAXIMUM_ELEMENTS} elements");
            self.reader
                .error(span, "too-large", &message, "definitions that use definitions multiply: use fewer");
        }
        None
    }

    fn literal(&self, node: Node<'a>, text: &str) -> Option<ElementKind> {
        if text.contains('\0') {
            self.reader
                .error(node.span, "nul-byte", "no argument holds a NUL byte", "take it out");
            return None;
        }
        Some(ElementKind::Literal(text.as_bytes().to_vec()))
    }

    /// All elements of a list, each read even where one has errors.
    fn all(&self, node: Node<'a>, what: &str) -> Option<Vec<Element>> {
        let items: Vec<Option<Element>> = self.reader.array(node, what)?.map(|item| self.element(item)).collect();
        items.into_iter().collect()
    }

    fn table(&self, table: Table<'a>) -> Option<Element> {
        let (kind, modifiers) = self.kind_of(table)?;
        let before = self.reader.report.errors();
        let mut known = vec![kind, "dash", "secret"];
        known.extend(modifiers);
        table.only(&format!("an element of kind `{kind}`"), &known);
        let flag = |key| {
            table
                .get(key)
                .is_some_and(|node| self.reader.boolean(node, &format!("`{key}`")) == Some(true))
        };
        let (dash, secret) = (flag("dash"), flag("secret"));
        let node = table.get(kind)?;
        let mut element = match kind {
            "use" => self.used(node, table.span)?,
            _ => {
                let read = self.kind(kind, node, table)?;
                self.made(table.span, read)?
            }
        };
        element.dash |= dash;
        element.secret |= secret;
        (self.reader.report.errors() == before).then_some(element)
    }

    /// The one kind of an element, and the modifiers that go with it.
    fn kind_of(&self, table: Table<'a>) -> Option<(&'static str, &'static [&'static str])> {
        let mut kinds: Vec<(Span, &'static str, &'static [&'static str])> = Vec::new();
        for (kind, modifiers) in KINDS {
            if table.get(kind).is_some() {
                kinds.push((table.key_span(kind), kind, modifiers));
            }
        }
        kinds.sort_unstable_by_key(|(span, _, _)| span.start);
        match kinds.as_slice() {
            [(_, kind, modifiers)] => Some((kind, modifiers)),
            [(_, first, _), (span, second, _), ..] => {
                let message = format!("an element has exactly one kind, this one has `{first}` and `{second}`");
                let hint = "write two elements, or `one_of` with both";
                self.reader.error(*span, "two-kinds", &message, hint);
                None
            }
            [] => {
                self.no_kind(table);
                None
            }
        }
    }

    fn no_kind(&self, table: Table<'a>) {
        let names: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        let modifiers = |key: &str| key == "dash" || key == "secret" || KINDS.iter().any(|(_, m)| m.contains(&key));
        match table.iter().find(|(key, _, _)| !modifiers(key)) {
            Some((key, span, _)) => {
                let message = format!("there is no kind of element `{key}`");
                self.reader.error(span, "unknown-kind", &message, &suggest::hint(key, &names));
            }
            None => {
                let hint = format!("its kind is one of {}", names.join(", "));
                self.reader.error(table.span, "no-kind", "this element has no kind", &hint);
            }
        }
    }

    fn used(&self, node: Node<'a>, span: Span) -> Option<Element> {
        let name = self.reader.string(node, "`use`")?;
        if !self.definitions.contains_key(name) {
            let names: Vec<&str> = self.definitions.keys().copied().collect();
            let hint = match suggest::nearest(name, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "add it to [define] of this file; definitions of other files do not count here".to_owned(),
            };
            let message = format!("this file defines no `{name}`");
            self.reader.error(node.span, "unknown-definition", &message, &hint);
            return None;
        }
        if self.reading.borrow().contains(&name) {
            let message = format!("the definition of `{name}` uses itself");
            self.reader
                .error(node.span, "recursive-definition", &message, "write out what is meant");
            return None;
        }
        let mut element = self.definition(name)?;
        let (count, depth) = measure(&element);
        self.spend(span, count)?;
        self.go_deeper(span, depth)?;
        element.span = span;
        Some(element)
    }

    /// A definition, read once.
    fn definition(&self, name: &str) -> Option<Element> {
        if let Some(known) = self.read.borrow().get(name) {
            return known.clone();
        }
        let (name, node) = self.definitions.get_key_value(name)?;
        self.reading.borrow_mut().push(name);
        let element = self.element(*node);
        self.reading.borrow_mut().pop();
        self.read.borrow_mut().insert(name, element.clone());
        element
    }
}

/// Whether it is exactly one argument.
pub(crate) fn is_value(element: &Element) -> bool {
    match &element.kind {
        ElementKind::OneOf(items) => items.iter().all(is_value),
        ElementKind::Sequence(_)
        | ElementKind::Optional(_)
        | ElementKind::Repeat { .. }
        | ElementKind::Options(_)
        | ElementKind::Command(_) => false,
        _ => true,
    }
}

/// The elements directly inside one.
pub(crate) fn children(element: &Element) -> Vec<&Element> {
    match &element.kind {
        ElementKind::Sequence(items) | ElementKind::OneOf(items) | ElementKind::Concat(items) => items.iter().collect(),
        ElementKind::Optional(item) => vec![item],
        ElementKind::Repeat { item, .. } | ElementKind::List { item, .. } => vec![item],
        ElementKind::Options(options) => options.iter().filter_map(OptionSpec::value_element).collect(),
        _ => Vec::new(),
    }
}

impl OptionSpec {
    fn value_element(&self) -> Option<&Element> {
        self.value.as_ref()
    }
}

/// How many elements it is, and how deep they stand in each other.
fn measure(element: &Element) -> (usize, usize) {
    let inside = children(element).into_iter().map(measure);
    let (count, depth) = inside.fold((0, 0), |(count, depth), (more, deep)| (count + more, depth.max(deep)));
    (count + 1, depth + 1)
}

fn commands(element: &Element, found: &mut Vec<Span>) {
    if matches!(element.kind, ElementKind::Command(_)) {
        found.push(element.span);
    }
    for child in children(element) {
        commands(child, found);
    }
}
