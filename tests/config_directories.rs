//! Directories: masking, order, disabling, owners, symlinks, the hash.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod config_common;

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use config_common::{CALLERS, filter, load_from, names, root_directory, said, write};
use rootwrap::config::{Settings, Source, load};

/// vendor, run and etc below a directory of root's.
struct Tree {
    root: tempfile::TempDir,
    directories: Vec<PathBuf>,
}

fn tree() -> Tree {
    let root = root_directory();
    let directories: Vec<PathBuf> = ["vendor", "run", "etc"].iter().map(|name| root.path().join(name)).collect();
    for directory in &directories {
        std::fs::create_dir(directory).unwrap();
    }
    Tree { root, directories }
}

impl Tree {
    fn put(&self, place: &str, filters: &[&str]) -> PathBuf {
        let text: String = filters.iter().map(|name| filter(name, "")).collect();
        self.put_text(place, &(CALLERS.to_owned() + &text))
    }

    fn put_text(&self, place: &str, text: &str) -> PathBuf {
        let path = self.root.path().join(place);
        write(&path, text);
        path
    }

    fn names(&self) -> Vec<String> {
        names(&load_from(&self.directories, true).unwrap())
    }

    fn errors(&self) -> Vec<String> {
        let errors = load_from(&self.directories, true).unwrap_err();
        errors.iter().map(|d| format!("{} {}", d.code, d.message)).collect()
    }
}

#[test]
fn files_are_tried_in_the_order_of_their_names_wherever_they_lie() {
    let tree = tree();
    tree.put("etc/10-b.toml", &["b2", "b1"]);
    tree.put("vendor/20-c.toml", &["c"]);
    tree.put("run/05-a.toml", &["a"]);
    assert_eq!(tree.names(), ["a", "b2", "b1", "c"]);
}

#[test]
fn given_the_same_name_in_a_later_directory_then_it_masks_the_earlier_one() {
    let tree = tree();
    tree.put("vendor/10.toml", &["vendor"]);
    tree.put("run/10.toml", &["run"]);
    assert_eq!(tree.names(), ["run"]);
    tree.put("etc/10.toml", &["etc"]);
    assert_eq!(tree.names(), ["etc"]);
}

#[test]
fn given_a_link_to_dev_null_then_it_masks_and_a_still_later_file_counts_again() {
    let tree = tree();
    tree.put("vendor/10.toml", &["vendor"]);
    symlink("/dev/null", tree.root.path().join("run/10.toml")).unwrap();
    assert_eq!(tree.names(), Vec::<String>::new());
    tree.put("etc/10.toml", &["etc"]);
    assert_eq!(tree.names(), ["etc"]);
}

#[test]
fn other_names_are_skipped_with_a_warning() {
    let tree = tree();
    for name in ["a.toml~", "a.toml.dpkg-old", "a.toml.rpmnew", ".a.toml", "a.conf", "README"] {
        tree.put_text(&format!("etc/{name}"), "this is no TOML");
    }
    let loaded = load_from(&tree.directories, true).unwrap();
    assert_eq!(loaded.warnings.len(), 6);
    assert!(loaded.warnings.iter().all(|warning| warning.code == "skipped-file"));
}

#[test]
fn missing_directories_are_fine() {
    let tree = tree();
    let mut directories = tree.directories.clone();
    directories.push(tree.root.path().join("none/at/all"));
    assert!(load_from(&directories, true).unwrap().policy.is_empty());
}

#[test]
fn a_later_file_switches_a_filter_off_and_may_give_another_of_that_name() {
    let tree = tree();
    tree.put("vendor/10.toml", &["a", "b"]);
    tree.put_text("etc/20.toml", "[[disable]]\nfilter = \"a\"\n");
    assert_eq!(tree.names(), ["b"]);
    tree.put("etc/30.toml", &["a"]);
    assert_eq!(tree.names(), ["b", "a"]);
}

#[test]
fn an_earlier_or_the_same_file_switches_nothing_off() {
    let tree = tree();
    tree.put("vendor/10.toml", &["a"]);
    tree.put_text("etc/05.toml", "[[disable]]\nfilter = \"a\"\n");
    assert_eq!(tree.errors(), ["unknown-filter no earlier file has a filter `a`"]);
}

