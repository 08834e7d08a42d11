//! The types and the interface definition agree: every type, filled in completely, has exactly the members that the definition
//! gives it, of the kinds that it gives them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;

use rootwrap::protocol::io_rootwrap as io;
use rootwrap::protocol::org_varlink_service as service;
use rootwrap::protocol::run::{DescriptorIndexes, Run, RunReply, RunState, Wanted};
use rootwrap::protocol::{Call, Error, Method};
use serde_json::{Value, json};

/// A type of the definition language.
#[derive(Clone, Debug)]
enum Type {
    Plain(String),
    Optional(Box<Type>),
    Array(Box<Type>),
    Map(Box<Type>),
    Struct(Vec<(String, Type)>),
    Enum(Vec<String>),
}

/// `method NAME (..) -> (..)`, `type NAME (..)`, `error NAME (..)`.
#[derive(Debug, Default)]
struct Interface {
    name: String,
    types: BTreeMap<String, Type>,
    methods: BTreeMap<String, (Type, Type)>,
    errors: BTreeMap<String, Type>,
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
}

impl Parser {
    fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap();
            let mut word = String::new();
            for c in line.chars().chain([' ']) {
                if c.is_alphanumeric() || c == '_' || c == '.' {
                    word.push(c);
                    continue;
                }
                if !word.is_empty() {
                    tokens.push(std::mem::take(&mut word));
                }
                if !c.is_whitespace() {
                    tokens.push(c.to_string());
                }
            }
        }
        Self { tokens, at: 0 }
    }

    fn next(&mut self) -> Option<String> {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned()
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn expect(&mut self, token: &str) {
        assert_eq!(self.next().as_deref(), Some(token));
    }

    fn interface(mut self) -> Interface {
        self.expect("interface");
        let mut interface = Interface {
            name: self.next().unwrap(),
            ..Interface::default()
        };
        while let Some(keyword) = self.next() {
            let name = self.next().unwrap();
            let body = self.parenthesis();
            let known = match keyword.as_str() {
                "type" => interface.types.insert(name.clone(), body).is_some(),
                "error" => interface.errors.insert(name.clone(), body).is_some(),
                "method" => {
                    self.expect("-");
                    self.expect(">");
                    let reply = self.parenthesis();
                    interface.methods.insert(name.clone(), (body, reply)).is_some()
                }
                other => panic!("{other:?}"),
            };
            assert!(!known, "{name} stands twice");
        }
        interface
    }

    fn parenthesis(&mut self) -> Type {
        self.expect("(");
        let mut members = Vec::new();
        let mut words = Vec::new();
        while self.peek() != ")" {
            let name = self.next().unwrap();
            if self.peek() == ":" {
                self.expect(":");
                members.push((name, self.kind()));
            } else {
                words.push(name);
            }
            if self.peek() != ")" {
                self.expect(",");
            }
        }
        self.expect(")");
        assert!(words.is_empty() || members.is_empty());
        if words.is_empty() {
            Type::Struct(members)
        } else {
            Type::Enum(words)
        }
    }

    fn kind(&mut self) -> Type {
        match self.peek() {
            "?" => {
                self.expect("?");
                Type::Optional(Box::new(self.kind()))
            }
            "[" => {
                self.expect("[");
                if self.peek() == "string" {
                    self.expect("string");
                    self.expect("]");
                    return Type::Map(Box::new(self.kind()));
                }
                self.expect("]");
                Type::Array(Box::new(self.kind()))
            }
            _ => Type::Plain(self.next().unwrap()),
        }
    }
}

impl Interface {
    /// Whether `value` has this type. With `all`, optional members must be there: the value is one that was filled in completely.
    fn check(&self, place: &str, kind: &Type, value: &Value, all: bool) {
        match (kind, value) {
            (Type::Optional(inner), value) => self.check(place, inner, value, all),
            (Type::Array(inner), Value::Array(items)) => items.iter().for_each(|item| self.check(place, inner, item, all)),
            (Type::Map(inner), Value::Object(members)) => members.values().for_each(|item| self.check(place, inner, item, all)),
            (Type::Enum(words), Value::String(word)) => assert!(words.contains(word), "{place}: {word}"),
            (Type::Struct(declared), Value::Object(members)) => {
                for name in members.keys() {
                    assert!(
                        declared.iter().any(|(known, _)| known == name),
                        "{place}.{name} is not in the definition"
                    );
                }
                for (name, kind) in declared {
                    match (members.get(name), kind) {
                        (Some(value), kind) => self.check(&format!("{place}.{name}"), kind, value, all),
                        (None, Type::Optional(_)) if !all => {}
                        (None, _) => panic!("{place}.{name} is in the definition only"),
                    }
                }
            }
            (Type::Plain(name), value) => match (name.as_str(), value) {
                ("string", Value::String(_)) | ("bool", Value::Bool(_)) => {}
                ("int", Value::Number(number)) if number.is_i64() => {}
                (name, value) => self.check(
                    place,
                    self.types.get(name).unwrap_or_else(|| panic!("{place}: {value} is no {name}")),
                    value,
                    all,
                ),
            },
            (kind, value) => panic!("{place}: {value} is no {kind:?}"),
        }
    }
}

