//! A call's parameters, taken out one by one; what is left over at the end is unknown and refused.
//!
//! Every error is `org.varlink.service.InvalidParameter` with the name of the parameter. `null` is the same as absent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::error::Error;

/// The parameters that have not been taken yet.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// All of a call's.
    #[must_use]
    pub fn new(parameters: Map<String, Value>) -> Self {
        Self(parameters)
    }

    fn take<T>(&mut self, name: &str, read: impl FnOnce(Value) -> Option<T>) -> Result<Option<T>, Error> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| Error::invalid(name)),
        }
    }

    /// `?string`.
    ///
    /// # Errors
    /// Something else.
    pub fn string(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.take(name, string)
    }

    /// `?bool`; absent is false.
    ///
    /// # Errors
    /// Something else.
    pub fn flag(&mut self, name: &str) -> Result<bool, Error> {
        Ok(self.take(name, |value| value.as_bool())?.unwrap_or(false))
    }

    /// `?int` of the type that is asked for.
    ///
    /// # Errors
    /// Something else, or out of range.
    pub fn int<T: TryFrom<i64>>(&mut self, name: &str) -> Result<Option<T>, Error> {
        self.take(name, |value| T::try_from(value.as_i64()?).ok())
    }

    /// `?string`: bytes in base64.
    ///
    /// # Errors
    /// Something else.
    pub fn base64(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.take(name, |value| STANDARD.decode(value.as_str()?).ok())
    }

    /// `?[]string`, and `?[]string` in base64 under `name` + `Base64`, of which only one may hold something. No NUL bytes.
    ///
    /// # Errors
    /// Both, or something else.
    pub fn byte_strings(&mut self, name: &str) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let plain = self.take(name, |value| list(value, |item| string(item).map(String::into_bytes)))?;
        let encoded_name = format!("{name}Base64");
        let encoded = self.take(&encoded_name, |value| list(value, bytes_without_nul))?;
        either(plain, encoded, Vec::is_empty, encoded_name)
    }

    /// `?[string]string`, and the same with values in base64 under `name` + `Base64`; sorted by name. No NUL bytes.
    ///
    /// # Errors
    /// Both, a name that is empty or holds `=`, or something else.
    pub fn environment(&mut self, name: &str) -> Result<Vec<Assignment>, Error> {
        let plain = self.take(name, |value| assignments(value, |item| string(item).map(String::into_bytes)))?;
        let encoded_name = format!("{name}Base64");
        let encoded = self.take(&encoded_name, |value| assignments(value, bytes_without_nul))?;
        Ok(either(plain, encoded, Vec::is_empty, encoded_name)?.unwrap_or_default())
    }

    /// The parameter must be there.
    ///
    /// # Errors
    /// It is not.
    pub fn require<T>(name: &str, value: Option<T>) -> Result<T, Error> {
        value.ok_or_else(|| Error::invalid(name))
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// The first unknown parameter.
    pub fn finish(self) -> Result<(), Error> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Error::invalid(name)),
        }
    }
}

fn string(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn bytes_without_nul(value: Value) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(value.as_str()?).ok()?;
    (!bytes.contains(&0)).then_some(bytes)
}

fn list<T>(value: Value, read: impl FnMut(Value) -> Option<T>) -> Option<Vec<T>> {
    match value {
        Value::Array(items) => items.into_iter().map(read).collect(),
        _ => None,
    }
}

/// A variable: name and value.
pub type Assignment = (Vec<u8>, Vec<u8>);

fn assignments(value: Value, mut read: impl FnMut(Value) -> Option<Vec<u8>>) -> Option<Vec<Assignment>> {
    let Value::Object(members) = value else {
        return None;
    };
    members
        .into_iter()
        .map(|(name, value)| {
            let good = !name.is_empty() && !name.contains(['=', '\0']);
            good.then(|| Some((name.into_bytes(), read(value)?))).flatten()
        })
        .collect()
}

/// The encoded form replaces the plain one; a plain one beside it must be empty, or two readers could see two commands.
fn either<T>(plain: Option<T>, encoded: Option<T>, is_empty: impl Fn(&T) -> bool, encoded_name: String) -> Result<Option<T>, Error> {
    match (plain, encoded) {
        (Some(plain), Some(_)) if !is_empty(&plain) => Err(Error::invalid(encoded_name)),
        (_, Some(encoded)) => Ok(Some(encoded)),
        (plain, None) => Ok(plain),
    }
}