#[test]
fn a_name_in_two_files_is_an_error_that_names_both_places() {
    let tree = tree();
    let first = tree.put("vendor/10.toml", &["a"]);
    tree.put("etc/20.toml", &["a"]);
    assert_eq!(
        tree.errors(),
        [format!(
            "duplicate-filter there are two filters `a`: the first is at {}:4",
            first.display()
        )]
    );
}

#[test]
fn a_disabled_inner_filter_leaves_the_outer_one_without_it() {
    let tree = tree();
    let outer = "[[filter]]\nname = \"outer\"\ncommand = \"/usr/bin/env\"\nargs = [{ command = [\"a\", \"b\"] }]\ncapabilities = []\n";
    tree.put_text("vendor/10.toml", &format!("{CALLERS}{}{}{outer}", filter("a", ""), filter("b", "")));
    tree.put_text("etc/20.toml", "[[disable]]\nfilter = \"a\"\n");
    assert_eq!(tree.names(), ["b", "outer"]);
    tree.put_text("etc/30.toml", "[[disable]]\nfilter = \"b\"\n");
    assert_eq!(tree.names(), Vec::<String>::new());
}

#[test]
fn one_broken_file_makes_the_whole_policy_void() {
    let tree = tree();
    tree.put("etc/10.toml", &["a"]);
    tree.put_text("etc/20.toml", "not = ");
    tree.put_text("etc/30.toml", "[callers]\nusrs = [1]\n");
    let codes: Vec<String> = tree.errors().iter().map(|e| e.split_once(' ').unwrap().0.to_owned()).collect();
    assert_eq!(codes, ["syntax", "unknown-key"]);
}

#[test]
fn owners_and_modes_of_files_and_directories_are_checked() {
    let tree = tree();
    let file = tree.put("etc/10.toml", &["a"]);
    let etc = tree.root.path().join("etc");
    let change = |path: &Path, uid: u32, mode: u32| {
        chown(path, Some(uid), None).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, uid, mode, why) in [
        (&file, 1500, 0o644, "owned by uid 1500, not by root"),
        (&file, 0, 0o664, "writable by its group (gid 0)"),
        (&file, 0, 0o646, "writable by everybody"),
        (&etc, 1500, 0o755, "owned by uid 1500, not by root"),
        (&etc, 0, 0o775, "writable by its group (gid 0)"),
        (&etc, 0, 0o1777, "writable by everybody"),
    ] {
        change(path, uid, mode);
        let errors = load_from(&tree.directories, true).unwrap_err();
        assert_eq!(
            (errors[0].code, errors[0].message.as_str(), &errors[0].file),
            ("unsafe-owner", why, path)
        );
        assert_eq!(names(&load_from(&tree.directories, false).unwrap()), ["a"]);
        change(path, 0, if path == &file { 0o644 } else { 0o755 });
    }
    assert_eq!(tree.names(), ["a"]);
}

#[test]
fn links_are_followed_through_what_is_roots_only() {
    let tree = tree();
    let elsewhere = tree.root.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    tree.put("elsewhere/real.toml", &["linked"]);
    symlink("../elsewhere/real.toml", tree.root.path().join("etc/10.toml")).unwrap();
    assert_eq!(tree.names(), ["linked"]);
    chown(&elsewhere, Some(1500), None).unwrap();
    let leads = format!(
        "unsafe-owner a symlink leads to {}, which is owned by uid 1500, not by root",
        elsewhere.display()
    );
    assert_eq!(tree.errors(), [leads]);
    std::fs::remove_file(tree.root.path().join("etc/10.toml")).unwrap();
    symlink("/nowhere/x.toml", tree.root.path().join("etc/10.toml")).unwrap();
    assert_eq!(tree.errors(), ["unreadable /nowhere is not there"]);
}

