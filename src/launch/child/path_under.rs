//! Where does a path lead? Walked component by component, symlinks followed by hand.
//!
//! The answer is yes where the path ends strictly below its base, or, behind a symlink, below one of `links_to`. Every symlink on
//! the way must itself lie in one of these places and lead into one of them: a path that leaves and comes back passes through
//! somebody else's directory. The base and the places are the administrator's and may lie behind any symlinks.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode, OFlags, PROC_SUPER_MAGIC};
use rustix::io::Errno;

use crate::launch::ProbeAnswer;

/// Symlinks in one walk, as in path_resolution(7).
const MAX_LINKS: u32 = 40;

/// See [`Question::PathUnder`](crate::policy::facts::Question::PathUnder).
pub(super) fn check(path: &[u8], base: &[u8], links_to: &[Vec<u8>], new: bool) -> io::Result<ProbeAnswer> {
    let no = |why: &str| Ok(ProbeAnswer::No(why.to_owned()));
    let Some(below) = components_below(path, base) else {
        return no("the path is not below its base");
    };
    let Some(start) = Place::of(base)? else {
        return no("the base does not exist");
    };
    let mut allowed = vec![start.names()];
    for directory in links_to {
        // A place that is not there (no device mapper, for instance) admits nothing.
        allowed.extend(Place::of(directory)?.map(|place| place.names()));
    }
    let mut walk = Walk {
        place: start,
        allowed: Some(allowed),
        may_be_missing: new,
        links: 0,
    };
    match walk.follow(&below, true) {
        Ok(()) if walk.is_inside() => Ok(ProbeAnswer::Yes),
        Ok(()) => no("the path leads out of its base"),
        Err(Stop::No(why)) => no(why),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// The components of `path` after those of `base`; `None` where it is not below, or holds `.`, `..` or empty components.
fn components_below<'a>(path: &'a [u8], base: &[u8]) -> Option<Vec<&'a OsStr>> {
    let base = if base == b"/" { b"" } else { base };
    let rest = path.strip_prefix(base)?.strip_prefix(b"/")?;
    let components: Vec<_> = rest.split(|byte| *byte == b'/').map(OsStr::from_bytes).collect();
    let plain = |name: &&OsStr| !matches!(name.as_bytes(), b"" | b"." | b"..") && !name.as_bytes().contains(&0);
    components.iter().all(plain).then_some(components)
}

/// Why a walk ended early.
enum Stop {
    No(&'static str),
    Failed(io::Error),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::No("the path does not exist"),
            Errno::NOTDIR => Self::No("a component of the path is not a directory"),
            Errno::NAMETOOLONG => Self::No("the path is too long"),
            other => Self::Failed(other.into()),
        }
    }
}

/// Where a walk stands: the physical directories from the root, each open, and at the end perhaps a file or something missing.
struct Place {
    root: OwnedFd,
    steps: Vec<(OsString, Option<OwnedFd>)>,
}

