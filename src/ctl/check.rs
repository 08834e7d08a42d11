//! `rootwrapctl check`: settings, filters and their tests; everything that is wrong, in one run.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use super::command_line::CommandLine;
use super::lint::lint;
use super::terminal::{Paint, Style};
use super::{Answer, json};
use crate::cli::rootwrapctl::Check;
use crate::config::{self, Diagnostic, Loaded, Settings, Severity, Source};
use crate::policy::counted;

/// What was found. Its JSON form is documented in `docs/json.md` and only ever gains members.
#[derive(Debug, Serialize)]
struct Findings {
    /// No error, and every test passed.
    ok: bool,
    /// SHA-256 of the policy in hexadecimal; absent when it is void.
    policy: Option<String>,
    /// How many filters it has.
    filters: Option<usize>,
    /// Errors and warnings in the order of files and lines.
    diagnostics: Vec<Diagnostic>,
    /// The `[[test]]`s; empty when the policy is void.
    tests: Vec<Tested>,
}

/// One `[[test]]`.
#[derive(Debug, Serialize)]
struct Tested {
    /// `file:line`.
    source: String,
    /// The command.
    argv: Vec<String>,
    /// Whether it came out as it says.
    passed: bool,
    /// What came out instead.
    failure: Option<String>,
}

/// Checks files, or the whole policy.
///
/// # Errors
/// Trouble: a named file that cannot be read.
pub fn run(options: &Check, as_json: bool, style: Style) -> anyhow::Result<Answer> {
    for file in &options.files {
        std::fs::File::open(file).with_context(|| file.display().to_string())?;
    }
    let findings = examine(options);
    let text = if as_json { json(&findings)? } else { findings.text(style) };
    Ok(Answer::new(text, u8::from(!findings.ok)))
}

fn examine(options: &Check) -> Findings {
    let check_owners = !options.reading.no_owner_check;
    let (settings_files, files): (Vec<PathBuf>, Vec<PathBuf>) = options.files.iter().cloned().partition(|file| is_settings(file));
    let mut diagnostics = Vec::new();
    for file in &settings_files {
        load_settings(file, check_owners, &mut diagnostics);
    }
    let settings = load_settings(&options.reading.config, check_owners, &mut diagnostics);
    if files.is_empty() && !settings_files.is_empty() {
        return Findings::new(diagnostics, None);
    }
    let source = Source {
        directories: if files.is_empty() {
            settings.filter_dirs.clone()
        } else {
            Vec::new()
        },
        files,
        check_owners,
    };
    match config::load(&source, &settings) {
        Ok(loaded) => {
            let mut warnings = loaded.warnings.clone();
            warnings.extend(lint(&loaded.policy));
            warnings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
            diagnostics.extend(warnings);
            Findings::new(diagnostics, Some(&loaded))
        }
        Err(errors) => {
            diagnostics.extend(errors);
            Findings::new(diagnostics, None)
        }
    }
}

/// Settings; where they have errors, those that the service would have without any, so that the filters are checked too.
fn load_settings(file: &Path, check_owners: bool, diagnostics: &mut Vec<Diagnostic>) -> Settings {
    match Settings::load_with_warnings(file, check_owners) {
        Ok((settings, warnings)) => {
            diagnostics.extend(warnings);
            settings
        }
        Err(errors) => {
            diagnostics.extend(errors);
            Settings::default()
        }
    }
}

/// `rootwrap.toml`, or a file of `rootwrap.toml.d`.
fn is_settings(file: &Path) -> bool {
    let directory = file.parent().and_then(Path::file_name);
    file.file_name().is_some_and(|name| name == "rootwrap.toml") || directory.is_some_and(|name| name == "rootwrap.toml.d")
}

impl Findings {
    fn new(all: Vec<Diagnostic>, loaded: Option<&Loaded>) -> Self {
        // A directory above both settings and filters is complained of for each.
        let mut diagnostics: Vec<Diagnostic> = Vec::with_capacity(all.len());
        for diagnostic in all {
            if !diagnostics.contains(&diagnostic) {
                diagnostics.push(diagnostic);
            }
        }
        let tests: Vec<Tested> = loaded.map(tested).unwrap_or_default();
        let errors = count(&diagnostics, Severity::Error);
        Self {
            ok: errors == 0 && tests.iter().all(|test| test.passed),
            policy: loaded.map(|loaded| hexadecimal(loaded.policy.hash())),
            filters: loaded.map(|loaded| loaded.policy.len()),
            diagnostics,
            tests,
        }
    }

    /// For people: what is wrong, tests that failed, and a line that sums it up.
    fn text(&self, style: Style) -> String {
        let mut text = listing(&self.diagnostics, style);
        for test in self.tests.iter().filter(|test| !test.passed) {
            text.push_str(&test.text(style));
        }
        let failed = self.tests.iter().filter(|test| !test.passed).count();
        let filters = self.filters.map(|filters| counted(filters, "filter") + ", ").unwrap_or_default();
        let verdict = if self.ok {
            style.paint(Paint::Good, "ok")
        } else {
            style.paint(Paint::Bad, "not ok")
        };
        text + &format!(
            "{verdict}: {filters}{}, {}; {}, {failed} failed\n",
            counted(count(&self.diagnostics, Severity::Error), "error"),
            counted(count(&self.diagnostics, Severity::Warning), "warning"),
            counted(self.tests.len(), "test"),
        )
    }
}

impl Tested {
    fn text(&self, style: Style) -> String {
        let argv: Vec<Vec<u8>> = self.argv.iter().map(|argument| argument.clone().into_bytes()).collect();
        format!(
            "{}: {}: {}\n    {}\n\n",
            self.source,
            style.paint(Paint::Bad, "test failed"),
            self.failure.as_deref().unwrap_or_default(),
            CommandLine::new(&argv).text(),
        )
    }
}

/// Runs the `[[test]]`s.
fn tested(loaded: &Loaded) -> Vec<Tested> {
    let in_words = |argument: &Vec<u8>| String::from_utf8_lossy(argument).into_owned();
    let results = config::run_tests(loaded).into_iter();
    results
        .map(|result| Tested {
            passed: result.passed(),
            argv: result.argv.iter().map(in_words).collect(),
            source: result.source,
            failure: result.failure,
        })
        .collect()
}

/// Diagnostics with a blank line after each; the severity in its colour.
pub fn listing(diagnostics: &[Diagnostic], style: Style) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let (word, paint) = match diagnostic.severity {
            Severity::Error => ("error", Paint::Bad),
            Severity::Warning => ("warning", Paint::Doubtful),
        };
        let (plain, marked) = (format!(": {word}["), format!(": {}[", style.paint(paint, word)));
        text.push_str(&diagnostic.to_string().replacen(&plain, &marked, 1));
        text.push_str("\n\n");
    }
    text
}

fn count(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
