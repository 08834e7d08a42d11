//! The interface org.varlink.service, which every Varlink service has.

use serde::{Deserialize, Serialize};

use super::error::Error;
use super::io_rootwrap;

/// Its name.
pub const INTERFACE: &str = "org.varlink.service";

/// Its definition.
pub const DESCRIPTION: &str = include_str!("org.varlink.service.varlink");

/// Reply of GetInfo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// Who makes the service.
    pub vendor: String,
    /// Its name.
    pub product: String,
    /// Its version.
    pub version: String,
    /// Where it is at home.
    pub url: String,
    /// The interfaces it has.
    pub interfaces: Vec<String>,
}

impl Info {
    /// This service's.
    #[must_use]
    pub fn own() -> Self {
        Self {
            vendor: "rootwrap".into(),
            product: "rootwrapd".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            url: "https://varlink.org".into(),
            interfaces: vec![INTERFACE.into(), io_rootwrap::INTERFACE.into()],
        }
    }
}

/// Reply of GetInterfaceDescription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// In the interface definition language of Varlink.
    pub description: String,
}

impl Description {
    /// Of one of our interfaces.
    ///
    /// # Errors
    /// [`Error::InterfaceNotFound`].
    pub fn of(interface: &str) -> Result<Self, Error> {
        let description = match interface {
            INTERFACE => DESCRIPTION,
            io_rootwrap::INTERFACE => io_rootwrap::DESCRIPTION,
            _ => {
                return Err(Error::InterfaceNotFound {
                    interface: interface.into(),
                });
            }
        };
        Ok(Self {
            description: description.into(),
        })
    }
}
