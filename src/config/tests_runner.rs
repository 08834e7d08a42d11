//! Runs the `[[test]]`s of a policy with the daemon's own decision function.

use super::tests_table::NOBODY;
use super::{Loaded, TestCase};
use crate::policy::facts::Facts;
use crate::policy::{Outcome, Permit, Request, Subject, capability, decide};

/// How one `[[test]]` came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// `file:line`.
    pub source: String,
    /// The command.
    pub argv: Vec<Vec<u8>>,
    /// `expect = "allow"`.
    pub expected_allow: bool,
    /// What came out.
    pub got_allow: bool,
    /// Why it failed, or `None` where it passed.
    pub failure: Option<String>,
}

impl TestResult {
    /// Whether it came out as it says.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failure.is_none()
    }
}

/// Runs all tests, in their order. Paths are judged by their spelling and processes by their number: a test does not depend on
/// what happens to be on this machine.
#[must_use]
pub fn run_tests(loaded: &Loaded) -> Vec<TestResult> {
    loaded.tests.iter().map(|test| run(loaded, test)).collect()
}

fn run(loaded: &Loaded, test: &TestCase) -> TestResult {
    let assumed = Subject {
        // No account has this number; the file's callers admit it.
        uid: NOBODY,
        gid: NOBODY,
        assumed_by_file: Some(test.file),
        ..Subject::default()
    };
    let request = Request {
        subject: test.subject.as_ref().unwrap_or(&assumed),
        argv: &test.argv,
        environment: &test.environment,
        has_cwd: test.has_cwd,
        has_stdin: false,
        filter: None,
        profile: None,
    };
    let outcome = decide(&loaded.policy, &request, &Facts::lexical());
    TestResult {
        source: test.source.clone(),
        argv: test.argv.clone(),
        expected_allow: test.allow,
        got_allow: matches!(outcome, Outcome::Allow(_)),
        failure: failure(test, &outcome),
    }
}

fn failure(test: &TestCase, outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Allow(permit) if test.allow => wrong_permit(test, permit),
        Outcome::Allow(permit) => Some(format!(
            "expected deny, but `{}` ({}) allows it",
            permit.filter().name,
            permit.filter_source()
        )),
        Outcome::Deny(denial) if test.allow => {
            let stranger = test
                .unknown
                .as_ref()
                .map_or_else(String::new, |name| format!("; there is no {name} here"));
            // Advice to ask the service does not help with a file that may not be in force.
            let why = denial.message.split("; see: rootwrapctl explain").next().unwrap_or_default();
            Some(format!("expected allow, but {why} ({}){stranger}", denial.reason))
        }
        Outcome::Deny(_) => None,
        Outcome::Ask(_) => Some("the decision depends on what is on this machine".into()),
    }
}

/// Allowed as expected: also by the filter and with the capabilities that the test names?
fn wrong_permit(test: &TestCase, permit: &Permit) -> Option<String> {
    let name = &permit.filter().name;
    if test.filter.as_ref().is_some_and(|expected| expected != name) {
        return Some(format!(
            "expected filter `{}`, but `{name}` ({}) allows it first",
            test.filter.as_deref().unwrap_or_default(),
            permit.filter_source()
        ));
    }
    let got = permit.execution().capabilities;
    let expected = test.capabilities.filter(|expected| *expected != got)?;
    Some(format!(
        "expected capabilities [{}], but `{name}` gives [{}]",
        capability::names(expected).join(", "),
        capability::names(got).join(", ")
    ))
}