#[test]
fn what_is_no_file_is_an_error_and_never_waited_for() {
    let tree = tree();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        tree.root.path().join("etc/10.toml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    std::fs::create_dir(tree.root.path().join("etc/20.toml")).unwrap();
    assert_eq!(tree.errors(), vec!["unreadable cannot be read: not a regular file"; 2]);
}

#[test]
fn the_hash_changes_with_the_directories_that_commands_are_looked_up_in() {
    let tree = tree();
    tree.put("etc/10.toml", &["a"]);
    let source = Source {
        directories: tree.directories.clone(),
        files: Vec::new(),
        check_owners: true,
    };
    let hash = |directories: &[&str]| {
        let settings = Settings {
            exec_dirs: directories.iter().map(PathBuf::from).collect(),
            ..Settings::default()
        };
        *load(&source, &settings).unwrap().policy.hash()
    };
    assert_eq!(hash(&["/usr/bin", "/bin"]), hash(&["/usr/bin", "/bin"]));
    for other in [&["/bin", "/usr/bin"][..], &["/usr/bin"], &["/usr/bin/bin"]] {
        assert_ne!(hash(&["/usr/bin", "/bin"]), hash(other));
    }
}

#[test]
fn the_hash_changes_with_names_and_contents_and_with_nothing_else() {
    let tree = tree();
    let hash = || *load_from(&tree.directories, true).unwrap().policy.hash();
    let empty = hash();
    let path = tree.put("etc/10.toml", &["a"]);
    let first = hash();
    assert_ne!(empty, first);
    assert_eq!(first, hash());
    std::fs::rename(&path, tree.root.path().join("etc/11.toml")).unwrap();
    assert_ne!(first, hash());
    std::fs::rename(tree.root.path().join("etc/11.toml"), &path).unwrap();
    assert_eq!(first, hash());
    tree.put_text("etc/10.toml", &(std::fs::read_to_string(&path).unwrap() + "#"));
    assert_ne!(first, hash());
}

#[test]
fn an_unsafe_executable_is_an_error_and_a_missing_one_a_warning() {
    let tree = tree();
    let program = tree.put_text("tool", "#!/bin/sh\n");
    let text = format!(
        "{CALLERS}[[filter]]\nname = \"a\"\ncommand = \"{}\"\nargs = []\ncapabilities = []\n",
        program.display()
    );
    tree.put_text("etc/10.toml", &text);
    assert_eq!(said(&load_from(&tree.directories, true)), ["5:11 not-executable"]);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o757)).unwrap();
    assert_eq!(said(&load_from(&tree.directories, true)), ["5:11 unsafe-executable"]);
    assert!(load_from(&tree.directories, false).is_ok());
    std::fs::remove_file(&program).unwrap();
    let loaded = load_from(&tree.directories, true);
    assert!(loaded.is_ok());
    assert_eq!(said(&loaded), ["5:11 missing-executable"]);
}

#[test]
fn bare_names_are_looked_up_in_exec_dirs_in_order() {
    let tree = tree();
    let settings = Settings {
        exec_dirs: vec!["/usr/sbin".into(), "/usr/bin".into()],
        ..Settings::default()
    };
    tree.put_text(
        "etc/10.toml",
        &format!("{CALLERS}[[filter]]\nname = \"a\"\ncommand = [\"env\", \"/opt/env\"]\nargs = []\ncapabilities = []\n"),
    );
    let source = Source {
        directories: tree.directories.clone(),
        files: Vec::new(),
        check_owners: true,
    };
    let loaded = load(&source, &settings).unwrap();
    let filter = loaded.policy.filters().next().unwrap();
    assert_eq!(
        filter.command.candidates,
        ["/usr/sbin/env", "/usr/bin/env", "/opt/env"].map(PathBuf::from)
    );
    assert_eq!(filter.command.spelled, ["env", "/opt/env"]);
}

/// A filter with a `path_under` for this caller; gives what is said of it.
fn path_under(tree: &Tree, callers: &str, element: &str) -> Vec<String> {
    tree.put_text(
        "etc/10.toml",
        &format!(
            "[callers]\n{callers}\n[[filter]]\nname = \"a\"\ncommand = \"/usr/bin/env\"\nargs = [{{ {element} }}]\ncapabilities = []\n"
        ),
    );
    let said = said(&load_from(&tree.directories, true));
    said.iter()
        .map(|line| line.split_once(' ').unwrap().1.to_owned())
        .filter(|code| code != "any-caller")
        .collect()
}

