//! Bytes of callers as text for people: printable, on one line, bounded.

/// Characters of one argument that a message shows.
const SHOWN: usize = 64;

/// In backquotes; what is not printable ASCII is escaped, what is long is cut.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let (shown, cut) = match bytes.get(..SHOWN) {
        Some(head) if bytes.len() > SHOWN => (head, "..."),
        _ => (bytes, ""),
    };
    format!("`{}{cut}`", printable(shown))
}

/// What is not printable ASCII is escaped; valid UTF-8 letters stay.
pub(super) fn printable(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric() {
                out.push(c);
            } else {
                out.extend(c.escape_default());
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// `1 filter`, `2 filters`.
#[must_use]
pub fn counted(number: impl std::fmt::Display, what: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// `a`, `a or b`, `a, b or c`.
pub(super) fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_direction_characters_are_escaped() {
        assert_eq!(quoted(b"a\n\x1b[1m\xff"), "`a\\n\\u{1b}[1m\\xff`");
        assert_eq!(printable("é\u{202e}".as_bytes()), "é\\u{202e}");
    }

    #[test]
    fn long_arguments_are_cut() {
        assert_eq!(quoted(&[b'a'; 100]).len(), 64 + 3 + 2);
    }

    #[test]
    fn alternatives_are_joined_as_people_do() {
        let words: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(either(&words), "a, b or c");
    }
}
