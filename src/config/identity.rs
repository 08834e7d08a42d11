//! Users and groups as files name them: a name, or a number without quotes. Nothing else is taken for one.

use toml::de::DeValue;

use super::reader::{Node, Reader};

/// Users or groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    User,
    Group,
}

/// A user or group before it is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity<'a> {
    Number(u32),
    Name(&'a str),
}

impl Sort {
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::User => "bad-user",
            Self::Group => "bad-group",
        }
    }
}

/// Reads a name or a number. -1 in all its spellings means "no id" to the kernel and never gets through; beyond 2^31 - 1,
/// programs take ids for negative numbers.
pub(crate) fn read<'a>(reader: Reader<'a>, node: Node<'a>, sort: Sort) -> Option<Identity<'a>> {
    let word = sort.word();
    let name = match node.value {
        DeValue::String(name) => name.as_ref(),
        DeValue::Integer(number) => {
            let id = i64::from_str_radix(number.as_str(), number.radix()).ok();
            let id = id.filter(|id| *id <= i64::from(i32::MAX)).and_then(|id| u32::try_from(id).ok());
            if id.is_none() {
                let message = format!("{number} is no id of a {word}");
                reader.error(node.span, sort.code(), &message, "ids are from 0 to 2147483647");
            }
            return id.map(Identity::Number);
        }
        _ => {
            reader.wrong_type(node, &format!("a {word} is a name or a number"));
            return None;
        }
    };
    let Some(why) = refusal(name) else {
        return Some(Identity::Name(name));
    };
    let hint = match (why, name.strip_prefix('%')) {
        (Refusal::Number, _) => "write numbers without quotes".to_owned(),
        (Refusal::Name, Some(group)) => format!("groups go into `groups = [\"{group}\"]`"),
        (Refusal::Name, None) => format!("write the {word}'s name as getent(1) shows it, or its number without quotes"),
    };
    reader.error(node.span, sort.code(), &format!("`{name}` is no name of a {word}"), &hint);
    None
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Number,
    Name,
}

fn refusal(name: &str) -> Option<Refusal> {
    let sign_and_digits = name.trim_start_matches(['+', '-', '#']);
    if !sign_and_digits.is_empty() && sign_and_digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Refusal::Number);
    }
    let strange = |c: char| c.is_control() || c.is_whitespace() || matches!(c, ':' | '/' | ',' | '*' | '?' | '!' | '%' | '#');
    let refused =
        name.is_empty() || name.len() > 256 || name == "." || name == ".." || name.starts_with(['-', '+', '~']) || name.contains(strange);
    refused.then_some(Refusal::Name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_sort_of_directory_pass() {
        for name in [
            "root",
            "neutron",
            "_apt",
            "user.name",
            "machine$",
            "alice@example.org",
            "DOMAIN\\alice",
            "jürgen",
        ] {
            assert!(refusal(name).is_none(), "{name}");
        }
    }

    #[test]
    fn what_could_be_taken_for_an_id_or_a_pattern_does_not() {
        for name in [
            "",
            "#0",
            "+0",
            "-1",
            "0",
            "4294967295",
            "%wheel",
            "a:b",
            "a b",
            "root\n",
            "*",
            "../x",
            "..",
            "-x",
            "!alice",
        ] {
            assert!(refusal(name).is_some(), "{name:?}");
        }
    }
}
