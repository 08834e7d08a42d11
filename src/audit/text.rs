//! Text that people read: one printable line whatever a caller sends.

/// Whether a character may stand in a line that a terminal shows: no control characters (C0, DEL, C1), nothing that changes the
/// direction or the extent of what follows, nothing invisible.
#[must_use]
pub fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}

/// Bytes as one printable line: `\n`, `\t`, `\r`, `\\`, `\xNN` for other bytes below 0x80 and for what is not UTF-8,
/// `\u{NNNN}` for other characters that are not printable. At most about `limit` bytes; what is cut off is shown as `...`.
#[must_use]
pub fn printable(bytes: &[u8], limit: usize) -> String {
    let mut line = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if line.len() >= limit {
                line.push_str("...");
                return line;
            }
            push(&mut line, character);
        }
        for byte in chunk.invalid() {
            if line.len() >= limit {
                line.push_str("...");
                return line;
            }
            line.push_str(&format!("\\x{byte:02x}"));
        }
    }
    line
}

fn push(line: &mut String, character: char) {
    match character {
        '\\' => line.push_str("\\\\"),
        '\n' => line.push_str("\\n"),
        '\r' => line.push_str("\\r"),
        '\t' => line.push_str("\\t"),
        c if is_printable(c) => line.push(c),
        c if c.is_ascii() => line.push_str(&format!("\\x{:02x}", u32::from(c))),
        c => line.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
    }
}

/// A command line for people: arguments separated by blanks, those that a shell would read differently in single quotes, all of it
/// printable and at most about `limit` bytes. Not reversible: the journal's ROOTWRAP_ARGV is.
#[must_use]
pub fn command_line(argv: &[Vec<u8>], limit: usize) -> String {
    let mut line = String::new();
    for (index, argument) in argv.iter().enumerate() {
        if line.len() >= limit {
            line.push_str(" ...");
            break;
        }
        if index > 0 {
            line.push(' ');
        }
        let shown = printable(argument, limit.saturating_sub(line.len()).max(16));
        if is_plain(argument) {
            line.push_str(&shown);
        } else {
            line.push('\'');
            line.push_str(&shown.replace('\'', "\\'"));
            line.push('\'');
        }
    }
    line
}

fn is_plain(argument: &[u8]) -> bool {
    !argument.is_empty() && argument.iter().all(|b| b.is_ascii_alphanumeric() || b"-_./:=@%+,*^".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_c1_escape_and_bidi_characters_are_escaped() {
        let line = printable("a\nb\x1b[31m\u{9b}x\u{202e}y\u{7f}\\n".as_bytes(), 200);
        assert_eq!(line, "a\\nb\\x1b[31m\\u{9b}x\\u{202e}y\\x7f\\\\n");
    }

    #[test]
    fn what_is_not_utf8_is_escaped_byte_by_byte_and_text_stays() {
        assert_eq!(printable(b"caf\xe9 \xc3\xa9", 200), "caf\\xe9 \u{e9}");
    }

    #[test]
    fn every_byte_value_gives_a_printable_line() {
        let all: Vec<u8> = (0..=255).collect();
        assert!(printable(&all, 10_000).chars().all(is_printable));
    }

    #[test]
    fn a_long_line_is_cut_and_says_so() {
        let line = printable(&[b'x'; 5000], 100);
        assert_eq!(line.len(), 103);
        assert!(line.ends_with("..."));
        let argv = vec![b"word".to_vec(); 4096];
        let line = command_line(&argv, 300);
        assert!(line.len() < 330 && line.ends_with(" ..."));
    }

    #[test]
    fn arguments_with_blanks_and_empty_ones_can_be_told_apart() {
        let argv = [b"ip".to_vec(), b"a b".to_vec(), Vec::new(), b"it's".to_vec()];
        assert_eq!(command_line(&argv, 100), "ip 'a b' '' 'it\\'s'");
    }
}
