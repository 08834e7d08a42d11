//! `run_as`: a user, or a table of user, group and groups. Supplementary groups are exactly those that the file names.

use std::sync::Arc;

use toml::de::DeValue;

use super::accounts::{Account, Lookup};
use super::callers::resolved;
use super::identity::{self, Identity, Sort};
use super::reader::{Node, Reader};
use super::world::World;
use crate::policy::spec::{Ids, RunAs, Span};

const HINT: &str = "write run_as = \"root\", or { user = \"...\", group = \"...\", groups = [...] }";

const ALLOWS_NOTHING: &str = "its filters allow nothing";

/// Reads it, and looks the names up.
pub(crate) fn read<'a>(reader: Reader<'a>, node: Node<'a>, world: &World<'_>) -> Option<Arc<RunAs>> {
    let DeValue::Table(_) = node.value else {
        let identity = identity::read(reader, node, Sort::User)?;
        return Some(world.share(build(reader, node.span, identity, None, Some(Vec::new()), world)));
    };
    let before = reader.report.errors();
    let table = reader.table(node, "`run_as`")?;
    table.only("run_as", &["user", "group", "groups"]);
    let user = table.required("run_as", "user", HINT)?;
    let identity = identity::read(reader, user, Sort::User)?;
    let group = table.get("group").map(|node| gid(reader, node, world));
    let mut groups = Some(Vec::new());
    if let Some(node) = table.get("groups") {
        groups = reader.array(node, "`groups`")?.map(|item| gid(reader, item, world)).collect();
    }
    if reader.report.errors() > before {
        return None;
    }
    Some(world.share(build(reader, user.span, identity, group, groups, world)))
}

/// The default: root, whether or not there is an account of that name.
pub(crate) fn root(world: &World<'_>) -> Arc<RunAs> {
    let account = match world.accounts.uid(0) {
        Lookup::Found(account) => account,
        _ => nameless(0, "root", 0),
    };
    world.share(run_as(account, Some(0), Some(Vec::new())))
}

/// `group`: `None`: the account's own; `Some(None)`: one that does not exist.
fn build(
    reader: Reader<'_>,
    span: Span,
    identity: Identity<'_>,
    group: Option<Option<u32>>,
    groups: Option<Vec<u32>>,
    world: &World<'_>,
) -> RunAs {
    let account = match identity {
        Identity::Name(name) => resolved(reader, span, Sort::User, name, world.accounts.user(name), ALLOWS_NOTHING),
        Identity::Number(uid) => match (world.accounts.uid(uid), group) {
            (Lookup::Found(account), _) => Some(account),
            (_, Some(gid)) => Some(nameless(uid, &uid.to_string(), gid.unwrap_or_default())),
            (_, None) => {
                reader.warning(
                    span,
                    "unknown-user",
                    &format!("uid {uid} has no account, so it has no group; until it has, this filter never matches"),
                    "name the group too: { user = ..., group = ... }",
                );
                None
            }
        },
    };
    match (account, identity) {
        (Some(account), _) => {
            let gid = group.unwrap_or(Some(account.gid));
            run_as(account, gid, groups)
        }
        (None, Identity::Name(name)) => run_as(nameless(0, name, 0), None, None),
        (None, Identity::Number(uid)) => run_as(nameless(0, &uid.to_string(), 0), None, None),
    }
}

fn run_as(account: Account, gid: Option<u32>, groups: Option<Vec<u32>>) -> RunAs {
    let uid = account.uid;
    RunAs {
        ids: gid.zip(groups).map(|(gid, groups)| Ids { uid, gid, groups }),
        user: account.name,
        home: or(account.home, "/"),
        shell: or(account.shell, "/bin/sh"),
    }
}

fn or(text: String, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text }
}

fn nameless(uid: u32, name: &str, gid: u32) -> Account {
    Account {
        name: name.to_owned(),
        uid,
        gid,
        home: String::new(),
        shell: String::new(),
    }
}

fn gid<'a>(reader: Reader<'a>, node: Node<'a>, world: &World<'_>) -> Option<u32> {
    match identity::read(reader, node, Sort::Group)? {
        Identity::Number(gid) => Some(gid),
        Identity::Name(name) => resolved(reader, node.span, Sort::Group, name, world.accounts.group(name), ALLOWS_NOTHING),
    }
}
