//! The caller as a policy sees it.

use super::spec::{Callers, GroupRule, UnitRule, UserRule};

/// A caller. The daemon makes it from the kernel's answers only; `check` and `explain` make it from names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Effective uid.
    pub uid: u32,
    /// Effective gid.
    pub gid: u32,
    /// Supplementary groups, as the kernel holds them.
    pub groups: Vec<u32>,
    /// The systemd unit, where it could be established.
    pub unit: Option<String>,
    /// The security label, where there is one.
    pub label: Option<Vec<u8>>,
    /// For `[[test]]`s that name no caller: any `[callers]` of this file (index into the policy's files) admits it. `None` in the daemon, always.
    pub assumed_by_file: Option<u32>,
}

impl Subject {
    /// Whether these callers include this one: (users or groups) and units and labels. `file` is the file of the filter.
    pub(super) fn is_among(&self, callers: &Callers, file: u32) -> bool {
        if self.assumed_by_file.is_some() {
            return self.assumed_by_file == Some(file);
        }
        let Callers {
            users,
            groups,
            units,
            labels,
        } = callers;
        let anybody = users.is_empty() && groups.is_empty();
        if anybody && units.is_empty() && labels.is_empty() {
            return false;
        }
        (anybody || users.iter().any(|rule| self.is_user(rule)) || groups.iter().any(|rule| self.is_member(rule)))
            && (units.is_empty() || units.iter().any(|rule| self.is_unit(rule)))
            && (labels.is_empty()
                || self
                    .label
                    .as_ref()
                    .is_some_and(|label| labels.iter().any(|rule| rule.as_bytes() == *label)))
    }

    fn is_user(&self, rule: &UserRule) -> bool {
        match rule {
            UserRule::Any => true,
            UserRule::Uid(uid) => self.uid == *uid,
            UserRule::Unknown(_) => false,
        }
    }

    fn is_member(&self, rule: &GroupRule) -> bool {
        match rule {
            GroupRule::Gid(gid) => self.gid == *gid || self.groups.contains(gid),
            GroupRule::Unknown(_) => false,
        }
    }

    fn is_unit(&self, rule: &UnitRule) -> bool {
        let Some(unit) = &self.unit else {
            return false;
        };
        match rule {
            UnitRule::Name(name) => unit == name,
            UnitRule::Instances { prefix, suffix } => unit
                .strip_prefix(prefix.as_str())
                .and_then(|rest| rest.strip_suffix(suffix.as_str()))
                .is_some_and(|instance| !instance.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> Subject {
        Subject {
            uid: 1000,
            gid: 1000,
            groups: vec![27, 100],
            unit: Some("worker@7.service".to_owned()),
            label: Some(b"agent_t".to_vec()),
            assumed_by_file: None,
        }
    }

    fn users(uid: u32) -> Vec<UserRule> {
        vec![UserRule::Uid(uid)]
    }

    #[test]
    fn users_or_groups_suffice() {
        let groups = |gid| vec![GroupRule::Gid(gid)];
        for (users, groups, expected) in [
            (users(1000), vec![], true),
            (users(1001), vec![], false),
            (vec![], groups(100), true),
            (vec![], groups(1000), true),
            (vec![], groups(0), false),
            (users(1001), groups(27), true),
            (users(1000), groups(0), true),
            (vec![UserRule::Any], vec![], true),
            (
                vec![UserRule::Unknown("alice".to_owned())],
                vec![GroupRule::Unknown("sudo".to_owned())],
                false,
            ),
        ] {
            let callers = Callers {
                users,
                groups,
                ..Callers::default()
            };
            assert_eq!(alice().is_among(&callers, 0), expected, "{callers:?}");
        }
    }

    #[test]
    fn units_and_labels_are_needed_as_well() {
        let unit = |rule: UnitRule| Callers {
            users: users(1000),
            units: vec![rule],
            ..Callers::default()
        };
        let instances = |prefix: &str| UnitRule::Instances {
            prefix: prefix.to_owned(),
            suffix: ".service".to_owned(),
        };
        assert!(alice().is_among(&unit(UnitRule::Name("worker@7.service".to_owned())), 0));
        assert!(!alice().is_among(&unit(UnitRule::Name("worker@.service".to_owned())), 0));
        assert!(alice().is_among(&unit(instances("worker@")), 0));
        assert!(!alice().is_among(&unit(instances("other@")), 0));
        assert!(!alice().is_among(&unit(instances("worker@7")), 0));
        assert!(!Subject { unit: None, ..alice() }.is_among(&unit(instances("worker@")), 0));
        assert!(!Subject { uid: 1, ..alice() }.is_among(&unit(instances("worker@")), 0));

        let label = |label: &str| Callers {
            labels: vec![label.to_owned()],
            ..Callers::default()
        };
        assert!(alice().is_among(&label("agent_t"), 0));
        assert!(!alice().is_among(&label("agent"), 0));
        assert!(!Subject { label: None, ..alice() }.is_among(&label("agent_t"), 0));
    }

    #[test]
    fn callers_that_name_nobody_are_nobody() {
        assert!(!alice().is_among(&Callers::default(), 0));
    }

    #[test]
    fn an_assumed_caller_is_admitted_by_its_file_only() {
        let assumed = Subject {
            assumed_by_file: Some(3),
            ..Subject::default()
        };
        let callers = Callers {
            users: users(5),
            ..Callers::default()
        };
        assert!(assumed.is_among(&callers, 3));
        assert!(!assumed.is_among(&callers, 2));
    }
}