impl Place {
    fn root() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: rustix::fs::open("/", flags, Mode::empty())?,
            steps: Vec::new(),
        })
    }

    /// Where an administrator's path leads, through any symlinks; `None` where it does not exist.
    fn of(path: &[u8]) -> io::Result<Option<Self>> {
        let mut walk = Walk {
            place: Self::root()?,
            allowed: None,
            may_be_missing: false,
            links: 0,
        };
        let components: Vec<_> = split(path).collect();
        match walk.follow(&components, false) {
            Ok(()) => Ok(Some(walk.place)),
            Err(Stop::No(_)) => Ok(None),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn names(&self) -> Vec<OsString> {
        self.steps.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The directory at the end; ENOTDIR or ENOENT where nothing can be below.
    fn directory(&self) -> Result<&OwnedFd, Errno> {
        match self.steps.last() {
            None => Ok(&self.root),
            Some((_, Some(directory))) => Ok(directory),
            Some((_, None)) => Err(Errno::NOENT),
        }
    }
}

/// A walk and its rules.
struct Walk {
    place: Place,
    /// Where symlinks may lie and lead to, as physical components; `None`: anywhere.
    allowed: Option<Vec<Vec<OsString>>>,
    /// The last component need not exist.
    may_be_missing: bool,
    links: u32,
}

impl Walk {
    /// Follows the components from here; `last`: nothing of the path comes after them.
    fn follow(&mut self, components: &[&OsStr], last: bool) -> Result<(), Stop> {
        for (index, name) in components.iter().enumerate() {
            let last = last && index + 1 == components.len();
            match name.as_bytes() {
                b"." => {}
                b".." => drop(self.place.steps.pop()),
                _ => self.enter(name, last)?,
            }
        }
        Ok(())
    }

    fn enter(&mut self, name: &OsStr, last: bool) -> Result<(), Stop> {
        let directory = self.place.directory()?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if last && self.may_be_missing => None,
            other => Some(other?),
        };
        if let Some(file) = &opened {
            if FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode) == FileType::Symlink {
                return self.follow_link(file, last);
            }
        }
        self.place.steps.push((name.to_owned(), opened));
        Ok(())
    }

    fn follow_link(&mut self, link: &OwnedFd, last: bool) -> Result<(), Stop> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Stop::No("the path has too many symlinks"));
        }
        if !self.is_in_allowed_directory() {
            return Err(Stop::No("a symlink on the path lies outside its base"));
        }
        if self.allowed.is_some() && rustix::fs::fstatfs(link)?.f_type == PROC_SUPER_MAGIC {
            return Err(Stop::No("where a symlink of proc(5) leads is more than its text says"));
        }
        let target = rustix::fs::readlinkat(link, c"", Vec::new())?.into_bytes();
        if target.starts_with(b"/") {
            self.place = Place::root().map_err(Stop::Failed)?;
        }
        let components: Vec<_> = split(&target).collect();
        self.follow(&components, last)?;
        if self.is_in_allowed_directory() {
            Ok(())
        } else {
            Err(Stop::No("a symlink leads out of the base"))
        }
    }

    /// Strictly below an allowed place.
    fn is_inside(&self) -> bool {
        self.is_below(1)
    }

    /// In an allowed place itself or below it.
    fn is_in_allowed_directory(&self) -> bool {
        self.is_below(0)
    }

    fn is_below(&self, levels: usize) -> bool {
        let here = self.place.names();
        let is_here = |place: &Vec<OsString>| here.len() >= place.len() + levels && here.starts_with(place);
        self.allowed.as_ref().is_none_or(|places| places.iter().any(is_here))
    }
}

