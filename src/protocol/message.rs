//! The envelope: calls and replies as the Varlink specification has them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::Error;
use super::json;

/// A call.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Call {
    /// `io.rootwrap.Run`.
    pub method: String,
    /// Its parameters.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// The caller takes several replies.
    #[serde(skip_serializing_if = "is_false")]
    pub more: bool,
    /// The caller takes no reply: none may be sent.
    #[serde(skip_serializing_if = "is_false")]
    pub oneway: bool,
    /// The caller wants to speak something else afterwards: never granted here.
    #[serde(skip_serializing_if = "is_false")]
    pub upgrade: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_false(value: &bool) -> bool {
    !*value
}

/// Bytes that are no call or no reply. The text says what is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct Malformed(pub String);

fn object(bytes: &[u8]) -> Result<Map<String, Value>, Malformed> {
    match json::parse(bytes).map_err(Malformed)? {
        Value::Object(members) => Ok(members),
        _ => Err(Malformed("not a JSON object".into())),
    }
}

fn flag(members: &mut Map<String, Value>, key: &str) -> Result<bool, Malformed> {
    match members.remove(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(value),
        Some(_) => Err(Malformed(format!("{key:?} is not a boolean"))),
    }
}

fn parameters(members: &mut Map<String, Value>) -> Result<Map<String, Value>, Malformed> {
    match members.remove("parameters") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(parameters)) => Ok(parameters),
        Some(_) => Err(Malformed("\"parameters\" is not an object".into())),
    }
}

fn nothing_left(members: &Map<String, Value>) -> Result<(), Malformed> {
    match members.keys().next() {
        None => Ok(()),
        Some(key) => Err(Malformed(format!("unknown key {key:?}"))),
    }
}

impl Call {
    /// A call of `method`.
    #[must_use]
    pub fn new(method: impl Into<String>, parameters: Map<String, Value>) -> Self {
        Self {
            method: method.into(),
            parameters,
            ..Self::default()
        }
    }

    /// Reads a call from a message's bytes.
    ///
    /// # Errors
    /// [`Malformed`]: also for keys that the specification does not have, and for several of more, oneway and upgrade at once.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut members = object(bytes)?;
        let method = match members.remove("method") {
            Some(Value::String(method)) => method,
            Some(_) => return Err(Malformed("\"method\" is not a string".into())),
            None => return Err(Malformed("no \"method\"".into())),
        };
        let call = Self {
            method,
            parameters: parameters(&mut members)?,
            more: flag(&mut members, "more")?,
            oneway: flag(&mut members, "oneway")?,
            upgrade: flag(&mut members, "upgrade")?,
        };
        nothing_left(&members)?;
        if u8::from(call.more) + u8::from(call.oneway) + u8::from(call.upgrade) > 1 {
            return Err(Malformed("more, oneway and upgrade exclude each other".into()));
        }
        Ok(call)
    }

    /// Its bytes, without the NUL.
    ///
    /// # Errors
    /// None in practice: all of it is JSON already.
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        encode(self)
    }
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, Malformed> {
    serde_json::to_vec(value).map_err(|error| Malformed(error.to_string()))
}

/// A reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reply {
    /// The qualified name of an error; `None`: success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it says.
    pub parameters: Map<String, Value>,
    /// More replies to the same call follow.
    #[serde(skip_serializing_if = "is_false")]
    pub continues: bool,
}

impl Reply {
    /// A successful reply, the only or last one.
    ///
    /// # Errors
    /// When `parameters` is not a struct or map.
    pub fn success(parameters: &impl Serialize) -> Result<Self, Malformed> {
        match serde_json::to_value(parameters) {
            Ok(Value::Object(parameters)) => Ok(Self {
                parameters,
                ..Self::default()
            }),
            Ok(_) => Err(Malformed("parameters are not an object".into())),
            Err(error) => Err(Malformed(error.to_string())),
        }
    }

    /// A successful reply with more to follow.
    ///
    /// # Errors
    /// As [`success`](Self::success).
    pub fn continuing(parameters: &impl Serialize) -> Result<Self, Malformed> {
        Ok(Self {
            continues: true,
            ..Self::success(parameters)?
        })
    }

    /// Reads a reply from a message's bytes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut members = object(bytes)?;
        let error = match members.remove("error") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name),
            Some(_) => return Err(Malformed("\"error\" is not a string".into())),
        };
        let reply = Self {
            error,
            parameters: parameters(&mut members)?,
            continues: flag(&mut members, "continues")?,
        };
        nothing_left(&members)?;
        Ok(reply)
    }

    /// Its bytes, without the NUL.
    ///
    /// # Errors
    /// None in practice: all of it is JSON already.
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        encode(self)
    }

    /// The reply's parameters as a type, or its error. Unknown members are ignored: a newer service may say more.
    ///
    /// # Errors
    /// The error that the reply holds, or [`Error::Unknown`] for one that cannot be read.
    pub fn into_result<T: for<'de> Deserialize<'de>>(self) -> Result<T, Error> {
        if let Some(name) = self.error {
            return Err(Error::from_wire(name, self.parameters));
        }
        serde_json::from_value(Value::Object(self.parameters)).map_err(|error| Error::Unknown {
            name: "unreadable reply".into(),
            parameters: error.to_string(),
        })
    }
}

impl From<&Error> for Reply {
    fn from(error: &Error) -> Self {
        let (name, parameters) = error.to_wire();
        Self {
            error: Some(name),
            parameters,
            continues: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_call_then_it_survives_the_wire() {
        let mut call = Call::new("io.rootwrap.GetStatus", Map::new());
        assert_eq!(call.encode().unwrap(), br#"{"method":"io.rootwrap.GetStatus"}"#);
        call.oneway = true;
        call.parameters.insert("x".into(), 1.into());
        assert_eq!(Call::parse(&call.encode().unwrap()).unwrap(), call);
    }

    #[test]
    fn given_something_else_than_a_call_then_it_says_what_is_wrong() {
        for (bytes, says) in [
            (&b"[]"[..], "not a JSON object"),
            (b"{}", "no \"method\""),
            (br#"{"method":1}"#, "not a string"),
            (br#"{"method":"a.b","parameters":[]}"#, "not an object"),
            (br#"{"method":"a.b","more":1}"#, "not a boolean"),
            (br#"{"method":"a.b","extra":1}"#, "unknown key"),
            (br#"{"method":"a.b","more":true,"oneway":true}"#, "exclude"),
        ] {
            let error = Call::parse(bytes).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
