//! `ROOTWRAP_ARGV`: an argument list as one JSON array of strings that gives back the exact bytes.
//!
//! UTF-8 stands as it is. A byte that is not part of UTF-8, and the byte 0, is written as U+0000 and two hexadecimal digits:
//! `caf\u0000e9` is `caf` and the byte 0xe9. No argument of a command can hold U+0000, so text never looks like an escape; and
//! where a refused request does hold one, it is `\u000000`. Characters that [`is_printable`] refuses are written as `\uXXXX`, so
//! the array is printable text on one line.

use super::text::is_printable;

/// Encodes an argument list.
#[must_use]
pub fn encode(argv: &[Vec<u8>]) -> String {
    encode_within(argv, usize::MAX).0
}

/// As [`encode`], leaving out the last arguments where the array would be longer than `limit` bytes; says whether it did.
#[must_use]
pub fn encode_within(argv: &[Vec<u8>], limit: usize) -> (String, bool) {
    let mut json = String::from("[");
    for (index, argument) in argv.iter().enumerate() {
        let whole = json.len();
        if index > 0 {
            json.push(',');
        }
        push(&mut json, argument, limit);
        if json.len() >= limit {
            json.truncate(whole);
            json.push(']');
            return (json, true);
        }
    }
    json.push(']');
    (json, false)
}

/// Stops soon after the limit: what is beyond it is not kept.
fn push(json: &mut String, argument: &[u8], limit: usize) {
    json.push('"');
    for chunk in argument.utf8_chunks() {
        for character in chunk.valid().chars() {
            if json.len() >= limit {
                return;
            }
            match character {
                '"' => json.push_str("\\\""),
                '\\' => json.push_str("\\\\"),
                '\0' => push_byte(json, 0),
                c if is_printable(c) => json.push(c),
                c => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        json.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        for byte in chunk.invalid() {
            if json.len() >= limit {
                return;
            }
            push_byte(json, *byte);
        }
    }
    json.push('"');
}

fn push_byte(json: &mut String, byte: u8) {
    json.push_str(&format!("\\u0000{byte:02x}"));
}

/// Decodes what [`encode`] made; `None` where it is something else.
#[must_use]
pub fn decode(json: &str) -> Option<Vec<Vec<u8>>> {
    let texts: Vec<String> = serde_json::from_str(json).ok()?;
    texts.iter().map(|text| argument(text)).collect()
}

fn argument(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('\0');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(argv: &[Vec<u8>]) {
        let json = encode(argv);
        assert!(json.chars().all(is_printable), "{json}");
        assert_eq!(decode(&json).as_deref(), Some(argv));
    }

    #[test]
    fn text_and_bytes_come_back_exactly_in_order_with_duplicates() {
        round_trip(&[]);
        round_trip(&[b"ip".to_vec(), Vec::new(), b"z".to_vec(), b"a".to_vec(), b"z".to_vec()]);
        round_trip(&["\u{202e}\u{1f600}\u{10ffff}\"\\\n\0".as_bytes().to_vec(), b"\xff".to_vec()]);
        round_trip(&(0..=255).map(|b| vec![b]).collect::<Vec<_>>());
        round_trip(&[(0..=255).collect()]);
    }

    #[test]
    fn text_that_looks_like_an_escape_is_told_apart_from_one() {
        for literal in [&b"\\u0000ff"[..], b"\0ff", b"\xef\xbf\xbd"] {
            round_trip(&[literal.to_vec(), b"\xff".to_vec()]);
            assert_ne!(encode(&[literal.to_vec()]), encode(&[b"\xff".to_vec()]));
        }
    }

    #[test]
    fn the_most_arguments_that_a_request_can_have_survive() {
        round_trip(&(0..4096).map(|i| format!("argument {i}").into_bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole_and_reported() {
        let argv = vec![vec![b'x'; 100]; 10];
        let (json, cut) = encode_within(&argv, 350);
        assert!(cut && json.len() <= 351);
        assert_eq!(decode(&json).unwrap().len(), 3);
    }

    #[test]
    fn one_argument_beyond_the_limit_is_left_out_and_costs_no_more_than_the_limit() {
        for long in [vec![b'x'; 1 << 20], vec![0xff; 1 << 20], vec![1; 1 << 20]] {
            let (json, cut) = encode_within(&[b"ip".to_vec(), long], 1000);
            assert_eq!((json.as_str(), cut), ("[\"ip\"]", true));
            assert!(json.capacity() < 10_000, "{}", json.capacity());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_argument_list_comes_back(argv: Vec<Vec<u8>>) {
            round_trip(&argv);
        }
    }
}
