//! Whether callers of a filter can write below a `path_under` base, to it, or to a directory above it; or to a `links_to`.
//!
//! Such a caller can swap a component between the check and the use. What exists at load is looked at, directories only, in a
//! thread with a deadline: a mount that does not answer must not keep the service from starting.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat, openat};

use super::accounts::{Accounts, Lookup};
use super::report::Report;
use super::{element, filter};
use crate::policy::spec::{Callers, Element, ElementKind, FilterSpec, GroupRule, Span, UserRule};

/// Directories looked at below one base, and how deep.
const MAXIMUM_DIRECTORIES: usize = 20_000;
const MAXIMUM_DEPTH: usize = 64;
/// Symlinks on the way to one base: more than path_resolution(7) follows.
const MAXIMUM_LINKS: usize = 64;

/// For all bases of one load.
const PATIENCE: Duration = Duration::from_secs(3);

const HINT: &str =
    "use a base that only root can write below, or add caller_writable = true and let the command itself be safe against that";

/// One sort of directory: who may write there, and the first of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Owner {
    uid: u32,
    /// `None`: its group may not write.
    group: Option<u32>,
    everybody: bool,
    /// An access control list may let others write.
    listed: bool,
}

/// What was found at and around a base.
#[derive(Clone, Debug, Default)]
struct Tree {
    owners: HashMap<Owner, PathBuf>,
    /// Not everything could be looked at.
    incomplete: bool,
}

/// The bases of one load.
pub(crate) struct Writable<'a> {
    accounts: &'a Accounts,
    deadline: Instant,
    trees: HashMap<(PathBuf, Reach), Tree>,
}

/// How much of a directory counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reach {
    /// A base: it, what is above and what is below.
    All,
    /// Where links of root's lead: it and what is above. What they mean below it they name themselves.
    Itself,
}

/// What an element leans on.
struct Place<'a> {
    path: &'a Path,
    reach: Reach,
    caller_writable: bool,
    span: Span,
}

/// Those who may use a filter, as far as their rights on files go.
struct Writers {
    /// uid and groups; `None`: anybody, or somebody of whom only unit or label is known.
    known: Option<Vec<(u32, HashSet<u32>)>>,
}

impl<'a> Writable<'a> {
    pub fn new(accounts: &'a Accounts) -> Self {
        Self {
            accounts,
            deadline: Instant::now() + PATIENCE,
            trees: HashMap::new(),
        }
    }

    /// Reports the bases that callers can write below.
    pub fn check_all(&mut self, filters: &[FilterSpec], report: &Report) {
        for spec in filters {
            let mut bases = Vec::new();
            filter::elements(spec).for_each(|element| collect(element, &mut bases));
            if bases.is_empty() {
                continue;
            }
            let writers = Writers::of(&spec.callers, self.accounts);
            for place in &bases {
                self.check(&writers, place, report);
            }
        }
    }

    fn check(&mut self, writers: &Writers, place: &Place<'_>, report: &Report) {
        let Place { path: base, span, .. } = *place;
        if place.caller_writable {
            let message = format!("callers may change what is below `{}` while a command uses it", base.display());
            let hint = "make sure that the command is safe against that (symlinks!), or drop caller_writable";
            report.warning(span, "caller-writable", &message, hint);
            return;
        }
        let tree = self.tree(base, place.reach);
        let writable = tree
            .owners
            .iter()
            .filter(|(owner, _)| writers.can_write(owner))
            .map(|(_, path)| path)
            .min();
        if let Some(path) = writable {
            let message = format!(
                "a caller can write to `{}`, so it could change where a path leads after it was checked",
                path.display()
            );
            report.error(span, "caller-can-write", &message, HINT);
        } else if tree.incomplete {
            let message = format!("not everything below `{}` could be looked at", base.display());
            report.warning(span, "unverified-tree", &message, "make sure that callers can write nowhere there");
        }
    }

    fn tree(&mut self, base: &Path, reach: Reach) -> &Tree {
        let deadline = self.deadline;
        self.trees.entry((base.to_owned(), reach)).or_insert_with(|| {
            let (found, tree) = channel();
            let path = base.to_owned();
            let work = move || {
                // Nobody listens any more when the deadline has passed.
                let _ = found.send(look_around(&path, reach, deadline));
            };
            let started = std::thread::Builder::new().name("path-under".into()).spawn(work);
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = started.ok().and_then(|_| tree.recv_timeout(left).ok());
            answer.unwrap_or(Tree {
                incomplete: true,
                ..Tree::default()
            })
        })
    }
}

impl Writers {
    /// Root is left out: it can write everywhere as it is. A user who does not exist never calls.
    fn of(callers: &Callers, accounts: &Accounts) -> Self {
        if callers.users.is_empty() || !callers.groups.is_empty() || callers.users.contains(&UserRule::Any) {
            let nobody = |rule: &GroupRule| matches!(rule, GroupRule::Unknown(_));
            let nobody_calls = callers.users.is_empty() && !callers.groups.is_empty() && callers.groups.iter().all(nobody);
            return Self {
                known: nobody_calls.then(Vec::new),
            };
        }
        let uids = callers.users.iter().filter_map(|rule| match rule {
            UserRule::Uid(uid) if *uid != 0 => Some(*uid),
            _ => None,
        });
        let with_groups = |uid| match accounts.uid(uid) {
            Lookup::Found(account) => {
                let mut groups: HashSet<u32> = accounts.groups_of(&account.name).into_iter().collect();
                groups.insert(account.gid);
                (uid, groups)
            }
            _ => (uid, HashSet::new()),
        };
        Self {
            known: Some(uids.map(with_groups).collect()),
        }
    }

