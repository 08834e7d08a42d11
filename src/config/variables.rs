//! `env_allow` and `env_set`: environment variables that a caller may set, and those that are always set.

use super::element::Elements;
use super::reader::{Node, Reader};
use crate::policy::environment;
use crate::policy::spec::{Element, Span};

/// `env_allow`: names, each with the element that its value must be.
pub(crate) fn allowed<'a>(reader: Reader<'a>, node: Node<'a>, elements: &Elements<'a>) -> Option<Vec<(String, Element)>> {
    let table = reader.table(node, "`env_allow`")?;
    let entries: Vec<Option<(String, Element)>> = table
        .iter()
        .map(|(variable, span, node)| {
            let element = elements.value(node, "the value of a variable");
            Some((name(reader, span, variable)?, element?))
        })
        .collect();
    entries.into_iter().collect()
}

/// `env_set`: names and values.
pub(crate) fn set<'a>(reader: Reader<'a>, node: Node<'a>) -> Option<Vec<(String, String)>> {
    let table = reader.table(node, "`env_set`")?;
    let entries: Vec<Option<(String, String)>> = table
        .iter()
        .map(|(variable, span, node)| {
            let value = reader.string(node, "the value of a variable").filter(|value| {
                let valid = !value.contains('\0');
                if !valid {
                    reader.error(node.span, "nul-byte", "no variable holds a NUL byte", "take it out");
                }
                valid
            });
            Some((name(reader, span, variable)?, value?.to_owned()))
        })
        .collect();
    entries.into_iter().collect()
}

fn name(reader: Reader<'_>, span: Span, name: &str) -> Option<String> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.bytes().all(valid) {
        let hint = "use letters, digits and `_`, no digit first";
        reader.error(span, "bad-variable", &format!("`{name}` is no name of a variable"), hint);
        return None;
    }
    if environment::steers(name.as_bytes()) {
        let message = format!("`{name}` can make the program load or run something else, or is set by the service itself");
        let hint = "give the program what it needs with an argument or in its own configuration";
        reader.error(span, "refused-variable", &message, hint);
        return None;
    }
    Some(name.to_owned())
}
