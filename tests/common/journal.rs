//! Records of the service in a machine's journal. Anybody can send a record with the service's field names, so they are
//! always matched by what journald says of their sender: its executable, and that it is root. The executable alone does not
//! tell: in a mount namespace of its own, a program of anybody can have any path.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

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

    /// The arguments, taken out of their one field: JSON strings, with U+0000 and two hexadecimal digits for a byte that is not UTF-8.
    pub fn argv(&self) -> Vec<OsString> {
        let texts: Vec<String> =
            serde_json::from_str(self.ours("ARGV")).unwrap_or_else(|error| panic!("ARGV is no array of strings ({error}): {self:?}"));
        texts.iter().map(|text| OsString::from_vec(unescape(text))).collect()
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

fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split('\0');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        bytes.extend(rest.as_bytes());
    }
    bytes
}