fn own() -> Interface {
    Parser::new(io::DESCRIPTION).interface()
}

fn full_run_reply() -> RunReply {
    RunReply {
        state: RunState::Exited,
        id: "i".into(),
        pid: Some(1),
        filter: Some("f".into()),
        exit_code: Some(0),
        exit_signal: Some(9),
        stdout: Some(vec![1]),
        stderr: Some(vec![2]),
        stdout_truncated: Some(true),
        stderr_truncated: Some(false),
        duration_usec: Some(1),
        cpu_usec: Some(1),
        max_rss_kib: Some(1),
    }
}

fn privileges() -> io::Privileges {
    io::Privileges {
        run_as: "root".into(),
        capabilities: vec!["net_admin".into()],
    }
}

fn full_explain_reply() -> io::ExplainReply {
    io::ExplainReply {
        allowed: true,
        reason: Some("r".into()),
        message: Some("m".into()),
        filter: Some("f".into()),
        inner_filter: Some("g".into()),
        executable: Some("/x".into()),
        privileges: Some(privileges()),
        tried: vec![io::Tried {
            filter: "f".into(),
            source: "x:1".into(),
            mismatch: Some(io::Mismatch {
                argument: Some(1),
                expected: "e".into(),
            }),
        }],
    }
}

fn full_status_reply() -> io::StatusReply {
    io::StatusReply {
        version: "1".into(),
        policy_hash: Some("h".into()),
        policy_age_usec: Some(1),
        policy_errors: vec!["e".into()],
        callers: vec![io::CallerStatus::default()],
        ..io::StatusReply::default()
    }
}

#[test]
fn given_every_reply_then_it_is_what_the_definition_says() {
    let interface = own();
    assert_eq!(interface.name, io::INTERFACE);
    let filter = io::Filter {
        command: vec!["ip".into()],
        privileges: privileges(),
        ..io::Filter::default()
    };
    let replies = [
        ("Run", json!(full_run_reply())),
        ("Signal", json!({})),
        ("Explain", json!(full_explain_reply())),
        ("ListFilters", json!(io::ListFiltersReply { filters: vec![filter] })),
        (
            "Reload",
            json!(io::ReloadReply {
                warnings: vec!["w".into()],
                ..io::ReloadReply::default()
            }),
        ),
        ("GetStatus", json!(full_status_reply())),
    ];
    assert_eq!(replies.len(), interface.methods.len());
    for (name, value) in replies {
        interface.check(name, &interface.methods[name].1, &value, true);
    }
    interface.check(
        "Run",
        &interface.methods["Run"].1,
        &json!(RunReply::new(RunState::Started, "i")),
        false,
    );
    interface.check(
        "GetStatus",
        &interface.methods["GetStatus"].1,
        &json!(io::StatusReply::default()),
        false,
    );
    interface.check(
        "Explain",
        &interface.methods["Explain"].1,
        &json!(io::ExplainReply::default()),
        false,
    );
}

/// A value of a parameter that a call may hold, other than the absent one.
fn sample(name: &str, kind: &Type) -> Value {
    match kind {
        Type::Optional(inner) => sample(name, inner),
        Type::Array(_) if name.ends_with("Base64") => json!(["eA=="]),
        Type::Array(_) => json!(["x"]),
        Type::Map(_) if name.ends_with("Base64") => json!({"A": "eA=="}),
        Type::Map(_) => json!({"A": "x"}),
        Type::Plain(plain) if plain == "int" => json!(1),
        Type::Plain(plain) if plain == "bool" => json!(true),
        Type::Plain(_) if name.ends_with("Base64") => json!("eA=="),
        _ => json!("x"),
    }
}

#[test]
fn given_every_parameter_of_the_definition_then_its_method_takes_it_and_no_other() {
    let interface = own();
    for (method, (parameters, _)) in &interface.methods {
        let Type::Struct(declared) = parameters else {
            panic!("{parameters:?}")
        };
        let required: Vec<_> = declared.iter().filter(|(_, kind)| !matches!(kind, Type::Optional(_))).collect();
        let base: serde_json::Map<String, Value> = required.iter().map(|(name, kind)| (name.clone(), sample(name, kind))).collect();
        let parse =
            |parameters: &serde_json::Map<String, Value>| Method::parse(Call::new(format!("io.rootwrap.{method}"), parameters.clone()));
        assert!(parse(&base).is_ok(), "{method} {base:?}");
        for (name, kind) in declared {
            let mut with = base.clone();
            with.insert(name.clone(), sample(name, kind));
            if name == "argvBase64" {
                with.insert("argv".into(), json!([]));
            }
            assert!(parse(&with).is_ok(), "{method}.{name}: {:?}", parse(&with));
            with.insert(name.clone(), json!([[]]));
            assert_eq!(parse(&with), Err(Error::invalid(name.as_str())), "{method}.{name}");
        }
        for (name, _) in required {
            let mut without = base.clone();
            without.remove(name);
            assert_eq!(parse(&without), Err(Error::invalid(name.as_str())), "{method} without {name}");
        }
        let mut unknown = base.clone();
        unknown.insert("unknown".into(), json!(1));
        assert_eq!(parse(&unknown), Err(Error::invalid("unknown")), "{method}");
    }
}

