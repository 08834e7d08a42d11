//! Every TOML example in the README, the docs, the manual pages and the shipped filters is read by the real loader.
//!
//! Markdown says what a block is after the fence (`toml` a filter file, `toml settings`, `toml args` one `args` a line), manual pages in the
//! comment above `.EX`.

use std::collections::HashSet;
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
            let failed: Vec<_> = config::run_tests(&loaded).into_iter().filter(|test| !test.passed()).collect();
            assert!(failed.is_empty(), "{source}: {failed:#?}");
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

#[test]
fn the_manuals_name_every_key_kind_and_refused_variable() {
    let filters = manual("rootwrap.filters.5");
    for (source, list) in [
        ("src/config/execution.rs", "KEYS"),
        ("src/config/filter.rs", "OWN_KEYS"),
        ("src/config/callers.rs", "KEYS"),
        ("src/config/tests_table.rs", "KEYS"),
        ("src/config/tests_table.rs", "AS_KEYS"),
        ("src/config/unsupported.rs", "LIMITS"),
        ("src/config/element.rs", "KINDS"),
        ("src/policy/environment.rs", "NAMES"),
        ("src/policy/environment.rs", "PREFIXES"),
    ] {
        assert_names(&filters, "rootwrap.filters(5)", &constants(source, list));
    }
    assert_names(
        &manual("rootwrap.toml.5"),
        "rootwrap.toml(5)",
        &constants("src/config/settings.rs", "KEYS"),
    );
}

#[test]
fn the_journal_page_names_every_event_and_field() {
    let page = text("docs/journal.md");
    for kind in rootwrap::audit::Kind::ALL {
        let row = format!("| `{}` | {} | {} |", kind.name(), kind.message_id(), kind.priority());
        assert!(page.contains(&row), "docs/journal.md has no {row}");
    }
    for source in ["src/audit/event.rs", "src/audit/record.rs"] {
        let code = text(source);
        let code = code.split("#[cfg(test)]").next().unwrap();
        for (start, prefix) in code.match_indices("\"ROOTWRAP_") {
            let field = code[start + prefix.len()..].split('"').next().unwrap();
            assert!(
                page.contains(&format!("`{field}`")),
                "docs/journal.md does not say what {field} is ({source})"
            );
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for file in files("", "md")
        .iter()
        .chain(&files("docs", "md"))
        .chain(&files("docs/decisions", "md"))
    {
        let text = fs::read_to_string(file).unwrap();
        for (start, _) in text.match_indices("](") {
            let target = text[start + 2..].split([')', '#']).next().unwrap();
            let found = target.is_empty() || target.contains("://") || file.parent().unwrap().join(target).exists();
            assert!(found, "{}: there is no {target}", file.display());
        }
    }
}

fn assert_names(page: &str, title: &str, names: &[String]) {
    let words: HashSet<&str> = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    assert!(!names.is_empty());
    for name in names {
        assert!(words.contains(name.as_str()), "{title} does not mention {name}");
    }
}

/// The texts in a constant of a source file.
fn constants(source: &str, name: &str) -> Vec<String> {
    let code = text(source);
    let start = code
        .find(&format!("const {name}:"))
        .unwrap_or_else(|| panic!("{source} has no {name}"));
    let body = code[start..].split("];").next().unwrap();
    body.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn manual(name: &str) -> String {
    text(&format!("packaging/man/{name}"))
        .lines()
        .map(|line| unescaped(line) + "\n")
        .collect()
}

fn text(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}
