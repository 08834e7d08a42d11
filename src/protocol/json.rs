//! JSON, strictly: what two parsers could read in two ways is refused.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Arrays and objects in each other, at most.
pub const MAX_DEPTH: usize = 64;

/// Parses one JSON text.
///
/// # Errors
/// What is wrong and where: no UTF-8, no JSON, something behind it, a key twice in one object, a NUL character in a string,
/// more than [`MAX_DEPTH`] levels.
pub fn parse(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to()))?;
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0 }.deserialize(&mut parser).map_err(|error| error.to_string())?;
    parser.end().map_err(|error| error.to_string())?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

fn text<E: serde::de::Error>(text: String) -> Result<String, E> {
    if text.contains('\0') {
        return Err(E::custom("a string holds a NUL character"));
    }
    Ok(text)
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a number"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        text(value.to_owned()).map(Value::String)
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        text(value).map(Value::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let key = text(key)?;
            if members.contains_key(&key) {
                return Err(A::Error::custom(format_args!("key {key:?} twice in one object")));
            }
            let value = access.next_value_seed(inner)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_plain_json_then_it_is_read_as_serde_json_reads_it() {
        let source = r#"{"a": [1, -2, 2.5, null, true, "x\u00e4"], "b": {}}"#;
        assert_eq!(parse(source.as_bytes()).unwrap(), serde_json::from_str::<Value>(source).unwrap());
    }

    #[test]
    fn given_ambiguous_json_then_it_is_refused_and_named() {
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        for (source, says) in [
            (&br#"{"a":1,"a":2}"#[..], "twice"),
            (br#"{"a":1,"\u0061":2}"#, "twice"),
            (br#"{"x":[{"a":1,"a":2}]}"#, "twice"),
            (br#"{} {}"#, "trailing"),
            (br#"{}x"#, "trailing"),
            (br#"["a\u0000b"]"#, "NUL"),
            (br#"{"a\u0000b":1}"#, "NUL"),
            (b"[\"\xff\"]", "UTF-8"),
            (b"", "EOF"),
            (b"{", "EOF"),
            (br#"["\ud800x"]"#, "hex escape"),
            (br#"[1e999]"#, "out of range"),
            (deep.as_bytes(), "deeper"),
        ] {
            let error = parse(source).unwrap_err();
            assert!(error.contains(says), "{}: {error}", String::from_utf8_lossy(source));
        }
        let allowed = format!("{}{}", "[".repeat(64), "]".repeat(64));
        assert!(parse(allowed.as_bytes()).is_ok());
        let bottomless = "[".repeat(200_000);
        assert!(parse(bottomless.as_bytes()).is_err());
    }
}
