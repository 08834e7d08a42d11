//! `[[test]]`.

use toml::de::DeValue;

use super::accounts::{Account, Lookup};
use super::document::Document;
use super::identity::{self, Identity, Sort};
use super::reader::{Node, Table};
use super::world::World;
use super::{TestCase, capabilities};
use crate::policy::Subject;

const KEYS: &[&str] = &["argv", "expect", "as", "env", "cwd", "filter", "capabilities"];
const AS_KEYS: &[&str] = &["user", "group", "groups", "unit", "label"];

/// No account has it: it stands for users and groups that do not exist here.
pub(crate) const NOBODY: u32 = u32::MAX - 1;

/// Reads one test; `None` when it has errors.
pub(crate) fn read<'a>(table: Table<'a>, document: &Document, world: &World<'_>) -> Option<TestCase> {
    let reader = table.reader;
    let before = reader.report.errors();
    table.only("a test", KEYS);
    let argv = table.required("a test", "argv", "write the command and its arguments as a list");
    let argv = argv.and_then(|node| reader.strings(node, "`argv` is a list", "an argument"));
    let expect = table
        .required("a test", "expect", "write expect = \"allow\" or \"deny\"")
        .and_then(|node| reader.word(node, "`expect`", &[("allow", true), ("deny", false)]));
    let subject = table.get("as").map(|node| subject(table, node, world));
    let filter = table.get("filter").and_then(|node| reader.string(node, "`filter`"));
    let capabilities = table.get("capabilities").and_then(|node| capabilities::read(reader, node, false));
    let has_cwd = table.get("cwd").and_then(|node| reader.boolean(node, "`cwd`")).unwrap_or(false);
    let environment = table.get("env").map(|node| environment(table, node)).unwrap_or_default();
    if expect == Some(false) {
        for key in ["filter", "capabilities"].iter().filter(|key| table.get(key).is_some()) {
            let message = format!("a test that expects deny has no `{key}`");
            reader.error(
                table.key_span(key),
                "contradiction",
                &message,
                "nothing is allowed, so no filter allows it",
            );
        }
    }
    if reader.report.errors() > before {
        return None;
    }
    let (subject, unknown) = subject
        .flatten()
        .map_or((None, None), |(subject, unknown)| (Some(subject), unknown));
    Some(TestCase {
        source: format!("{}:{}", document.path.display(), document.line(table.key_span("argv").start)),
        file: reader.file,
        argv: argv?.into_iter().map(|(argument, _)| argument.as_bytes().to_vec()).collect(),
        subject,
        unknown,
        environment,
        has_cwd,
        allow: expect?,
        filter: filter.map(str::to_owned),
        capabilities,
    })
}

fn environment<'a>(table: Table<'a>, node: Node<'a>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Some(variables) = table.reader.table(node, "`env`") else {
        return Vec::new();
    };
    variables
        .iter()
        .filter_map(|(name, _, value)| {
            let value = table.reader.string(value, "the value of a variable")?;
            Some((name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        })
        .collect()
}

/// `as`: the subject, and the name that does not exist here, where there is one.
fn subject<'a>(table: Table<'a>, node: Node<'a>, world: &World<'_>) -> Option<(Subject, Option<String>)> {
    let reader = table.reader;
    let mut unknown = None;
    let stranger = Subject {
        uid: NOBODY,
        gid: NOBODY,
        ..Subject::default()
    };
    let DeValue::Table(_) = node.value else {
        let subject = user(identity::read(reader, node, Sort::User)?, world, &mut unknown);
        return Some((subject, unknown));
    };
    let block = reader.table(node, "`as`")?;
    block.only("as", AS_KEYS);
    let mut subject = match block.get("user") {
        Some(node) => user(identity::read(reader, node, Sort::User)?, world, &mut unknown),
        None => stranger,
    };
    if let Some(node) = block.get("group") {
        subject.gid = gid(identity::read(reader, node, Sort::Group)?, world, &mut unknown);
    }
    if let Some(node) = block.get("groups") {
        let groups: Vec<Node<'a>> = reader.array(node, "`groups`")?.collect();
        let groups: Option<Vec<Identity<'a>>> = groups.into_iter().map(|node| identity::read(reader, node, Sort::Group)).collect();
        subject.groups = groups?.into_iter().map(|group| gid(group, world, &mut unknown)).collect();
    }
    if let Some(node) = block.get("unit") {
        subject.unit = Some(reader.string(node, "`unit`")?.to_owned());
    }
    if let Some(node) = block.get("label") {
        subject.label = Some(reader.string(node, "`label`")?.as_bytes().to_vec());
    }
    Some((subject, unknown))
}

/// A user with the groups of a fresh login.
fn user(identity: Identity<'_>, world: &World<'_>, unknown: &mut Option<String>) -> Subject {
    let account = match identity {
        Identity::Number(uid) => match world.accounts.uid(uid) {
            Lookup::Found(account) => Some(account),
            _ => Some(Account {
                name: String::new(),
                uid,
                gid: NOBODY,
                home: String::new(),
                shell: String::new(),
            }),
        },
        Identity::Name(name) => match world.accounts.user(name) {
            Lookup::Found(account) => Some(account),
            _ => {
                *unknown = Some(format!("user `{name}`"));
                None
            }
        },
    };
    account.map_or(
        Subject {
            uid: NOBODY,
            gid: NOBODY,
            ..Subject::default()
        },
        |account| Subject {
            uid: account.uid,
            gid: account.gid,
            groups: world.accounts.groups_of(&account.name),
            ..Subject::default()
        },
    )
}

fn gid(identity: Identity<'_>, world: &World<'_>, unknown: &mut Option<String>) -> u32 {
    match identity {
        Identity::Number(gid) => gid,
        Identity::Name(name) => match world.accounts.group(name) {
            Lookup::Found(gid) => gid,
            _ => {
                *unknown = Some(format!("group `{name}`"));
                NOBODY
            }
        },
    }
}
