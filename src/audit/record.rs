//! One record in the journal's native protocol: <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>.

use super::Kind;
use super::text::printable;

/// Longest value of a field, in bytes, but for ROOTWRAP_ARGV. Names and units are far shorter.
const FIELD_LIMIT: usize = 64 * 1024;
/// Longest MESSAGE, about, in bytes.
const MESSAGE_LIMIT: usize = 1024;

/// A record that grows field by field. Each field once: journald sorts and de-duplicates repeated ones.
#[derive(Debug)]
pub struct Record {
    bytes: Vec<u8>,
    truncated: Vec<&'static str>,
}

impl Record {
    /// A record of this kind. `message` is made one printable line.
    pub fn new(kind: Kind, message: &str) -> Self {
        let mut record = Self {
            bytes: Vec::with_capacity(1024),
            truncated: Vec::new(),
        };
        record.put("MESSAGE", printable_line(message).as_bytes());
        record.put("MESSAGE_ID", kind.message_id().as_bytes());
        record.number("PRIORITY", kind.priority());
        record.put("SYSLOG_IDENTIFIER", b"rootwrapd");
        record.put("ROOTWRAP_EVENT", kind.name().as_bytes());
        record
    }

    /// A field of text or bytes, cut at 64 KiB.
    pub fn text(&mut self, name: &'static str, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        match value.get(..FIELD_LIMIT) {
            Some(head) if value.len() > FIELD_LIMIT => {
                self.put(name, head);
                self.truncated.push(name);
            }
            _ => self.put(name, value),
        }
    }

    /// A field that has a limit of its own; `truncated` says that it was reached.
    pub fn limited(&mut self, name: &'static str, value: &str, truncated: bool) {
        self.put(name, value.as_bytes());
        if truncated {
            self.truncated.push(name);
        }
    }

    /// A number in decimal.
    pub fn number(&mut self, name: &'static str, value: impl std::fmt::Display) {
        self.put(name, value.to_string().as_bytes());
    }

    /// A field that may be absent.
    pub fn optional(&mut self, name: &'static str, value: Option<impl AsRef<[u8]>>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// The record's bytes. ROOTWRAP_TRUNCATED names the fields that were cut.
    pub fn finish(mut self) -> Vec<u8> {
        if !self.truncated.is_empty() {
            let names = self.truncated.join(" ");
            self.put("ROOTWRAP_TRUNCATED", names.as_bytes());
        }
        self.bytes
    }

    fn put(&mut self, name: &str, value: &[u8]) {
        self.bytes.extend_from_slice(name.as_bytes());
        if value.iter().any(|byte| *byte < b' ') {
            self.bytes.push(b'\n');
            self.bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            self.bytes.push(b'=');
        }
        self.bytes.extend_from_slice(value);
        self.bytes.push(b'\n');
    }
}

fn printable_line(message: &str) -> String {
    // Messages are put together from parts that are printable already; a backslash in them stands for itself.
    if message.len() <= MESSAGE_LIMIT && message.chars().all(super::text::is_printable) {
        message.to_owned()
    } else {
        printable(message.as_bytes(), MESSAGE_LIMIT)
    }
}

/// Reads a record back, for tests: the fields in their order.
#[cfg(test)]
pub fn parse(mut bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|b| *b == b'\n').unwrap();
        let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
        if let Some(equals) = line.iter().position(|b| *b == b'=') {
            fields.push((String::from_utf8(line[..equals].to_vec()).unwrap(), line[equals + 1..].to_vec()));
            bytes = rest;
        } else {
            let length = usize::try_from(u64::from_le_bytes(rest[..8].try_into().unwrap())).unwrap();
            fields.push((String::from_utf8(line.to_vec()).unwrap(), rest[8..8 + length].to_vec()));
            assert_eq!(rest[8 + length], b'\n');
            bytes = &rest[9 + length..];
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(fields: &[(String, Vec<u8>)], name: &str) -> Option<Vec<u8>> {
        fields.iter().find(|f| f.0 == name).map(|f| f.1.clone())
    }

    #[test]
    fn a_value_with_a_newline_and_a_field_name_creates_no_field() {
        let mut record = Record::new(Kind::Denied, "no");
        record.text("ROOTWRAP_CALLER_COMM", b"x\nROOTWRAP_DECISION=allowed\n");
        let fields = parse(&record.finish());
        assert_eq!(value(&fields, "ROOTWRAP_DECISION"), None);
        assert_eq!(value(&fields, "ROOTWRAP_CALLER_COMM").unwrap(), b"x\nROOTWRAP_DECISION=allowed\n");
    }

    #[test]
    fn the_message_is_one_printable_line() {
        let fields = parse(&Record::new(Kind::Denied, "a\nb\u{202e}").finish());
        assert_eq!(value(&fields, "MESSAGE").unwrap(), b"a\\nb\\u{202e}");
    }

    #[test]
    fn a_field_beyond_the_limit_is_cut_and_named() {
        let mut record = Record::new(Kind::Denied, "m");
        record.text("ROOTWRAP_FILTER", vec![b'x'; FIELD_LIMIT + 1]);
        record.text("ROOTWRAP_REASON", "r");
        let fields = parse(&record.finish());
        assert_eq!(value(&fields, "ROOTWRAP_FILTER").unwrap().len(), FIELD_LIMIT);
        assert_eq!(value(&fields, "ROOTWRAP_TRUNCATED").unwrap(), b"ROOTWRAP_FILTER");
    }
}
