//! `command`: what a filter runs, and whether it is there and root's.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::paths;
use super::reader::{Node, Reader};
use super::trusted::walk::Owners;
use super::trusted::{Untrusted, find_executable};
use super::world::World;
use crate::policy::spec::{CommandSpec, Span};

/// What was found at paths, each looked at once in a load.
#[derive(Debug, Default)]
pub(crate) struct Executables {
    known: HashMap<PathBuf, Result<(), Untrusted>>,
}

/// Reads one path or name, or a list of them.
pub(crate) fn read<'a>(reader: Reader<'a>, node: Node<'a>, world: &World<'_>) -> Option<CommandSpec> {
    let nodes: Vec<Node<'a>> = match node.value.as_str() {
        Some(_) => vec![node],
        None => reader.array_or(node, "`command` is a path, a name or a list of these")?.collect(),
    };
    if nodes.is_empty() {
        reader.error(node.span, "empty-list", "`command` is empty", "name at least one program");
    }
    let spelled: Vec<String> = nodes.iter().filter_map(|node| spelling(reader, *node)).collect();
    if spelled.len() != nodes.len() || spelled.is_empty() {
        return None;
    }
    let candidates: Vec<PathBuf> = spelled
        .iter()
        .flat_map(|name| candidates(name, &world.settings.exec_dirs))
        .collect();
    check(reader, node.span, &candidates, world);
    Some(CommandSpec {
        spelled,
        candidates,
        span: node.span,
    })
}

fn spelling<'a>(reader: Reader<'a>, node: Node<'a>) -> Option<String> {
    let name = reader.string(node, "a command")?;
    if name.contains('/') {
        return paths::absolute(reader, node, "the command").map(|_| name.to_owned());
    }
    if name.is_empty() || name.starts_with(['-', '.']) || name.contains(|c: char| c.is_control() || c.is_whitespace()) {
        let hint = "write an absolute path, or a name without `/` that is looked up in exec_dirs";
        reader.error(node.span, "bad-command", &format!("`{name}` is no command"), hint);
        return None;
    }
    Some(name.to_owned())
}

fn candidates(name: &str, exec_dirs: &[PathBuf]) -> Vec<PathBuf> {
    if name.starts_with('/') {
        return vec![PathBuf::from(name)];
    }
    exec_dirs.iter().map(|directory| directory.join(name)).collect()
}

/// One that exists and is not safe is an error; that none exists is a warning, because it may be installed later.
fn check(reader: Reader<'_>, span: Span, candidates: &[PathBuf], world: &World<'_>) {
    let mut found = false;
    for path in candidates {
        match world.executables.borrow_mut().look(path, world.owners) {
            Ok(()) => found = true,
            Err(Untrusted::Missing(_)) => {}
            Err(error) => {
                found = true;
                refuse(reader, span, path, &error);
            }
        }
    }
    if !found {
        let names: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
        let message = format!("the command is not installed: there is no {}", names.join(", no "));
        let hint = "until it is, this filter runs nothing; it is looked up again at each request";
        reader.warning(span, "missing-executable", &message, hint);
    }
}

fn refuse(reader: Reader<'_>, span: Span, path: &Path, error: &Untrusted) {
    let (code, hint) = match error {
        Untrusted::Unsafe { .. } => (
            "unsafe-executable",
            "whoever can change it would be root: give it and every directory on the way to root (chown root, chmod go-w)",
        ),
        Untrusted::NotExecutable(_) => ("not-executable", "name a program, and make it executable (chmod +x)"),
        _ => ("unreadable", "mend the path"),
    };
    let message = format!("`{}` cannot be run: {error}", path.display());
    reader.error(span, code, &message, hint);
}

impl Executables {
    fn look(&mut self, path: &Path, owners: Owners) -> Result<(), Untrusted> {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let mut found = find_executable(path, owners).map(|_| ());
        // Below a directory that others may write, what is not there is not there.
        let missing = || matches!(rustix::fs::lstat(path), Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR));
        if matches!(found, Err(Untrusted::Unsafe { .. })) && missing() {
            found = Err(Untrusted::Missing(path.to_owned()));
        }
        self.known.insert(path.to_owned(), found.clone());
        found
    }
}
