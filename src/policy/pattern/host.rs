//! `{ host = true }`: an IP address or a host name of RFC 1123.
//!
//! A name whose last label is a number is refused: inet_aton(3) would read `1`, `0x7f.1` or `127.1` as an address.

use std::net::IpAddr;

use super::{Kind, Lean};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Host;

fn is_label(label: &[u8]) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    label.len() <= 63 && edge(label.first()) && edge(label.last()) && label.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn is_number(label: &[u8]) -> bool {
    let hexadecimal = label.strip_prefix(b"0x").or_else(|| label.strip_prefix(b"0X"));
    label.iter().all(u8::is_ascii_digit) || hexadecimal.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

fn is_name(text: &[u8]) -> bool {
    let name = text.strip_suffix(b".").unwrap_or(text);
    let last = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    name.len() <= 253 && name.split(|byte| *byte == b'.').all(is_label) && !is_number(last)
}

impl Kind for Host {
    fn accepts(&self, text: &[u8], _lead: bool, _lean: &mut Lean<'_>) -> bool {
        is_name(text) || std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
    }

    fn shape(&self) -> String {
        "(?:[0-9A-Za-z:.-]+)".to_owned()
    }

    fn expected(&self) -> String {
        "a host name or an IP address".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{accepts, value};
    use crate::policy::spec::ElementKind;

    #[test]
    fn names_and_addresses() {
        let host = value(ElementKind::Host);
        for yes in [
            "h",
            "example.org",
            "example.org.",
            "a-b.c1",
            "10.0.0.1",
            "::1",
            "3com.example",
            "nas1",
        ] {
            assert!(accepts(&host, yes), "{yes}");
        }
        for no in [
            "",
            ".",
            "a..b",
            "-a",
            "a-",
            "a-.b",
            "a_b",
            "a b",
            "a\n",
            "é",
            "1",
            "127.1",
            "0x7f.1",
            "a.0x7f",
            "0x",
            "1.2.3.256",
            "[::1]",
            "fe80::1%x",
            "a/b",
            "a:b",
        ] {
            assert!(!accepts(&host, no), "{no:?}");
        }
    }

    #[test]
    fn lengths_are_limited() {
        let host = value(ElementKind::Host);
        assert!(accepts(&host, &"a".repeat(63)));
        assert!(!accepts(&host, &"a".repeat(64)));
        let long = vec!["a".repeat(49); 5].join(".");
        assert!(accepts(&host, &format!("{long}.abc")));
        assert!(!accepts(&host, &format!("{long}.abcd")));
    }
}
