//! No text panics, none with an error gives a policy, and taking a filter away never allows more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod config_common;

use config_common::write;
use proptest::prelude::*;
use rootwrap::config::{Loaded, Settings, Severity, Source, load, run_tests};

const EXAMPLES: &str = include_str!("data/policy-examples.toml");

/// Loads bytes; checks that an error and a policy never come together.
fn load_bytes(bytes: &[u8]) -> Option<Loaded> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.toml");
    write(&path, "");
    std::fs::write(&path, bytes).unwrap();
    let source = Source {
        directories: Vec::new(),
        files: vec![path],
        check_owners: false,
    };
    match load(&source, &Settings::default()) {
        Ok(loaded) => {
            assert!(loaded.warnings.iter().all(|warning| warning.severity == Severity::Warning));
            Some(loaded)
        }
        Err(diagnostics) => {
            assert!(diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error));
            for diagnostic in diagnostics {
                let shown = diagnostic.to_string();
                assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
            }
            None
        }
    }
}

/// The examples cut where a table of a filter, a test or another begins.
fn blocks() -> Vec<&'static str> {
    let mut starts: Vec<usize> = EXAMPLES.match_indices("\n[").map(|(at, _)| at + 1).collect();
    starts.insert(0, 0);
    starts.push(EXAMPLES.len());
    starts.windows(2).map(|pair| &EXAMPLES[pair[0]..pair[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        load_bytes(&bytes);
    }

    #[test]
    fn random_words_of_the_language_never_panic(words in proptest::collection::vec(
        proptest::sample::select(vec!["[[filter]]\n", "[callers]\n", "[define]\n", "name = \"a\"\n", "args = [", "]", "{ ", " }", "int = [1, 2]",
            "options = ", "\"-a\" = true", "use = \"x\"", "x = ", ", ", "\n", "true", "\"\u{1b}\"", "[[test]]\n", "argv = []\n", "capabilities = []\n",
            "command = ", "\"/bin/sh\"\n", "repeat = ", "users = [1]\n", "callers = ", "'''", "99999999999999999999", "-0x1", "1e400", "1979-05-27"]), 0..60)) {
        load_bytes(words.concat().as_bytes());
    }

    #[test]
    fn a_mutated_file_never_panics_and_gives_no_policy_with_an_error(
        at in 0..EXAMPLES.len(), length in 0..40usize, new in proptest::collection::vec(any::<u8>(), 0..6)) {
        let mut bytes = EXAMPLES.as_bytes().to_vec();
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, new);
        load_bytes(&bytes);
    }

    #[test]
    fn without_a_filter_nothing_more_is_allowed(gone in proptest::collection::btree_set(0..15usize, 1..5)) {
        let mut number = 0;
        let kept: String = blocks().into_iter().filter(|block| {
            let is_filter = block.starts_with("[[filter]]");
            number += usize::from(is_filter);
            !(is_filter && gone.contains(&(number - 1)))
        }).collect();
        // A filter that names the missing one cannot be loaded: then nothing is allowed.
        if let Some(loaded) = load_bytes(kept.as_bytes()) {
            let before = run_tests(&load_bytes(EXAMPLES.as_bytes()).unwrap());
            for (before, now) in before.iter().zip(run_tests(&loaded)) {
                prop_assert_eq!(&before.argv, &now.argv);
                prop_assert!(before.got_allow || !now.got_allow, "{:?}", now);
            }
        }
    }
}
