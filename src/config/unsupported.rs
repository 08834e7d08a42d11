//! Words of the language that this build does not enforce: checked as the others are, then refused, never ignored.

use super::paths;
use super::reader::{Node, Reader, Table};

/// Keys of `limits`; of these, only `nofile` is enforced.
pub(crate) const LIMITS: &[&str] = &["nofile", "memory", "tasks", "cpu"];

const HINT: &str = "leave it out; a filter whose restrictions would not hold is not loaded";

/// Reports those of a filter or of `[defaults]`.
pub(crate) fn report(table: Table<'_>) {
    let reader = table.reader;
    for key in ["netns", "seccomp", "apparmor", "selinux"] {
        refuse(table, key, |node| reader.string(node, &format!("`{key}`")).map(|_| ()));
    }
    refuse(table, "tty", |node| reader.boolean(node, "`tty`").map(|_| ()));
    refuse(table, "write_paths", |node| paths::list(reader, node, "`write_paths`").map(|_| ()));
    if let Some(node) = table.get("placement").filter(|node| node.value.as_str() == Some("service")) {
        unsupported(reader, node, "placement = \"service\"");
    }
    // A wrong type of `limits` itself is told where `nofile` is read.
    if let Some(node) = table.get("limits").filter(|node| node.value.is_table()) {
        if let Some(limits) = reader.table(node, "`limits`") {
            refuse(limits, "memory", |node| size(reader, node));
            refuse(limits, "tasks", |node| {
                reader.integer(node, "`tasks`", 1..=i64::from(u32::MAX)).map(|_| ())
            });
            refuse(limits, "cpu", |node| percentage(reader, node));
        }
    }
}

fn refuse<'a>(table: Table<'a>, key: &str, valid: impl FnOnce(Node<'a>) -> Option<()>) {
    if let Some(node) = table.get(key) {
        if valid(node).is_some() {
            unsupported(table.reader, node, &format!("`{key}`"));
        }
    }
}

/// One word that this build does not enforce.
pub(crate) fn unsupported(reader: Reader<'_>, node: Node<'_>, what: &str) {
    reader.error(
        node.span,
        "unsupported-key",
        &format!("{what} is not supported by this build"),
        HINT,
    );
}

/// Bytes, or a number with K, M, G or T.
fn size(reader: Reader<'_>, node: Node<'_>) -> Option<()> {
    if node.value.is_integer() {
        return reader.integer(node, "`memory`", 1..=i64::MAX).map(|_| ());
    }
    spelled(reader, node, "`memory` is a size such as \"512M\"", &["K", "M", "G", "T"])
}

fn percentage(reader: Reader<'_>, node: Node<'_>) -> Option<()> {
    spelled(reader, node, "`cpu` is a share of one processor such as \"50%\"", &["%"])
}

fn spelled(reader: Reader<'_>, node: Node<'_>, what: &str, units: &[&str]) -> Option<()> {
    let Some(text) = node.value.as_str() else {
        reader.wrong_type(node, what);
        return None;
    };
    let number = units.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or_default();
    if number.parse::<u64>().is_ok_and(|number| number > 0) && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(());
    }
    reader.report.plain_error(node.span, "wrong-type", what);
    None
}