#[test]
fn given_what_our_clients_send_then_it_is_what_the_definition_says() {
    let interface = own();
    let wanted = |argument: &[u8]| Wanted {
        argv: vec![argument.to_vec()],
        environment: vec![(b"A".to_vec(), argument.to_vec())],
        profile: Some("p".into()),
        filter: Some("f".into()),
    };
    for argument in [&b"x"[..], b"\xff"] {
        let descriptors = DescriptorIndexes {
            stdin: None,
            stdout: Some(1),
            stderr: Some(2),
            cwd: Some(3),
        };
        let run = Run {
            wanted: wanted(argument),
            stdin: Some(argument.to_vec()),
            descriptors,
            timeout_usec: Some(1),
        };
        let explain = io::Explain {
            wanted: wanted(argument),
            has_cwd: true,
            has_stdin: true,
        };
        for (method, parameters) in [("Run", run.parameters()), ("Explain", explain.parameters())] {
            interface.check(method, &interface.methods[method].0, &Value::Object(parameters), false);
        }
    }
    let signal = io::Signal { id: "i".into(), signal: 1 };
    interface.check("Signal", &interface.methods["Signal"].0, &Value::Object(signal.parameters()), true);
}

#[test]
fn given_every_error_then_it_is_what_the_definitions_say() {
    let text = || "t".to_owned();
    let errors = [
        Error::NotPermitted {
            reason: text(),
            message: text(),
        },
        Error::NoSuchExecutable { command: text() },
        Error::Busy { what: text() },
        Error::LaunchFailed { step: text(), errno: 1 },
        Error::BadRequest { message: text() },
        Error::PolicyUnavailable {},
        Error::AuditUnavailable {},
        Error::TimedOut { timeout_usec: 1 },
        Error::OutcomeUnknown { message: text() },
        Error::ReloadFailed { diagnostics: vec![text()] },
        Error::NoSuchCommand { id: text() },
        Error::InterfaceNotFound { interface: text() },
        Error::MethodNotFound { method: text() },
        Error::MethodNotImplemented { method: text() },
        Error::InvalidParameter { parameter: text() },
        Error::PermissionDenied {},
        Error::ExpectedMore {},
    ];
    let interfaces = [own(), Parser::new(service::DESCRIPTION).interface()];
    assert_eq!(
        errors.len(),
        interfaces.iter().map(|interface| interface.errors.len()).sum::<usize>()
    );
    for error in errors {
        let (name, parameters) = error.to_wire();
        let (prefix, short) = name.rsplit_once('.').unwrap();
        let interface = interfaces.iter().find(|interface| interface.name == prefix).unwrap();
        interface.check(&name, &interface.errors[short], &Value::Object(parameters), true);
    }
}

#[test]
fn given_org_varlink_service_then_its_replies_are_what_its_definition_says() {
    let interface = Parser::new(service::DESCRIPTION).interface();
    interface.check("GetInfo", &interface.methods["GetInfo"].1, &json!(service::Info::own()), true);
    let description = service::Description::of("io.rootwrap").unwrap();
    interface.check(
        "description",
        &interface.methods["GetInterfaceDescription"].1,
        &json!(description),
        true,
    );
    let missing = service::Description::of("io.systemd").unwrap_err();
    assert_eq!(
        missing,
        Error::InterfaceNotFound {
            interface: "io.systemd".into()
        }
    );
}

#[test]
fn given_the_manual_then_it_names_everything_that_the_definition_has() {
    let manual = include_str!("../packaging/man/rootwrap-protocol.7");
    let words: std::collections::BTreeSet<&str> = manual.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let interface = own();
    let mut names: Vec<String> = interface.methods.keys().chain(interface.errors.keys()).cloned().collect();
    let structs = interface
        .methods
        .values()
        .flat_map(|(call, reply)| [call, reply])
        .chain(interface.types.values());
    for kind in structs.chain(interface.errors.values()) {
        match kind {
            Type::Struct(members) => names.extend(members.iter().map(|(name, _)| name.clone())),
            Type::Enum(words) => names.extend(words.iter().cloned()),
            other => panic!("{other:?}"),
        }
    }
    for name in names {
        assert!(words.contains(name.as_str()), "{name} is not in the manual");
    }
}