/// Puts byte strings where [`Fields::byte_strings`] finds them: plain where all of them are UTF-8.
pub fn put_byte_strings(parameters: &mut Map<String, Value>, name: &str, values: &[Vec<u8>]) {
    let plain: Option<Vec<&str>> = values.iter().map(|value| std::str::from_utf8(value).ok()).collect();
    if let Some(plain) = plain {
        parameters.insert(name.into(), plain.into());
    } else {
        let encoded: Vec<String> = values.iter().map(|value| STANDARD.encode(value)).collect();
        parameters.insert(name.into(), Value::Array(Vec::new()));
        parameters.insert(format!("{name}Base64"), encoded.into());
    }
}

/// Puts variables where [`Fields::environment`] finds them. Names that are not UTF-8 are replaced lossily: no filter can name them.
pub fn put_environment(parameters: &mut Map<String, Value>, name: &str, variables: &[Assignment]) {
    if variables.is_empty() {
        return;
    }
    let key = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let plain: Option<Map<String, Value>> = variables
        .iter()
        .map(|(name, value)| Some((key(name), std::str::from_utf8(value).ok()?.into())))
        .collect();
    if let Some(plain) = plain {
        parameters.insert(name.into(), Value::Object(plain));
    } else {
        let encoded = variables.iter().map(|(name, value)| (key(name), STANDARD.encode(value).into()));
        parameters.insert(format!("{name}Base64"), Value::Object(encoded.collect()));
    }
}

/// Bytes in base64, for serde's `with`.
pub mod base64_bytes {
    use super::{Engine, STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// # Errors
    /// The serializer's.
    #[allow(clippy::ref_option)] // serde's signature
    pub fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => serializer.serialize_some(&STANDARD.encode(bytes)),
            None => serializer.serialize_none(),
        }
    }

    /// # Errors
    /// No base64.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text: Option<String> = Option::deserialize(deserializer)?;
        text.map(|text| STANDARD.decode(text).map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        match value {
            Value::Object(members) => Fields::new(members),
            _ => panic!("an object"),
        }
    }

    #[test]
    fn given_arguments_of_any_bytes_then_they_come_back_exactly() {
        for argv in [
            vec![b"ip".to_vec(), b"".to_vec(), "\u{202e}\n".into()],
            vec![b"ip".to_vec(), (1..=255).collect(), b"\\".to_vec()],
            vec![],
        ] {
            let mut parameters = Map::new();
            put_byte_strings(&mut parameters, "argv", &argv);
            let mut fields = Fields::new(parameters);
            assert_eq!(fields.byte_strings("argv").unwrap(), Some(argv));
            fields.finish().unwrap();
        }
    }

    #[test]
    fn given_two_argument_lists_then_refused() {
        let error = fields(json!({"argv": ["ls"], "argvBase64": ["cm0="]}))
            .byte_strings("argv")
            .unwrap_err();
        assert_eq!(error, Error::invalid("argvBase64"));
        let empty_beside = fields(json!({"argv": [], "argvBase64": ["cm0="]})).byte_strings("argv").unwrap();
        assert_eq!(empty_beside, Some(vec![b"rm".to_vec()]));
    }

    #[test]
    fn given_wrong_values_then_the_parameter_is_named() {
        let nul = json!({"argvBase64": ["AA=="]});
        assert_eq!(fields(nul).byte_strings("argv").unwrap_err(), Error::invalid("argvBase64"));
        assert_eq!(
            fields(json!({"argv": ["a", 1]})).byte_strings("argv").unwrap_err(),
            Error::invalid("argv")
        );
        assert_eq!(fields(json!({"t": -1})).int::<u64>("t").unwrap_err(), Error::invalid("t"));
        assert_eq!(fields(json!({"t": 1.5})).int::<u64>("t").unwrap_err(), Error::invalid("t"));
        assert_eq!(
            fields(json!({"e": {"A=B": "x"}})).environment("e").unwrap_err(),
            Error::invalid("e")
        );
        assert_eq!(fields(json!({"e": {"": "x"}})).environment("e").unwrap_err(), Error::invalid("e"));
        assert_eq!(fields(json!({"x": 1})).finish().unwrap_err(), Error::invalid("x"));
        assert_eq!(fields(json!({"s": null})).string("s").unwrap(), None);
    }

    #[test]
    fn given_a_variable_that_is_not_utf8_then_it_comes_back_exactly() {
        let variables = vec![(b"A".to_vec(), b"\xff".to_vec()), (b"B".to_vec(), b"b".to_vec())];
        let mut parameters = Map::new();
        put_environment(&mut parameters, "environment", &variables);
        assert_eq!(Fields::new(parameters).environment("environment").unwrap(), variables);
    }
}
