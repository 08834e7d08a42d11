//! From a call to a typed method: the one list of everything that can be asked for.

use super::error::Error;
use super::fields::Fields;
use super::io_rootwrap::{Explain, Signal};
use super::message::Call;
use super::run::Run;

/// A method with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// org.varlink.service.GetInfo.
    GetInfo,
    /// org.varlink.service.GetInterfaceDescription, of this interface.
    GetInterfaceDescription(String),
    /// io.rootwrap.Run.
    Run(Box<Run>),
    /// io.rootwrap.Signal.
    Signal(Signal),
    /// io.rootwrap.Explain.
    Explain(Explain),
    /// io.rootwrap.ListFilters.
    ListFilters,
    /// io.rootwrap.Reload.
    Reload,
    /// io.rootwrap.GetStatus.
    GetStatus,
}

impl Method {
    /// Reads a call. Its `more` and `oneway` are the caller's to heed; `upgrade` is refused here.
    ///
    /// # Errors
    /// InterfaceNotFound, MethodNotFound, InvalidParameter, BadRequest.
    pub fn parse(call: Call) -> Result<Self, Error> {
        if call.upgrade {
            return Err(Error::bad_request("no method here upgrades the connection"));
        }
        let mut rest = None;
        let method = match call.method.as_str() {
            "io.rootwrap.Run" => Self::Run(Box::new(Run::parse(call.parameters)?)),
            "io.rootwrap.Signal" => Self::Signal(Signal::parse(call.parameters)?),
            "io.rootwrap.Explain" => Self::Explain(Explain::parse(call.parameters)?),
            "org.varlink.service.GetInterfaceDescription" => {
                let mut fields = Fields::new(call.parameters);
                let interface = Fields::require("interface", fields.string("interface")?)?;
                rest = Some(fields);
                Self::GetInterfaceDescription(interface)
            }
            name => {
                let method = match name {
                    "io.rootwrap.ListFilters" => Self::ListFilters,
                    "io.rootwrap.Reload" => Self::Reload,
                    "io.rootwrap.GetStatus" => Self::GetStatus,
                    "org.varlink.service.GetInfo" => Self::GetInfo,
                    _ => return Err(unknown(name)),
                };
                rest = Some(Fields::new(call.parameters));
                method
            }
        };
        rest.map_or(Ok(()), Fields::finish)?;
        Ok(method)
    }
}

fn unknown(name: &str) -> Error {
    match name.rsplit_once('.') {
        Some((super::io_rootwrap::INTERFACE | super::org_varlink_service::INTERFACE, _)) => Error::MethodNotFound { method: name.into() },
        Some((interface, _)) => Error::InterfaceNotFound {
            interface: interface.into(),
        },
        None => Error::InterfaceNotFound { interface: name.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn parse(name: &str, parameters: serde_json::Value) -> Result<Method, Error> {
        let parameters = parameters.as_object().cloned().unwrap_or_else(Map::new);
        Method::parse(Call::new(name, parameters))
    }

    #[test]
    fn given_unknown_names_then_varlinks_own_errors() {
        let method = |name: &str| Error::MethodNotFound { method: name.into() };
        let interface = |name: &str| Error::InterfaceNotFound { interface: name.into() };
        assert_eq!(parse("io.rootwrap.Sudo", json!({})).unwrap_err(), method("io.rootwrap.Sudo"));
        assert_eq!(
            parse("io.systemd.Manager.X", json!({})).unwrap_err(),
            interface("io.systemd.Manager")
        );
        assert_eq!(parse("Run", json!({})).unwrap_err(), interface("Run"));
    }

    #[test]
    fn given_parameters_that_a_method_has_not_then_refused() {
        for name in [
            "io.rootwrap.Reload",
            "io.rootwrap.GetStatus",
            "io.rootwrap.ListFilters",
            "org.varlink.service.GetInfo",
        ] {
            assert!(parse(name, json!({})).is_ok());
            assert_eq!(parse(name, json!({"uid": 0})).unwrap_err(), Error::invalid("uid"));
        }
        let description = "org.varlink.service.GetInterfaceDescription";
        assert_eq!(parse(description, json!({})).unwrap_err(), Error::invalid("interface"));
        assert_eq!(
            parse(description, json!({"interface": "a.b", "x": 1})).unwrap_err(),
            Error::invalid("x")
        );
        assert_eq!(
            parse("io.rootwrap.Signal", json!({"id": "1", "signal": 0})).unwrap_err(),
            Error::invalid("signal")
        );
        assert_eq!(
            parse("io.rootwrap.Signal", json!({"id": "1", "signal": 65})).unwrap_err(),
            Error::invalid("signal")
        );
    }
}
