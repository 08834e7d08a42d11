//! `ROOTWRAP_ARGV`: an argument list as one JSON array that gives back the exact bytes.
//!
//! An argument that is UTF-8 is a JSON string. One that is not is an object with one member, `{"base64":"..."}` (RFC 4648 with
//! padding): no string looks like that, so both can be told apart, and any JSON parser reads both. Characters that
//! [`is_printable`] refuses are written as `\uXXXX`; the array is printable text on one line.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

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
        push(&mut json, argument);
        if json.len() >= limit {
            json.truncate(whole);
            json.push(']');
            return (json, true);
        }
    }
    json.push(']');
    (json, false)
}

fn push(json: &mut String, argument: &[u8]) {
    let Ok(text) = std::str::from_utf8(argument) else {
        json.push_str("{\"base64\":\"");
        STANDARD.encode_string(argument, json);
        json.push_str("\"}");
        return;
    };
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if is_printable(c) => json.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    json.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    json.push('"');
}

/// Decodes what [`encode`] made; `None` where it is something else.
#[must_use]
pub fn decode(json: &str) -> Option<Vec<Vec<u8>>> {
    let values: Vec<serde_json::Value> = serde_json::from_str(json).ok()?;
    values.iter().map(argument).collect()
}

fn argument(value: &serde_json::Value) -> Option<Vec<u8>> {
    match value {
        serde_json::Value::String(text) => Some(text.as_bytes().to_vec()),
        serde_json::Value::Object(object) if object.len() == 1 => STANDARD.decode(object.get("base64")?.as_str()?).ok(),
        _ => None,
    }
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
        let literal = br#"{"base64":"/w=="}"#.to_vec();
        round_trip(&[literal.clone(), b"\xff".to_vec()]);
        assert_ne!(encode(&[literal]), encode(&[b"\xff".to_vec()]));
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

    proptest::proptest! {
        #[test]
        fn any_argument_list_comes_back(argv: Vec<Vec<u8>>) {
            round_trip(&argv);
        }
    }
}
