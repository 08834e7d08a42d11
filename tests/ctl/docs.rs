//! Every TOML example in the README, the docs, the manual pages and the shipped filters is read by the real loader.
//!
//! Markdown says what a block is after the fence (`toml` a filter file, `toml settings`, `toml args` one `args` a line), manual pages in the
//! comment above `.EX`.

use std::fs;
use std::path::{Path, PathBuf};

use rootwrap::config::{self, Settings, Source};

/// A block of TOML.
struct Example {
    /// Where it begins: `file:line`.
    source: String,
    /// `filters`, `settings` or `args`.
    kind: String,
    text: String,
}

#[test]
fn filter_examples_load_and_their_tests_pass() {
    let examples = examples("filters");
    assert!(
        examples.len() >= 3,
        "README, docs and rootwrap.filters(5) have examples; found {}",
        examples.len()
    );
    for example in examples {
        load(&example.source, &example.text);
    }
}

#[test]
fn argument_examples_load() {
    let examples = examples("args");
    assert!(!examples.is_empty());
    for example in examples {
        for (number, line) in example.text.lines().filter(|line| !line.trim().is_empty()).enumerate() {
            let filter = format!(
                "[callers]\nusers = [\"root\"]\n[[filter]]\nname = \"example\"\ncommand = \"/usr/bin/true\"\ncapabilities = []\nargs = {line}\n"
            );
            load(&format!("{} line {}", example.source, number + 1), &filter);
        }
    }
}

#[test]
fn settings_examples_load() {
    let examples = examples("settings");
    assert!(!examples.is_empty());
    for example in examples {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("rootwrap.toml");
        fs::write(&file, &example.text).unwrap();
        if let Err(errors) = Settings::load(&file, false) {
            panic!("{}: {}", example.source, list(&errors));
        }
    }
}

#[test]
fn shipped_filters_load_and_have_tests() {
    for file in files("filters", "toml") {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("[[test]]"), "{} has no [[test]]", file.display());
        load(&file.display().to_string(), &text);
    }
}

/// Loads a filter file and runs its tests.
fn load(source: &str, text: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("50-example.toml");
    fs::write(&file, text).unwrap();
    let source_of_policy = Source {
        directories: Vec::new(),
        files: vec![file],
        check_owners: false,
    };
    match config::load(&source_of_policy, &Settings::default()) {
        Err(errors) => panic!("{source}: {}", list(&errors)),
        Ok(loaded) => {
            let errors: Vec<_> = loaded
                .warnings
                .iter()
                .filter(|d| d.severity == config::Severity::Error)
                .cloned()
                .collect();
            assert!(errors.is_empty(), "{source}: {}", list(&errors));
        }
    }
}

fn list(diagnostics: &[config::Diagnostic]) -> String {
    diagnostics.iter().map(|d| format!("\n{d:#?}")).collect()
}

/// All examples of a kind.
fn examples(kind: &str) -> Vec<Example> {
    let mut all = Vec::new();
    for file in files("", "md").iter().chain(&files("docs", "md")) {
        all.extend(in_markdown(file));
    }
    for file in files("packaging/man", "") {
        all.extend(in_manual(&file));
    }
    all.retain(|example| example.kind == kind);
    all
}

fn in_markdown(file: &Path) -> Vec<Example> {
    let text = fs::read_to_string(file).unwrap();
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```toml") else {
            continue;
        };
        let body: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| !line.trim_start().starts_with("```"))
            .collect();
        found.push(Example {
            source: format!("{}:{}", file.display(), number + 1),
            kind: if info.trim().is_empty() {
                "filters".to_owned()
            } else {
                info.trim().to_owned()
            },
            text: body.join("\n"),
        });
    }
    found
}

fn in_manual(file: &Path) -> Vec<Example> {
    let text = fs::read_to_string(file).unwrap();
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.strip_prefix(".\\\" example: ") else {
            continue;
        };
        assert_eq!(lines.next().map(|(_, line)| line), Some(".EX"), "{}:{}", file.display(), number + 1);
        let body: Vec<String> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != ".EE")
            .map(unescaped)
            .collect();
        found.push(Example {
            source: format!("{}:{}", file.display(), number + 1),
            kind: kind.to_owned(),
            text: body.join("\n"),
        });
    }
    found
}

/// A line of a manual page as it is shown.
fn unescaped(line: &str) -> String {
    line.replace("\\-", "-")
        .replace("\\(aq", "'")
        .replace("\\&", "")
        .replace("\\e", "\\")
}

/// The files of a directory with this extension, or all.
fn files(directory: &str, extension: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    files.retain(|file| file.is_file() && (extension.is_empty() || file.extension().is_some_and(|found| found == extension)));
    files.sort();
    files
}
