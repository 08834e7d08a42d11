//! `[callers]`: (users or groups) and units and labels.

use std::sync::Arc;

use super::accounts::Lookup;
use super::identity::{self, Identity, Sort};
use super::reader::{Node, Reader, Table};
use super::world::World;
use crate::policy::spec::{Callers, GroupRule, Span, UnitRule, UserRule};

const KEYS: &[&str] = &["users", "groups", "units", "labels"];

/// Reads one block.
pub(crate) fn read(table: Table<'_>, world: &World<'_>) -> Option<Arc<Callers>> {
    table.only("callers", KEYS);
    let before = table.reader.report.errors();
    let mut callers = Callers::default();
    for (key, _, node) in table.iter().filter(|(key, _, _)| KEYS.contains(key)) {
        let what = format!("`{key}`");
        let Some(items) = table.reader.array(node, &what) else { continue };
        let items: Vec<Node<'_>> = items.collect();
        if items.is_empty() {
            let message = format!("{what} is empty, so nobody or everybody might be meant");
            table
                .reader
                .error(node.span, "empty-list", &message, "name somebody, or leave the key out");
        }
        for item in items {
            add(&mut callers, key, table.reader, item, world);
        }
    }
    if table.len() == 0 {
        table.reader.error(
            table.span,
            "no-callers",
            "callers names nobody",
            "give at least one of users, groups, units, labels",
        );
    }
    (table.reader.report.errors() == before).then(|| Arc::new(callers))
}

fn add<'a>(callers: &mut Callers, key: &str, reader: Reader<'a>, item: Node<'a>, world: &World<'_>) {
    match key {
        "users" | "groups" if item.value.as_str() == Some("any") => {
            reader.warning(
                item.span,
                "any-caller",
                "`any` lets every user of this machine use these filters",
                "name the users, groups or units that need them",
            );
            callers.users.push(UserRule::Any);
        }
        "users" => callers.users.extend(user(reader, item, world)),
        "groups" => callers.groups.extend(group(reader, item, world)),
        "units" => callers.units.extend(unit(reader, item)),
        _ => callers.labels.extend(label(reader, item)),
    }
}

fn user<'a>(reader: Reader<'a>, item: Node<'a>, world: &World<'_>) -> Option<UserRule> {
    let name = match identity::read(reader, item, Sort::User)? {
        Identity::Number(uid) => return Some(UserRule::Uid(uid)),
        Identity::Name(name) => name,
    };
    let found = world.accounts.user(name);
    Some(match resolved(reader, item.span, Sort::User, name, found, MATCHES_NOBODY) {
        Some(account) => UserRule::Uid(account.uid),
        None => UserRule::Unknown(name.to_owned()),
    })
}

fn group<'a>(reader: Reader<'a>, item: Node<'a>, world: &World<'_>) -> Option<GroupRule> {
    let name = match identity::read(reader, item, Sort::Group)? {
        Identity::Number(gid) => return Some(GroupRule::Gid(gid)),
        Identity::Name(name) => name,
    };
    let found = world.accounts.group(name);
    Some(match resolved(reader, item.span, Sort::Group, name, found, MATCHES_NOBODY) {
        Some(gid) => GroupRule::Gid(gid),
        None => GroupRule::Unknown(name.to_owned()),
    })
}

const MATCHES_NOBODY: &str = "this matches nobody";

/// What was found; what was not, is warned about. `effect`: what follows as long as it is not there.
pub(crate) fn resolved<T>(reader: Reader<'_>, span: Span, sort: Sort, name: &str, found: Lookup<T>, effect: &str) -> Option<T> {
    let word = sort.word();
    match found {
        Lookup::Found(value) => return Some(value),
        Lookup::Unknown => reader.warning(
            span,
            if sort == Sort::User { "unknown-user" } else { "unknown-group" },
            &format!("there is no {word} `{name}`; until there is, {effect}"),
            &format!("create the {word} and run `rootwrapctl reload`, or mend the name"),
        ),
        Lookup::NoAnswer => reader.warning(
            span,
            "name-service",
            &format!("the name service did not answer in time for the {word} `{name}`; until it does, {effect}"),
            "see to the name service (nsswitch.conf(5)), then run `rootwrapctl reload`; or give the number",
        ),
    }
    None
}

/// `name.service`, or `name@*.service` for every instance.
fn unit<'a>(reader: Reader<'a>, item: Node<'a>) -> Option<UnitRule> {
    let name = reader.string(item, "a unit")?;
    let refuse = |hint: &str| {
        reader.error(item.span, "bad-unit", &format!("`{name}` is no name of a unit"), hint);
        None
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '.' | '\\' | '-' | '@' | '*');
    let Some(stem) = name.strip_suffix(".service").or_else(|| name.strip_suffix(".scope")) else {
        return refuse("callers are services and scopes: write the whole name, as in `nova-compute.service`");
    };
    if stem.is_empty() || name.len() > 255 || !name.chars().all(valid) {
        return refuse("write it as `systemctl status` shows it");
    }
    if !name.contains('*') {
        return Some(UnitRule::Name(name.to_owned()));
    }
    match name.split_once('*') {
        Some((prefix, suffix)) if prefix.len() > 1 && prefix.ends_with('@') && matches!(suffix, ".service" | ".scope") => {
            Some(UnitRule::Instances {
                prefix: prefix.to_owned(),
                suffix: suffix.to_owned(),
            })
        }
        _ => refuse("a star stands only for the instance of a template, as in `worker@*.service`"),
    }
}

fn label<'a>(reader: Reader<'a>, item: Node<'a>) -> Option<String> {
    let label = reader.string(item, "a label")?;
    if label.is_empty() || label.contains('\0') {
        reader.error(item.span, "bad-label", "this is no security label", "write it as `ps -Z` shows it");
        return None;
    }
    Some(label.to_owned())
}
