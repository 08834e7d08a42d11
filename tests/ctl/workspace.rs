//! A temporary policy and `rootwrapctl` run on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Settings and a filters.d directory of their own.
pub struct Workspace {
    directory: tempfile::TempDir,
}

/// How a run of `rootwrapctl` ended.
#[derive(Debug)]
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Workspace {
    /// Without any filter.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("filters.d")).unwrap();
        let workspace = Self { directory };
        workspace.settings("");
        workspace
    }

    /// With one file of filters, `50-test.toml`.
    pub fn with(text: &str) -> Self {
        let workspace = Self::new();
        workspace.filters("50-test.toml", text);
        workspace
    }

    /// Writes a file of filters.
    pub fn filters(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path().join("filters.d").join(name);
        fs::write(&file, text).unwrap();
        file
    }

    /// Writes the settings, with `filter_dirs` before them.
    pub fn settings(&self, text: &str) {
        let directories = format!("filter_dirs = [\"{}\"]\n", self.path().join("filters.d").display());
        fs::write(self.config(), directories + text).unwrap();
    }

    pub fn config(&self) -> PathBuf {
        self.path().join("rootwrap.toml")
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// `rootwrapctl VERB --no-owner-check --config ...` with further arguments.
    pub fn ctl(&self, verb: &str, arguments: &[&str]) -> Run {
        let config = self.config();
        let all = [verb, "--no-owner-check", "--config", config.to_str().unwrap()]
            .into_iter()
            .chain(arguments.iter().copied());
        ctl(all)
    }
}

/// `rootwrapctl` with these arguments and without a service.
pub fn ctl<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_rootwrapctl"))
        .args(arguments)
        .env("ROOTWRAP_SOCKET", "/nonexistent/rootwrap.sock")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    Run {
        status: output.status.code().expect("not ended by a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Run {
    /// The exit status, with all output where it is another.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Standard output holds this.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "no {text:?} in:\n{}{}", self.stdout, self.stderr);
        self
    }
}