/// The components of a path as the kernel sees them: empty ones are nothing.
fn split(path: &[u8]) -> impl Iterator<Item = &OsStr> {
    path.split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
        .map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    /// base/ (file, dir/file, links), other/ (file), beside a sibling whose name begins like base's.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for directory in ["base/dir", "other", "base-evil"] {
                fs::create_dir_all(tree.at(directory)).unwrap();
            }
            for file in ["base/file", "base/dir/file", "other/file", "base-evil/file"] {
                fs::write(tree.at(file), "").unwrap();
            }
            tree
        }
        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }
        fn link(&self, at: &str, target: impl AsRef<Path>) {
            symlink(target, self.at(at)).unwrap();
        }
        fn check(&self, path: &str, links_to: &[&str], new: bool) -> bool {
            let bytes = |path: &str| self.at(path).into_os_string().into_encoded_bytes();
            let links_to: Vec<_> = links_to.iter().map(|path| bytes(path)).collect();
            check(&bytes(path), &bytes("base"), &links_to, new).unwrap() == ProbeAnswer::Yes
        }
        fn allowed(&self, path: &str) -> bool {
            self.check(path, &[], false)
        }
    }

    #[test]
    fn plain_paths_below_the_base_are_allowed_and_no_others() {
        let tree = Tree::new();
        assert!(tree.allowed("base/file") && tree.allowed("base/dir") && tree.allowed("base/dir/file"));
        for path in [
            "base",
            "base/",
            "base-evil/file",
            "other/file",
            "base/missing",
            "base/file/below",
            "base/../other/file",
            "base/./file",
            "base//file",
            "base/dir/",
            "base/dir/../file",
        ] {
            assert!(!tree.allowed(path), "{path}");
        }
    }

    #[test]
    fn only_the_last_component_may_be_new() {
        let tree = Tree::new();
        assert!(tree.check("base/dir/new", &[], true) && tree.check("base/file", &[], true));
        assert!(!tree.check("base/missing/new", &[], true));
        assert!(!tree.check("base/file/new", &[], true));
    }

    #[test]
    fn symlinks_that_stay_below_the_base_are_followed() {
        let tree = Tree::new();
        tree.link("base/relative", "dir/file");
        tree.link("base/dir/up", "../file");
        tree.link("base/absolute", tree.at("base/dir"));
        tree.link("base/chain", "absolute/up");
        for path in ["base/relative", "base/dir/up", "base/absolute/file", "base/chain"] {
            assert!(tree.allowed(path), "{path}");
        }
    }

    #[test]
    fn symlinks_that_leave_the_base_are_refused_however_they_do_it() {
        let tree = Tree::new();
        tree.link("base/out", tree.at("other/file"));
        tree.link("base/up", "../other/file");
        tree.link("base/sibling", tree.at("base-evil/file"));
        tree.link("base/self", ".");
        tree.link("base/outdir", tree.at("other"));
        // Out, through somebody else's link, and back in: whoever owns that link decides where it leads next.
        tree.link("other/back", tree.at("base/file"));
        tree.link("base/around", tree.at("other/back"));
        tree.link("base/around-dir", tree.at("other/home"));
        tree.link("other/home", tree.at("base/dir"));
        tree.link("base/loop", "loop");
        for path in [
            "base/out",
            "base/up",
            "base/sibling",
            "base/self",
            "base/outdir/file",
            "base/around",
            "base/around-dir/file",
            "base/loop",
        ] {
            assert!(!tree.allowed(path) && !tree.check(path, &[], true), "{path}");
        }
    }

    #[test]
    fn links_to_admits_what_links_lead_to_and_nothing_else() {
        let tree = Tree::new();
        tree.link("base/volume", "../other/file");
        tree.link("base/all", "../other");
        tree.link("base/evil", "../base-evil/file");
        assert!(tree.check("base/volume", &["other"], false));
        assert!(tree.check("base/all/file", &["other"], false));
        assert!(!tree.check("base/all", &["other"], false), "the place itself");
        assert!(!tree.check("base/evil", &["other"], false));
        assert!(!tree.check("base/volume", &["missing"], false));
        assert!(!tree.check("other/file", &["other"], false), "not through a link");
    }

    #[test]
    fn a_dangling_link_is_new_only_where_it_leads_inside() {
        let tree = Tree::new();
        tree.link("base/in", "dir/later");
        tree.link("base/out", "../other/later");
        assert!(tree.check("base/in", &[], true) && !tree.allowed("base/in"));
        assert!(!tree.check("base/out", &[], true));
    }

    #[test]
    fn a_base_behind_a_symlink_is_the_administrators_choice() {
        let tree = Tree::new();
        tree.link("alias", "base");
        let bytes = |path: &str| tree.at(path).into_os_string().into_encoded_bytes();
        assert_eq!(check(&bytes("alias/file"), &bytes("alias"), &[], false).unwrap(), ProbeAnswer::Yes);
        assert_ne!(
            check(&bytes("alias-evil/file"), &bytes("alias"), &[], false).unwrap(),
            ProbeAnswer::Yes
        );
    }

    #[test]
    fn below_the_root_means_everywhere() {
        assert_eq!(check(b"/etc/passwd", b"/", &[], false).unwrap(), ProbeAnswer::Yes);
        assert_ne!(check(b"/", b"/", &[], false).unwrap(), ProbeAnswer::Yes);
    }

    #[test]
    fn links_of_proc_are_not_taken_by_their_text() {
        let pid = std::process::id();
        let proc = |path: &str| format!("/proc/{pid}/{path}").into_bytes();
        // What a process can make this text say (its working directory, a file of its own) is not where the link leads.
        for link in ["cwd", "root/proc/version", "exe", "fd/0"] {
            assert_ne!(
                check(&proc(link), b"/proc", &[b"/".to_vec()], false).unwrap(),
                ProbeAnswer::Yes,
                "{link}"
            );
            assert_ne!(check(&proc(link), b"/", &[], true).unwrap(), ProbeAnswer::Yes, "{link}");
        }
        assert_eq!(check(&proc("status"), b"/proc", &[], false).unwrap(), ProbeAnswer::Yes);
        assert_eq!(check(b"/proc/self/status", b"/proc/self", &[], false).unwrap(), ProbeAnswer::Yes);
    }
}
