//! The service's own settings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod config_common;

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::time::Duration;

use config_common::{root_directory, write};
use rootwrap::config::settings::Audit;
use rootwrap::config::{Diagnostic, Settings};

fn load(text: &str) -> Result<Settings, Vec<Diagnostic>> {
    let directory = root_directory();
    let main = directory.path().join("rootwrap.toml");
    write(&main, text);
    Settings::load(&main, true)
}

#[test]
fn without_files_the_defaults_hold() {
    let directory = root_directory();
    let settings = Settings::load(&directory.path().join("rootwrap.toml"), true).unwrap();
    assert_eq!(settings.filter_dirs, Settings::default().filter_dirs);
    assert_eq!(settings.max_commands, Settings::default().max_commands);
}

#[test]
fn every_setting_arrives() {
    let settings = load(
        "filter_dirs = [\"/etc/x\"]\nexec_dirs = [\"/usr/bin\"]\naudit = \"best-effort\"\naudit_timeout = \"200ms\"\nmessage_size = 8192\n\
         capture_size = 1024\nrequest_timeout = 3\nmax_connections = 10\nmax_connections_per_uid = 5\nmax_commands = 8\n\
         max_commands_per_uid = 2\ndrain_timeout = \"1min\"\nidle_timeout = 0\nparked_children = 1\ndenials_per_second = 7\n",
    )
    .unwrap();
    assert_eq!(
        (settings.filter_dirs, settings.exec_dirs),
        (vec![PathBuf::from("/etc/x")], vec![PathBuf::from("/usr/bin")])
    );
    assert_eq!(
        (settings.audit, settings.audit_timeout),
        (Audit::BestEffort, Duration::from_millis(200))
    );
    assert_eq!((settings.message_size, settings.capture_size), (8192, 1024));
    assert_eq!(
        (settings.request_timeout, settings.drain_timeout),
        (Duration::from_secs(3), Duration::from_secs(60))
    );
    assert_eq!((settings.max_connections, settings.max_connections_per_uid), (10, 5));
    assert_eq!((settings.max_commands, settings.max_commands_per_uid), (8, 2));
    assert_eq!(
        (settings.idle_timeout, settings.parked_children, settings.denials_per_second),
        (Duration::ZERO, 1, 7)
    );
}

#[test]
fn everything_wrong_is_told_at_once() {
    let errors = load(
        "adit = \"required\"\naudit = \"maybe\"\nmessage_size = 10\nmax_commands = 0\nrequest_timeout = \"1 fortnight\"\n\
         exec_dirs = [\"bin\"]\nfilter_dirs = []\n",
    )
    .unwrap_err();
    let said: Vec<_> = errors.iter().map(|d| (d.line, d.code)).collect();
    assert_eq!(
        said,
        [
            (1, "unknown-key"),
            (2, "unknown-value"),
            (3, "out-of-range"),
            (4, "out-of-range"),
            (5, "bad-time"),
            (6, "relative-path"),
            (7, "empty-list")
        ]
    );
    assert_eq!(errors[0].hint.as_deref(), Some("did you mean `audit`?"));
}

#[test]
fn drop_ins_replace_earlier_keys_in_the_order_of_their_names() {
    let directory = root_directory();
    let main = directory.path().join("rootwrap.toml");
    let drop_ins = directory.path().join("rootwrap.toml.d");
    std::fs::create_dir(&drop_ins).unwrap();
    write(&main, "max_commands = 1\nparked_children = 1\n");
    write(&drop_ins.join("20.toml"), "max_commands = 3\n");
    write(&drop_ins.join("10.toml"), "max_commands = 2\n");
    let settings = Settings::load(&main, true).unwrap();
    assert_eq!((settings.max_commands, settings.parked_children), (3, 1));
}

#[test]
fn directories_of_programs_must_be_roots() {
    let directory = root_directory();
    let theirs = directory.path().join("bin");
    std::fs::create_dir(&theirs).unwrap();
    let text = format!("exec_dirs = [\"/usr/bin\", \"{}\"]\n", theirs.display());
    assert!(load(&text).is_ok());
    chown(&theirs, Some(1500), None).unwrap();
    assert_eq!(load(&text).unwrap_err()[0].code, "unsafe-owner");
    chown(&theirs, Some(0), None).unwrap();
    std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(load(&text).unwrap_err()[0].code, "unsafe-owner");
    assert_eq!(load("exec_dirs = [\"/etc/passwd\"]\n").unwrap_err()[0].code, "not-a-directory");
}

#[test]
fn the_file_itself_must_be_roots() {
    let directory = root_directory();
    let main = directory.path().join("rootwrap.toml");
    write(&main, "");
    std::fs::set_permissions(&main, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(Settings::load(&main, true).unwrap_err()[0].code, "unsafe-owner");
    assert!(Settings::load(&main, false).is_ok());
}
