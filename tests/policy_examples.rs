//! The example policies and their tables, as `rootwrapctl check` runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use rootwrap::config::{Settings, Source, load, run_tests};

#[test]
fn every_case_of_the_examples_comes_out_as_it_says() {
    let source = Source {
        directories: Vec::new(),
        files: vec![concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/policy-examples.toml").into()],
        check_owners: false,
    };
    let loaded = load(&source, &Settings::default()).unwrap();
    let results = run_tests(&loaded);
    let failed: Vec<String> = results
        .iter()
        .filter_map(|result| Some(format!("{}: {}", result.source, result.failure.as_ref()?)))
        .collect();
    assert_eq!(failed, Vec::<String>::new());
    assert!(results.len() >= 100, "only {} cases", results.len());
    assert!(results.iter().filter(|result| result.expected_allow).count() >= 30);
}