    /// An owner can give himself the right to write.
    fn can_write(&self, owner: &Owner) -> bool {
        match &self.known {
            None => owner.uid != 0 || owner.group.is_some() || owner.everybody || owner.listed,
            Some(known) if known.is_empty() => false,
            Some(known) => {
                let may = |(uid, groups): &(u32, HashSet<u32>)| *uid == owner.uid || owner.group.is_some_and(|gid| groups.contains(&gid));
                owner.everybody || owner.listed || known.iter().any(may)
            }
        }
    }
}

fn collect<'a>(element: &'a Element, places: &mut Vec<Place<'a>>) {
    if let ElementKind::PathUnder {
        base,
        caller_writable,
        links_to,
        ..
    } = &element.kind
    {
        let place = |path, reach| Place {
            path,
            reach,
            caller_writable: *caller_writable,
            span: element.span,
        };
        places.push(place(base, Reach::All));
        if !caller_writable {
            places.extend(links_to.iter().map(|path| place(path, Reach::Itself)));
        }
    }
    for child in element::children(element) {
        collect(child, places);
    }
}

/// The directories above a base, as spelled and as it is reached, and those below it on the same file system.
fn look_around(base: &Path, reach: Reach, deadline: Instant) -> Tree {
    let mut tree = Tree::default();
    tree.add_above(base);
    let real = std::fs::canonicalize(base).ok();
    if let Some(real) = real.filter(|_| reach == Reach::All) {
        let mut walk = Walk {
            tree: &mut tree,
            left: MAXIMUM_DIRECTORIES,
            device: rustix::fs::lstat(&real).map(|stat| stat.st_dev).unwrap_or_default(),
            deadline,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(CWD, &real, flags, Mode::empty()) {
            Ok(descriptor) => walk.below(descriptor, &real, 0),
            Err(_) => tree.incomplete |= real.is_dir(),
        }
    }
    tree
}

impl Tree {
    /// All directories that a path passes through, those of symlinks on it included.
    fn add_above(&mut self, path: &Path) {
        let mut paths = vec![path.to_owned()];
        let mut links = 0;
        while let Some(path) = paths.pop() {
            for part in path.ancestors() {
                let Ok(stat) = rustix::fs::lstat(part) else { continue };
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory => self.add(&stat, part),
                    FileType::Symlink if links < MAXIMUM_LINKS => {
                        links += 1;
                        let target = std::fs::read_link(part).unwrap_or_default();
                        // The kernel resolves `..` in it, here as there.
                        paths.push(part.parent().unwrap_or(Path::new("/")).join(target));
                    }
                    FileType::Symlink => self.incomplete = true,
                    _ => {}
                }
            }
        }
    }

    fn add(&mut self, stat: &Stat, path: &Path) {
        let group_bit = stat.st_mode & 0o020 != 0;
        let owner = Owner {
            uid: stat.st_uid,
            group: group_bit.then_some(stat.st_gid),
            everybody: stat.st_mode & 0o002 != 0,
            // With a list, the group's bits are the mask of what it gives.
            listed: group_bit && rustix::fs::lgetxattr(path, "system.posix_acl_access", &mut [0u8; 0][..]).is_ok_and(|size| size > 0),
        };
        self.owners.entry(owner).or_insert_with(|| path.to_owned());
    }
}

struct Walk<'a> {
    tree: &'a mut Tree,
    left: usize,
    device: u64,
    deadline: Instant,
}

impl Walk<'_> {
    fn below(&mut self, directory: OwnedFd, path: &Path, depth: usize) {
        let Ok(listing) = Dir::new(directory) else {
            self.tree.incomplete = true;
            return;
        };
        let mut children = Vec::new();
        for entry in listing {
            let Ok(entry) = entry else {
                self.tree.incomplete = true;
                break;
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            // Some file systems leave it to lstat(2) what a name is.
            let is_directory = match entry.file_type() {
                FileType::Unknown => is_directory(&path.join(name)),
                known => known == FileType::Directory,
            };
            if !is_directory || name == "." || name == ".." {
                continue;
            }
            if children.len() >= self.left {
                self.tree.incomplete = true;
                break;
            }
            children.push(path.join(name));
        }
        for child in children {
            self.look(&child, depth);
        }
    }

    fn look(&mut self, path: &Path, depth: usize) {
        if self.left == 0 || depth >= MAXIMUM_DEPTH || Instant::now() > self.deadline {
            self.tree.incomplete = true;
            return;
        }
        self.left -= 1;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(stat) = rustix::fs::lstat(path) else { return };
        self.tree.add(&stat, path);
        if stat.st_dev != self.device {
            self.tree.incomplete = true;
            return;
        }
        match openat(CWD, path, flags, Mode::empty()) {
            Ok(descriptor) => self.below(descriptor, path, depth + 1),
            Err(_) => self.tree.incomplete = true,
        }
    }
}

fn is_directory(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}
