//! Every error that a reply can hold: those of `io.rootwrap` and those of `org.varlink.service`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A typed error. `Display` is for people; the wire form is [`to_wire`](Self::to_wire).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "error", content = "parameters")]
pub enum Error {
    /// No filter allows it.
    #[error("not permitted: {message}")]
    #[serde(rename = "io.rootwrap.NotPermitted")]
    NotPermitted {
        /// For machines: `no-filter`, `arguments-mismatch` and so on.
        reason: String,
        /// For people.
        message: String,
    },
    /// A filter allows it, but none of its executables exists.
    #[error("{command}: no such executable")]
    #[serde(rename = "io.rootwrap.NoSuchExecutable")]
    NoSuchExecutable {
        /// As the caller named it.
        command: String,
    },
    /// A limit is reached: try again later.
    #[error("busy: {what}")]
    #[serde(rename = "io.rootwrap.Busy")]
    Busy {
        /// Which limit: `connections`, `commands`, `filter`, ...
        what: String,
    },
    /// The command did not run: a step before exec failed.
    #[error("the command could not be started: {step}: {}", std::io::Error::from_raw_os_error(*errno))]
    #[serde(rename = "io.rootwrap.LaunchFailed")]
    LaunchFailed {
        /// Which step.
        step: String,
        /// errno(3).
        errno: i32,
    },
    /// The call makes no sense, whoever makes it.
    #[error("bad request: {message}")]
    #[serde(rename = "io.rootwrap.BadRequest")]
    BadRequest {
        /// What is wrong.
        message: String,
    },
    /// The filters on disk are at fault and there are no older ones.
    #[error("the service has no valid policy: ask the administrator to run `rootwrapctl check`")]
    #[serde(rename = "io.rootwrap.PolicyUnavailable")]
    PolicyUnavailable {},
    /// The command did not run: its record could not be handed to the journal.
    #[error("the journal takes no records, so nothing may run")]
    #[serde(rename = "io.rootwrap.AuditUnavailable")]
    AuditUnavailable {},
    /// The command ran into its time limit and was ended.
    #[error("timed out")]
    #[serde(rename = "io.rootwrap.TimedOut")]
    TimedOut {
        /// The limit, in microseconds.
        #[serde(rename = "timeoutUSec")]
        timeout_usec: u64,
    },
    /// Whether the command ran, or how it ended, cannot be told.
    #[error("the outcome is unknown: {message}")]
    #[serde(rename = "io.rootwrap.OutcomeUnknown")]
    OutcomeUnknown {
        /// What happened.
        message: String,
    },
    /// The new policy is void; the old one stays.
    #[error("the policy was not reloaded: {} errors", .diagnostics.len())]
    #[serde(rename = "io.rootwrap.ReloadFailed")]
    ReloadFailed {
        /// All that is wrong, each as `file:line:col: error: ...` over several lines.
        diagnostics: Vec<String>,
    },
    /// No such command of this caller is running on this connection.
    #[error("no command {id} of yours is running")]
    #[serde(rename = "io.rootwrap.NoSuchCommand")]
    NoSuchCommand {
        /// The id that was given.
        id: String,
    },
    /// org.varlink.service.
    #[error("no interface {interface}")]
    #[serde(rename = "org.varlink.service.InterfaceNotFound")]
    InterfaceNotFound {
        /// Which one.
        interface: String,
    },
    /// org.varlink.service.
    #[error("no method {method}")]
    #[serde(rename = "org.varlink.service.MethodNotFound")]
    MethodNotFound {
        /// Which one.
        method: String,
    },
    /// org.varlink.service.
    #[error("{method} is not implemented")]
    #[serde(rename = "org.varlink.service.MethodNotImplemented")]
    MethodNotImplemented {
        /// Which one.
        method: String,
    },
    /// org.varlink.service: a parameter is unknown, missing, of the wrong type or out of range.
    #[error("invalid parameter: {parameter}")]
    #[serde(rename = "org.varlink.service.InvalidParameter")]
    InvalidParameter {
        /// Which one.
        parameter: String,
    },
    /// org.varlink.service: this method is for root only.
    #[error("only root may do this")]
    #[serde(rename = "org.varlink.service.PermissionDenied")]
    PermissionDenied {},
    /// org.varlink.service: the method must be called with `more`.
    #[error("the method must be called with `more`")]
    #[serde(rename = "org.varlink.service.ExpectedMore")]
    ExpectedMore {},
    /// An error that this version does not know. Never sent.
    #[error("{name} {parameters}")]
    #[serde(skip)]
    Unknown {
        /// Its qualified name.
        name: String,
        /// Its parameters as JSON.
        parameters: String,
    },
}

impl Error {
    /// [`Error::BadRequest`].
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::BadRequest { message: message.into() }
    }

    /// [`Error::InvalidParameter`].
    #[must_use]
    pub fn invalid(parameter: impl Into<String>) -> Self {
        Self::InvalidParameter {
            parameter: parameter.into(),
        }
    }

    /// The qualified name and the parameters.
    #[must_use]
    pub fn to_wire(&self) -> (String, Map<String, Value>) {
        if let Ok(Value::Object(mut members)) = serde_json::to_value(self) {
            let parameters = match members.remove("parameters") {
                Some(Value::Object(parameters)) => parameters,
                _ => Map::new(),
            };
            if let Some(Value::String(name)) = members.remove("error") {
                return (name, parameters);
            }
        }
        // `Unknown` only: it is for reading.
        (
            "io.rootwrap.BadRequest".into(),
            Map::from_iter([("message".into(), self.to_string().into())]),
        )
    }

    /// Reads an error; one that this version does not know becomes [`Error::Unknown`].
    #[must_use]
    pub fn from_wire(name: String, parameters: Map<String, Value>) -> Self {
        let text = Value::Object(parameters.clone()).to_string();
        let members = Map::from_iter([("error".into(), name.clone().into()), ("parameters".into(), parameters.into())]);
        serde_json::from_value(Value::Object(members)).unwrap_or(Self::Unknown { name, parameters: text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_errors_then_they_survive_the_wire() {
        for error in [
            Error::NotPermitted {
                reason: "no-filter".into(),
                message: "m".into(),
            },
            Error::PolicyUnavailable {},
            Error::TimedOut { timeout_usec: 5 },
            Error::LaunchFailed {
                step: "exec".into(),
                errno: 2,
            },
            Error::invalid("argv"),
        ] {
            let (name, parameters) = error.to_wire();
            assert_eq!(Error::from_wire(name, parameters), error);
        }
    }

    #[test]
    fn given_an_error_of_the_future_then_it_is_kept() {
        let error = Error::from_wire("io.rootwrap.Quota".into(), Map::new());
        assert_eq!(error.to_string(), "io.rootwrap.Quota {}");
    }
}
