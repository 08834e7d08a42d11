//! Filters and questions for the tests of the policy.

#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rootwrap::policy::facts::Facts;
use rootwrap::policy::spec::*;
use rootwrap::policy::{BuildError, Outcome, Permit, Policy, Reason, Request, Subject, decide};

pub fn value(kind: ElementKind) -> Element {
    Element {
        span: Span::default(),
        kind,
        dash: false,
        secret: false,
    }
}

pub fn literal(text: &str) -> Element {
    value(ElementKind::Literal(text.as_bytes().to_vec()))
}

pub fn secret(element: Element) -> Element {
    Element { secret: true, ..element }
}

pub fn dash(element: Element) -> Element {
    Element { dash: true, ..element }
}

pub fn any() -> Element {
    value(ElementKind::Any)
}

pub fn int(min: i64, max: i64) -> Element {
    value(ElementKind::Int { min, max })
}

pub fn regex(source: &str) -> Element {
    value(ElementKind::Regex(source.to_owned()))
}

pub fn interface() -> Element {
    value(ElementKind::Interface)
}

pub fn path_under(base: &str) -> Element {
    value(ElementKind::PathUnder {
        base: PathBuf::from(base),
        new: false,
        links_to: Vec::new(),
        caller_writable: false,
    })
}

pub fn pid_of(executable: &str) -> Element {
    value(ElementKind::PidOf {
        executables: vec![PathBuf::from(executable)],
        same_unit: false,
    })
}

pub fn seq(elements: Vec<Element>) -> Element {
    value(ElementKind::Sequence(elements))
}

pub fn one_of(elements: Vec<Element>) -> Element {
    value(ElementKind::OneOf(elements))
}

pub fn words(words: &[&str]) -> Element {
    one_of(words.iter().map(|word| literal(word)).collect())
}

pub fn concat(elements: Vec<Element>) -> Element {
    value(ElementKind::Concat(elements))
}

pub fn list(item: Element, separator: &str) -> Element {
    value(ElementKind::List {
        item: Box::new(item),
        separator: separator.to_owned(),
    })
}

pub fn optional(item: Element) -> Element {
    value(ElementKind::Optional(Box::new(item)))
}

pub fn repeat(item: Element, min: u32, max: Option<u32>) -> Element {
    value(ElementKind::Repeat {
        item: Box::new(item),
        min,
        max,
    })
}

pub fn options(specs: Vec<OptionSpec>) -> Element {
    value(ElementKind::Options(specs))
}

/// Spellings separated by `, `, as in a file; a leading `!` makes it required, `*` many.
pub fn option(keys: &str, value: Option<Element>) -> OptionSpec {
    let bare = keys.trim_start_matches(['!', '*']);
    let marks = &keys[..keys.len() - bare.len()];
    OptionSpec {
        keys: bare.split(", ").map(str::to_owned).collect(),
        value,
        required: marks.contains('!'),
        many: marks.contains('*'),
        span: Span::default(),
    }
}

pub fn command() -> Element {
    value(ElementKind::Command(InnerFilters::Any))
}

pub fn command_of(names: &[&str]) -> Element {
    let names = names.iter().map(|name| ((*name).to_owned(), Span::default())).collect();
    value(ElementKind::Command(InnerFilters::Named(names)))
}

/// A filter for everybody, run as root without capabilities.
pub fn filter(name: &str, command: &str, args: Vec<Element>) -> FilterSpec {
    FilterSpec {
        name: name.to_owned(),
        span: Span::default(),
        line: 7,
        callers: Arc::new(Callers {
            users: vec![UserRule::Any],
            ..Callers::default()
        }),
        command: CommandSpec {
            spelled: vec![command.to_owned()],
            candidates: vec![command.into()],
            span: Span::default(),
        },
        args,
        execution: Execution {
            run_as: Arc::new(RunAs {
                ids: Some(Ids {
                    uid: 0,
                    gid: 0,
                    groups: Vec::new(),
                }),
                user: "root".to_owned(),
                home: "/root".to_owned(),
                shell: "/bin/sh".to_owned(),
            }),
            capabilities: Capabilities::Set(0),
            no_new_privs: true,
            env_allow: Vec::new(),
            env_set: Vec::new(),
            cwd: Cwd::Path("/".into()),
            stdin: Stdin::Caller,
            umask: 0o022,
            nice: 0,
            oom_score: 0,
            nofile: None,
            timeout: None,
            kill_after: Duration::from_secs(5),
            on_disconnect: OnDisconnect::Kill,
            placement: Placement::Own,
            sha256: None,
        },
        message: None,
        inner_only: false,
        max_concurrent: None,
    }
}

pub fn for_uid(mut filter: FilterSpec, uid: u32) -> FilterSpec {
    filter.callers = Arc::new(Callers {
        users: vec![UserRule::Uid(uid)],
        ..Callers::default()
    });
    filter
}

pub fn policy(filters: Vec<FilterSpec>) -> Result<Policy, Vec<BuildError>> {
    Policy::build(PolicySpec {
        files: vec![PathBuf::from("/etc/rootwrap/filters.d/50-test.toml")],
        filters,
        hash: [7; 32],
    })
}

pub fn alice() -> Subject {
    Subject {
        uid: 1000,
        gid: 1000,
        ..Subject::default()
    }
}

pub fn bytes(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

pub fn request<'a>(subject: &'a Subject, argv: &'a [Vec<u8>]) -> Request<'a> {
    Request {
        subject,
        argv,
        environment: &[],
        has_cwd: false,
        has_stdin: false,
        filter: None,
        profile: None,
    }
}

/// Alice's request; paths by their spelling, processes by number.
pub fn decide_bytes(policy: &Policy, argv: &[Vec<u8>]) -> Outcome {
    decide(policy, &request(&alice(), argv), &Facts::lexical())
}

pub fn outcome(policy: &Policy, argv: &[&str]) -> Outcome {
    decide_bytes(policy, &bytes(argv))
}

pub fn allows(policy: &Policy, argv: &[&str]) -> bool {
    matches!(outcome(policy, argv), Outcome::Allow(_))
}

pub fn permit(policy: &Policy, argv: &[&str]) -> Box<Permit> {
    match outcome(policy, argv) {
        Outcome::Allow(permit) => permit,
        other => panic!("{argv:?}: {other:?}"),
    }
}

pub fn reason(policy: &Policy, argv: &[&str]) -> Reason {
    denial(policy, argv).reason
}

pub fn denial(policy: &Policy, argv: &[&str]) -> rootwrap::policy::Denial {
    match outcome(policy, argv) {
        Outcome::Deny(denial) => denial,
        other => panic!("{argv:?}: {other:?}"),
    }
}

pub fn text(argv: &[Vec<u8>]) -> Vec<String> {
    argv.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The messages of a policy that is wrong.
pub fn errors(filters: Vec<FilterSpec>) -> String {
    match policy(filters) {
        Ok(_) => String::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}
