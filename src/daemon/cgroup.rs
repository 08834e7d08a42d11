//! The service's own place in the cgroup tree, and where callers are: cgroups(7), version 2 only.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use super::procfs;

/// Below the unit's cgroup: rootwrapd and the launcher. A cgroup with processes of its own can give its children no controllers.
const DAEMON: &str = "daemon";

/// Moves this process into `daemon/` below the unit's cgroup; returns the unit's cgroup.
///
/// `Ok(Err(why))`: nothing was moved because the cgroup is not the service's to divide (no systemd, no `Delegate=yes`, version 1 only).
///
/// # Errors
/// It is delegated, but the move fails.
pub fn enter_daemon() -> Result<Result<PathBuf, String>> {
    let Some(mount) = mount_point() else {
        return Ok(Err("no cgroup2 file system is mounted".into()));
    };
    let Some(own) = of_process(std::process::id()) else {
        return Ok(Err("this process is in no cgroup of version 2".into()));
    };
    let Some(unit) = delegated(&mount.directory(&own)) else {
        return Ok(Err(format!("the cgroup {} is not delegated to this service", own.display())));
    };
    let daemon = unit.join(DAEMON);
    match fs::create_dir(&daemon) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("{}", daemon.display()));
        }
        _ => {}
    }
    let procs = daemon.join("cgroup.procs");
    fs::write(&procs, std::process::id().to_string()).with_context(|| format!("{}", procs.display()))?;
    Ok(Ok(unit))
}

/// The nearest of this cgroup and its parent that systemd marked as delegated (the parent: DelegateSubgroup= of newer versions).
fn delegated(cgroup: &Path) -> Option<PathBuf> {
    let candidates = [Some(cgroup), cgroup.parent().filter(|_| cgroup.ends_with(DAEMON))];
    let marked = |directory: &&Path| {
        ["user.delegate", "trusted.delegate"].iter().any(|name| {
            let mut value = [0_u8; 8];
            matches!(rustix::fs::getxattr(*directory, *name, &mut value), Ok(length) if value.get(..length) == Some(b"1"))
        })
    };
    candidates.into_iter().flatten().find(marked).map(Path::to_owned)
}

/// Where cgroup2 is mounted, and which cgroup is seen there as the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    point: PathBuf,
    root: PathBuf,
}

impl Mount {
    /// The directory of a cgroup as /proc/PID/cgroup names it.
    #[must_use]
    pub fn directory(&self, cgroup: &Path) -> PathBuf {
        let below = cgroup
            .strip_prefix(&self.root)
            .or_else(|_| cgroup.strip_prefix("/"))
            .unwrap_or(cgroup);
        self.point.join(below)
    }
}

/// Finds the cgroup2 mount: /sys/fs/cgroup, or /sys/fs/cgroup/unified beside version 1.
#[must_use]
pub fn mount_point() -> Option<Mount> {
    parse_mounts(&fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// proc(5): `ID PARENT MAJ:MIN ROOT POINT OPTIONS [FIELDS..] - TYPE SOURCE OPTIONS`.
fn parse_mounts(mountinfo: &str) -> Option<Mount> {
    let mut mounts = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        (after.split(' ').next()? == "cgroup2").then(|| Mount {
            point: unescape(point),
            root: unescape(root),
        })
    });
    let first = mounts.next()?;
    let usual = |mount: &Mount| mount.point.starts_with("/sys/fs/cgroup");
    if usual(&first) {
        Some(first)
    } else {
        mounts.find(usual).or(Some(first))
    }
}

/// Blanks, tabs, newlines and backslashes are octal in mountinfo.
fn unescape(text: &str) -> PathBuf {
    let text = text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n");
    PathBuf::from(text.replace("\\134", "\\"))
}

/// The cgroup of a process, from the `0::` line of /proc/PID/cgroup.
#[must_use]
pub fn of_process(pid: u32) -> Option<PathBuf> {
    let text = procfs::read_text(pid, "cgroup")?;
    text.lines().find_map(|line| line.strip_prefix("0::")).map(PathBuf::from)
}

/// The systemd unit that a cgroup belongs to: the first component after the leading slices. What comes behind it is named by whoever
/// the cgroup is delegated to: a user's own manager can have a unit of any name there.
#[must_use]
pub fn unit(cgroup: &Path) -> Option<String> {
    let mut components = cgroup.components();
    if components.next() != Some(Component::RootDir) {
        return None;
    }
    let name = components.find_map(|component| match component {
        Component::Normal(name) if name.as_encoded_bytes().ends_with(b".slice") => None,
        Component::Normal(name) => Some(name.to_str()),
        _ => Some(None),
    })??;
    // systemd puts an underscore before names that the kernel could take for files of its own.
    let name = name.strip_prefix('_').unwrap_or(name);
    let is_unit = [".service", ".scope", ".socket", ".mount", ".swap"]
        .iter()
        .any(|suffix| name.ends_with(suffix));
    is_unit.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit_of(cgroup: &str) -> Option<String> {
        unit(Path::new(cgroup))
    }

    #[test]
    fn the_unit_is_the_first_component_after_the_slices() {
        assert_eq!(unit_of("/system.slice/agent.service").as_deref(), Some("agent.service"));
        assert_eq!(
            unit_of("/system.slice/system-a.slice/a@1.service/sub").as_deref(),
            Some("a@1.service")
        );
        assert_eq!(unit_of("/init.scope").as_deref(), Some("init.scope"));
        assert_eq!(unit_of("/system.slice/foo\\x2dbar.service").as_deref(), Some("foo\\x2dbar.service"));
        assert_eq!(unit_of("/system.slice/_cgroup.service").as_deref(), Some("cgroup.service"));
    }

    #[test]
    fn given_a_unit_of_a_users_own_manager_then_it_is_the_manager() {
        let spoofed = "/user.slice/user-1000.slice/user@1000.service/app.slice/neutron-l3-agent.service";
        assert_eq!(unit_of(spoofed).as_deref(), Some("user@1000.service"));
        let nested = "/user.slice/user-1000.slice/user@1000.service/system.slice/neutron-l3-agent.service";
        assert_eq!(unit_of(nested).as_deref(), Some("user@1000.service"));
    }

    #[test]
    fn given_no_unit_then_none_is_made_up() {
        for cgroup in [
            "/",
            "",
            "/system.slice",
            "/docker/0123",
            "/../agent.service",
            "agent.service",
            "/lxc.payload/x.service",
        ] {
            assert_eq!(unit_of(cgroup), None, "{cgroup}");
        }
    }

    #[test]
    fn cgroup2_is_found_alone_beside_version_1_and_in_a_namespace() {
        let alone = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(
            parse_mounts(alone).unwrap().directory(Path::new("/a/b")),
            Path::new("/sys/fs/cgroup/a/b")
        );
        let hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(parse_mounts(hybrid).unwrap().point, Path::new("/sys/fs/cgroup/unified"));
        let elsewhere = format!("9 1 0:26 / /var/lib/x rw - cgroup2 none rw\n{alone}");
        assert_eq!(parse_mounts(&elsewhere).unwrap().point, Path::new("/sys/fs/cgroup"));
        let bound = "30 23 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        let bound = parse_mounts(bound).unwrap();
        assert_eq!(bound.directory(Path::new("/docker/1/x")), Path::new("/sys/fs/cgroup/x"));
        assert_eq!(parse_mounts("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"), None);
    }
}
