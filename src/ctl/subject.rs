//! A caller made from names, for offline explanations.

use std::ffi::CString;

use anyhow::{Context, bail};
use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid, getgrouplist, getgroups};

use crate::cli::rootwrapctl::Explain;
use crate::policy::Subject;

/// The caller that the options describe; whoever runs this where they name no user.
///
/// # Errors
/// A user or group that does not exist.
pub fn subject(options: &Explain) -> anyhow::Result<Subject> {
    let mut subject = match &options.user {
        Some(user) => of_user(user)?,
        None => myself()?,
    };
    for group in &options.group {
        let gid = group_id(group)?.as_raw();
        if !subject.groups.contains(&gid) {
            subject.groups.push(gid);
        }
    }
    subject.unit = options.unit.clone();
    subject.label = options.label.clone().map(String::into_bytes);
    Ok(subject)
}

fn myself() -> anyhow::Result<Subject> {
    Ok(Subject {
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
        groups: getgroups()?.into_iter().map(Gid::as_raw).collect(),
        ..Subject::default()
    })
}

fn of_user(name: &str) -> anyhow::Result<Subject> {
    let by_number = number(name)?;
    let found = match by_number {
        Some(uid) => User::from_uid(Uid::from_raw(uid)),
        None => User::from_name(name),
    };
    match (found.with_context(|| format!("user '{name}'"))?, by_number) {
        (Some(user), _) => {
            let groups = getgrouplist(&CString::new(user.name)?, user.gid).with_context(|| format!("groups of '{name}'"))?;
            Ok(Subject {
                uid: user.uid.as_raw(),
                gid: user.gid.as_raw(),
                groups: groups.into_iter().map(Gid::as_raw).collect(),
                ..Subject::default()
            })
        }
        // A number without an entry has no groups but those that --group names; its primary one is nobody's.
        (None, Some(uid)) => Ok(Subject {
            uid,
            gid: u32::MAX,
            ..Subject::default()
        }),
        (None, None) => bail!("there is no user '{name}'; a number needs no entry in the user database"),
    }
}

fn group_id(name: &str) -> anyhow::Result<Gid> {
    if let Some(number) = number(name)? {
        return Ok(Gid::from_raw(number));
    }
    match Group::from_name(name).with_context(|| format!("group '{name}'"))? {
        Some(group) => Ok(group.gid),
        None => bail!("there is no group '{name}'; a number needs no entry in the group database"),
    }
}

/// A uid or gid in digits. The last one is no id: system calls take it for "leave as it is".
fn number(name: &str) -> anyhow::Result<Option<u32>> {
    match name.parse() {
        Ok(u32::MAX) => bail!("{name} is no user or group: it stands for none in system calls"),
        Ok(number) => Ok(Some(number)),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::rootwrapctl::{Arguments, Verb};
    use clap::Parser;

    fn given(options: &[&str]) -> anyhow::Result<Subject> {
        let all = ["rootwrapctl", "explain"].iter().chain(options).chain(&["--", "true"]);
        match Arguments::try_parse_from(all).unwrap().verb {
            Verb::Explain(options) => subject(&options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn given_a_user_then_uid_and_groups_are_the_databases() {
        let root = given(&["--user", "root", "--group", "4242", "--unit", "a.service", "--label", "l"]).unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert!(root.groups.contains(&0) && root.groups.contains(&4242));
        assert_eq!((root.unit.as_deref(), root.label.as_deref()), (Some("a.service"), Some(&b"l"[..])));
        assert_eq!(root.assumed_by_file, None);
    }

    #[test]
    fn given_a_number_without_an_entry_then_it_is_that_uid_without_groups() {
        let nobody = given(&["--user", "2147483650"]).unwrap();
        assert_eq!((nobody.uid, nobody.groups), (2_147_483_650, vec![]));
    }

    #[test]
    fn given_an_unknown_name_then_error() {
        assert!(
            given(&["--user", "no-such-user-at-all"])
                .unwrap_err()
                .to_string()
                .contains("no-such-user-at-all")
        );
        assert!(given(&["--group", "no-such-group-at-all"]).is_err());
        assert!(
            ["--user=-1", "--user=4294967295", "--user=4294967296", "--group=4294967295"]
                .iter()
                .all(|option| given(&[option]).is_err())
        );
    }
}