#[test]
fn a_base_below_which_a_caller_can_write_is_refused() {
    let tree = tree();
    let base = tree.root.path().join("base");
    let inner = base.join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    let element = format!("path_under = \"{}\"", base.display());
    let said = |callers: &str| path_under(&tree, callers, &element);
    for callers in ["users = [1500]", "groups = [1600]", "users = [\"any\"]", "units = [\"a.service\"]"] {
        assert_eq!(said(callers), Vec::<String>::new(), "{callers}");
    }
    chown(&inner, Some(1500), Some(0)).unwrap();
    for callers in [
        "users = [1500]",
        "users = [7, 1500]",
        "groups = [1600]",
        "users = [\"any\"]",
        "units = [\"a.service\"]",
    ] {
        assert_eq!(said(callers), ["caller-can-write"], "{callers}");
    }
    for callers in ["users = [1501]", "users = [0]", "users = [\"no-such-user-here\"]"] {
        assert!(!said(callers).contains(&"caller-can-write".to_owned()), "{callers}");
    }
    let accepted = format!("{element}, caller_writable = true");
    assert_eq!(path_under(&tree, "users = [1500]", &accepted), ["caller-writable"]);
    let deep = format!("optional = {{ concat = [{{ {element} }}] }}");
    assert!(path_under(&tree, "users = [1500]", &deep).contains(&"caller-can-write".to_owned()));
}

#[test]
fn a_place_that_links_lead_to_is_refused_where_a_caller_can_write_to_it() {
    let tree = tree();
    let root = tree.root.path();
    for directory in ["base", "linked/theirs"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    chown(root.join("linked/theirs"), Some(1500), None).unwrap();
    let said = |links_to: &str, more: &str| {
        let (base, links_to) = (root.join("base"), root.join(links_to));
        let element = format!("path_under = \"{}\", links_to = [\"{}\"]{more}", base.display(), links_to.display());
        path_under(&tree, "users = [1500]", &element)
    };
    assert_eq!(said("linked", ""), Vec::<String>::new());
    assert_eq!(said("linked/theirs", ""), ["caller-can-write"]);
    assert_eq!(said("linked/theirs", ", caller_writable = true"), ["caller-writable"]);
}

#[test]
fn given_a_base_behind_links_then_every_directory_on_the_way_counts() {
    let tree = tree();
    let root = tree.root.path();
    for directory in ["theirs", "real"] {
        std::fs::create_dir(root.join(directory)).unwrap();
    }
    chown(root.join("theirs"), Some(1500), None).unwrap();
    symlink("../real", root.join("theirs/middle")).unwrap();
    symlink("theirs/middle", root.join("base")).unwrap();
    symlink("real", root.join("fine")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let said = |base: &str| path_under(&tree, "users = [1500]", &format!("path_under = \"{}\"", root.join(base).display()));
    assert_eq!(said("base"), ["caller-can-write"]);
    assert_eq!(said("fine"), Vec::<String>::new());
    assert_eq!(said("loop"), ["unverified-tree"]);
}

#[test]
fn a_base_that_a_caller_could_make_or_replace_is_refused() {
    let tree = tree();
    let above = tree.root.path().join("above");
    std::fs::create_dir(&above).unwrap();
    chown(&above, Some(1500), None).unwrap();
    let missing = format!("path_under = \"{}/base\"", above.display());
    assert_eq!(path_under(&tree, "users = [1500]", &missing), ["caller-can-write"]);
    symlink(&above, tree.root.path().join("link")).unwrap();
    let linked = format!("path_under = \"{}/link\"", tree.root.path().display());
    assert_eq!(path_under(&tree, "users = [1500]", &linked), ["caller-can-write"]);
    assert_eq!(path_under(&tree, "users = [1500]", "path_under = \"/tmp\""), ["caller-can-write"]);
    assert_eq!(
        path_under(&tree, "users = [1500]", "path_under = \"/usr/share/doc\""),
        Vec::<String>::new()
    );
}
