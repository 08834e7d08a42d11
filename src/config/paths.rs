//! Paths as files write them: absolute and in normal form, so that two spellings never mean the same place.

use std::path::{Component, Path, PathBuf};

use super::reader::{Node, Reader};

/// Reads an absolute path without `.`, `..`, `//` and trailing `/`.
pub(crate) fn absolute(reader: Reader<'_>, node: Node<'_>, what: &str) -> Option<PathBuf> {
    let text = reader.string(node, what)?;
    if text.contains('\0') {
        reader.error(node.span, "bad-path", &format!("{what} holds a NUL byte"), "no path can");
        return None;
    }
    if !text.starts_with('/') {
        reader.error(
            node.span,
            "relative-path",
            &format!("{what} is a relative path"),
            "write it from `/` on: what it is relative to could be anybody's",
        );
        return None;
    }
    let clean = normal(text);
    if clean.to_str() != Some(text) {
        let message = format!("{what} is not in its shortest form");
        reader.error(node.span, "bad-path", &message, &format!("write `{}`", clean.display()));
        return None;
    }
    Some(clean)
}

/// A list of paths, not empty.
pub(crate) fn list(reader: Reader<'_>, node: Node<'_>, what: &str) -> Option<Vec<PathBuf>> {
    let nodes: Vec<Node<'_>> = reader.array(node, what)?.collect();
    if nodes.is_empty() {
        reader.error(node.span, "empty-list", &format!("{what} is empty"), "name at least one path");
        return None;
    }
    let paths: Vec<PathBuf> = nodes
        .iter()
        .filter_map(|item| absolute(reader, *item, &format!("each item of {what}")))
        .collect();
    (paths.len() == nodes.len()).then_some(paths)
}

/// Without `.`, `//` and trailing `/`; `..` takes the component before it away.
fn normal(text: &str) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in Path::new(text).components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            _ => {}
        }
    }
    clean
}
