//! `{ path_under = "/dir" }`: an absolute path strictly below a directory.
//!
//! The spelling is judged here: component by component, no `.`, `..`, `//` or trailing `/`. Where it leads (symlinks, whether it
//! exists) is a [`Question::PathUnder`].

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{Kind, Lean};
use crate::policy::facts::Question;

/// PATH_MAX with its NUL, NAME_MAX.
const PATH_MAX: usize = 4095;
const NAME_MAX: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct PathUnder {
    pub(super) base: PathBuf,
    pub(super) new: bool,
    pub(super) links_to: Box<[PathBuf]>,
}

/// What is wrong with a directory.
pub(super) fn check(directory: &Path) -> Result<(), String> {
    let bytes = directory.as_os_str().as_bytes();
    if bytes == b"/" || bytes.strip_prefix(b"/").is_some_and(is_normal) {
        return Ok(());
    }
    Err(format!(
        "`{}` is not an absolute path without `.`, `..` and `//`",
        directory.display()
    ))
}

fn is_normal(relative: &[u8]) -> bool {
    relative
        .split(|byte| *byte == b'/')
        .all(|name| !name.is_empty() && name != b"." && name != b".." && name.len() <= NAME_MAX && !name.contains(&0))
}

/// Whether the spelling stays strictly below the base.
fn is_below(path: &[u8], base: &Path) -> bool {
    let base = base.as_os_str().as_bytes();
    let base = base.strip_suffix(b"/").unwrap_or(base);
    path.len() <= PATH_MAX
        && path
            .strip_prefix(base)
            .and_then(|rest| rest.strip_prefix(b"/"))
            .is_some_and(is_normal)
}

impl Kind for PathUnder {
    fn accepts(&self, text: &[u8], _lead: bool, lean: &mut Lean<'_>) -> bool {
        is_below(text, &self.base)
            && lean.ask(Question::PathUnder {
                path: text.to_vec(),
                base: self.base.clone(),
                links_to: self.links_to.to_vec(),
                new: self.new,
            })
    }

    fn shape(&self) -> String {
        "(?:/(?s:.+))".to_owned()
    }

    fn expected(&self) -> String {
        let what = if self.new { "a path" } else { "an existing path" };
        let links: String = self.links_to.iter().map(|link| format!(" or {}", link.display())).collect();
        format!(
            "{what} strictly below {}, in its plain spelling, whose symlinks stay there{links}",
            self.base.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::policy::facts::Facts;
    use crate::policy::pattern::testing::{accepts, part, value};
    use crate::policy::spec::ElementKind;

    fn below(base: &str) -> crate::policy::spec::Element {
        value(ElementKind::PathUnder {
            base: PathBuf::from(base),
            new: false,
            links_to: vec![PathBuf::from("/dev/mapper")],
            caller_writable: false,
        })
    }

    #[test]
    fn paths_are_compared_by_component() {
        let path = below("/var/log/app");
        for yes in ["/var/log/app/x", "/var/log/app/x/y.log", "/var/log/app/...", "/var/log/app/ "] {
            assert!(accepts(&path, yes), "{yes}");
        }
        for no in [
            "",
            "/var/log/app",
            "/var/log/app/",
            "/var/log/app-evil/x",
            "/var/log/app//x",
            "/var/log/app/./x",
            "/var/log/app/../x",
            "/var/log/app/x/..",
            "/var/log/app/x/",
            "//var/log/app/x",
            "/var//log/app/x",
            "var/log/app/x",
            "/var/log/ap",
            "./x",
        ] {
            assert!(!accepts(&path, no), "{no:?}");
        }
    }

    #[test]
    fn the_root_is_a_base_as_well() {
        assert!(accepts(&below("/"), "/etc"));
        assert!(!accepts(&below("/"), "/"));
        assert!(!accepts(&below("/"), "//etc"));
    }

    #[test]
    fn lengths_are_those_of_the_kernel() {
        assert!(accepts(&below("/b"), &format!("/b/{}", "n".repeat(255))));
        assert!(!accepts(&below("/b"), &format!("/b/{}", "n".repeat(256))));
        assert!(!accepts(&below("/b"), &format!("/b{}", "/n".repeat(2500))));
    }

    #[test]
    fn where_it_leads_is_asked_only_when_the_spelling_fits() {
        let facts = Facts::new();
        let mut lean = Lean::new(&facts);
        let path = part(&below("/b"));
        assert!(!path.accepts(b"/c/x", true, &mut lean));
        assert!(lean.open.is_empty());
        assert!(path.accepts(b"/b/x", true, &mut lean));
        let question = Question::PathUnder {
            path: b"/b/x".to_vec(),
            base: PathBuf::from("/b"),
            links_to: vec![PathBuf::from("/dev/mapper")],
            new: false,
        };
        assert_eq!(lean.open, std::slice::from_ref(&question));

        let mut facts = Facts::new();
        facts.insert(question, false);
        let mut lean = Lean::new(&facts);
        assert!(!path.accepts(b"/b/x", true, &mut lean));
    }

    #[test]
    fn a_base_is_absolute_and_normal() {
        for bad in ["", "x", "/a/", "/a/../b", "//a", "/./a"] {
            assert!(check(Path::new(bad)).is_err(), "{bad}");
        }
        assert!(check(Path::new("/")).is_ok() && check(Path::new("/a/b")).is_ok());
    }
}
