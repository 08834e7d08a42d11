//! `[[filter]]`.

use std::sync::Arc;

use super::document::Document;
use super::element::Elements;
use super::execution::{self, Partial};
use super::reader::{Node, Table};
use super::world::World;
use super::{callers, capabilities, command};
use crate::policy::spec::{Callers, Capabilities, CommandSpec, Element, ElementKind, FilterSpec, OnDisconnect, Placement, Span, UserRule};

/// Keys of a filter besides those that it shares with `[defaults]`.
const OWN_KEYS: &[&str] = &["name", "command", "args", "capabilities", "callers"];

/// Keys that every filter has, and what to do without.
const REQUIRED: [(&str, &str); 4] = [
    ("name", "give it a name of its own: records and messages refer to it"),
    ("command", "write the absolute path of the program"),
    ("args", "write args = [] for a command without arguments"),
    ("capabilities", "write capabilities = [] for none"),
];

/// What the other tables of the file say.
pub(crate) struct Surroundings<'a, 'w> {
    pub document: &'a Document,
    pub elements: &'a Elements<'a>,
    /// `[callers]`: `None`: there is none; `Some(None)`: it has errors.
    pub callers: Option<Option<Arc<Callers>>>,
    pub defaults: Partial,
    pub world: &'a World<'w>,
}

/// Reads a filter. With errors, what they are in is replaced by something harmless, so that the rest can still be checked;
/// without a name there is nothing to check further.
pub(crate) fn read<'a>(table: Table<'a>, around: &Surroundings<'a, '_>) -> Option<FilterSpec> {
    let known: Vec<&str> = OWN_KEYS.iter().chain(execution::KEYS).copied().collect();
    table.only("a filter", &known);
    let reader = table.reader;
    for (key, hint) in REQUIRED {
        table.required("a filter", key, hint);
    }
    let name = table.read("name", |node| Some((name(table, node)?, node.span)));
    let command = table.read("command", |node| command::read(reader, node, around.world));
    let args = table.read("args", |node| around.elements.args(node)).unwrap_or_default();
    for element in args.iter().filter_map(takes_anything) {
        reader.warning(
            element.span,
            "any-arguments",
            "this takes whatever options the program has, in any number",
            "say which arguments it takes, each on its own",
        );
    }
    let capabilities = table.read("capabilities", |node| capabilities::read(reader, node, true));
    let callers = callers_of(table, around);
    let mut partial = Partial::read(table, around.elements, around.world).or(&around.defaults);
    check_detach(table, &mut partial);
    let (name, span) = name?;
    Some(FilterSpec {
        line: around.document.line(span.start),
        callers,
        command: command.unwrap_or(CommandSpec {
            spelled: vec!["-".to_owned()],
            candidates: Vec::new(),
            span,
        }),
        args,
        message: partial.message.clone(),
        inner_only: partial.inner_only.unwrap_or(false),
        max_concurrent: partial.max_concurrent,
        execution: partial.complete(capabilities.unwrap_or(Capabilities::Set(0)), around.world),
        name,
        span,
    })
}

/// The part that takes arguments without limit, options among them.
fn takes_anything(element: &Element) -> Option<&Element> {
    match &element.kind {
        ElementKind::Repeat { item, max: None, .. } => (item.dash && matches!(item.kind, ElementKind::Any)).then_some(element),
        ElementKind::Optional(item) => takes_anything(item),
        ElementKind::Sequence(items) | ElementKind::OneOf(items) => items.iter().find_map(takes_anything),
        _ => None,
    }
}

/// The name of a filter: it goes into records, messages and command lines.
fn name<'a>(table: Table<'a>, node: Node<'a>) -> Option<String> {
    let name = table.reader.string(node, "`name`")?;
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'@');
    if name.is_empty() || name.len() > 128 || name.starts_with('-') || !name.bytes().all(valid) {
        let hint = "use letters, digits, `_`, `-`, `.`, `:` and `@`, at most 128";
        table
            .reader
            .error(node.span, "bad-name", &format!("`{name}` is no name for a filter"), hint);
        return None;
    }
    Some(name.to_owned())
}

/// The filter's own block, else the file's.
fn callers_of<'a>(table: Table<'a>, around: &Surroundings<'a, '_>) -> Arc<Callers> {
    let read = match (table.get("callers"), &around.callers) {
        (Some(node), _) => table
            .reader
            .table(node, "`callers`")
            .and_then(|block| callers::read(block, around.world)),
        (None, Some(callers)) => callers.clone(),
        (None, None) => {
            let hint = "add a [callers] table at the top of the file, or callers = { ... } to the filter";
            table.reader.error(
                table.span,
                "missing-key",
                "nobody may use this filter: there are no `callers`",
                hint,
            );
            None
        }
    };
    read.unwrap_or_else(|| {
        Arc::new(Callers {
            users: vec![UserRule::Unknown(String::new())],
            ..Callers::default()
        })
    })
}

/// A command that outlives its caller must not sit in the service's own tree. An inner command lives where the outer one does.
fn check_detach(table: Table<'_>, partial: &mut Partial) {
    let Some((OnDisconnect::Detach, span)) = partial.on_disconnect else {
        return;
    };
    if partial.placement != Some(Placement::Caller) && partial.inner_only != Some(true) {
        let span = if table.get("on_disconnect").is_some() {
            span
        } else {
            table.key_span("name")
        };
        table.reader.error(
            span,
            "detach-needs-caller",
            "a command that outlives its caller cannot live in the service's own cgroup",
            "add placement = \"caller\"",
        );
        partial.on_disconnect = None;
    }
}

/// Where the filter's elements are: for checks that look at all of them.
pub(crate) fn elements(filter: &FilterSpec) -> impl Iterator<Item = &Element> {
    let values = filter.execution.env_allow.iter().map(|(_, element)| element);
    filter.args.iter().chain(values)
}

/// For messages: `name` of a filter and where it stands.
pub(crate) fn place(documents: &[Document], span: Span) -> String {
    match documents.get(span.file as usize) {
        Some(document) => format!("{}:{}", document.path.display(), document.line(span.start)),
        None => String::new(),
    }
}
