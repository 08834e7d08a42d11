//! Records of the service in a machine's journal. Anybody can send a record with the service's field names, so they are
//! always matched by what journald says of their sender: its executable, and that it is root. The executable alone does not
//! tell: in a mount namespace of its own, a program of anybody can have any path.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::Machine;

/// The matches that only the service's own records pass.
pub const BY_SERVICE: [&str; 2] = ["_EXE=/usr/libexec/rootwrap/rootwrapd", "_UID=0"];

/// One record.
#[derive(Clone, Debug)]
pub struct Record(pub Map<String, Value>);

impl Record {
    /// A field's text; empty when it is missing.
    pub fn get(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A field of ours, by its name without the prefix.
    pub fn ours(&self, field: &str) -> &str {
        self.get(&format!("ROOTWRAP_{field}"))
    }

    /// The arguments, taken out of their one field: JSON strings, and objects with base64 for what is not UTF-8.
    pub fn argv(&self) -> Vec<OsString> {
        let values: Vec<Value> = serde_json::from_str(self.ours("ARGV")).unwrap_or_else(|error| panic!("ARGV ({error}): {self:?}"));
        let bytes = |value: &Value| match value {
            Value::String(text) => text.clone().into_bytes(),
            other => STANDARD
                .decode(other["base64"].as_str().expect("a string or base64"))
                .expect("base64"),
        };
        values.iter().map(|value| OsString::from_vec(bytes(value))).collect()
    }

    /// How many events it stands for.
    pub fn count(&self) -> u32 {
        match self.ours("COUNT") {
            "" => 1,
            count => count.parse().expect("a number"),
        }
    }
}

impl Machine {
    /// The service's own records that match, oldest first.
    pub fn records(&self, matches: &[&str]) -> Vec<Record> {
        let arguments = [&["-o", "json", "--all"], &BY_SERVICE[..], matches].concat();
        parse(&self.journalctl(&arguments))
    }

    /// Records of anybody.
    pub fn records_of_anybody(&self, matches: &[&str]) -> Vec<Record> {
        let arguments = [&["-o", "json", "--all"], matches].concat();
        parse(&self.journalctl(&arguments))
    }

    /// The service's records of one kind of event.
    pub fn events(&self, kind: &str) -> Vec<Record> {
        self.records(&[&format!("ROOTWRAP_EVENT={kind}")])
    }

    /// The service's records of one decision.
    pub fn decided(&self, decision: &str) -> Vec<Record> {
        self.records(&[&format!("ROOTWRAP_DECISION={decision}")])
    }
}

fn parse(lines: &str) -> Vec<Record> {
    lines
        .lines()
        .map(|line| Record(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))))
        .collect()
}
