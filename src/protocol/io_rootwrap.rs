//! The interface `io.rootwrap`: parameters and replies of every method but Run, which has its own module.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::Error;
use super::fields::Fields;
use super::run::Wanted;

/// Its name.
pub const INTERFACE: &str = "io.rootwrap";

/// Its definition, as org.varlink.service hands it out.
pub const DESCRIPTION: &str = include_str!("io.rootwrap.varlink");

/// Parameters of Signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Of Run's reply.
    pub id: String,
    /// signal(7); 1 to 64.
    pub signal: i32,
}

impl Signal {
    /// Reads the parameters of a call.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub fn parse(parameters: Map<String, Value>) -> Result<Self, Error> {
        let mut fields = Fields::new(parameters);
        let signal = Self {
            id: Fields::require("id", fields.string("id")?)?,
            signal: Fields::require("signal", fields.int("signal")?)?,
        };
        fields.finish()?;
        if (1..=64).contains(&signal.signal) {
            Ok(signal)
        } else {
            Err(Error::invalid("signal"))
        }
    }

    /// The parameters of a call.
    #[must_use]
    pub fn parameters(&self) -> Map<String, Value> {
        Map::from_iter([("id".into(), self.id.clone().into()), ("signal".into(), self.signal.into())])
    }
}

/// Parameters of Explain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explain {
    /// The command.
    pub wanted: Wanted,
    /// As if a working directory were passed.
    pub has_cwd: bool,
    /// As if standard input were passed.
    pub has_stdin: bool,
}

impl Explain {
    /// Reads the parameters of a call.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`], [`Error::BadRequest`].
    pub fn parse(parameters: Map<String, Value>) -> Result<Self, Error> {
        let mut fields = Fields::new(parameters);
        let explain = Self {
            wanted: Wanted::take(&mut fields)?,
            has_cwd: fields.flag("hasCwd")?,
            has_stdin: fields.flag("hasStdin")?,
        };
        fields.finish()?;
        Ok(explain)
    }

    /// The parameters of a call.
    #[must_use]
    pub fn parameters(&self) -> Map<String, Value> {
        let mut parameters = Map::new();
        self.wanted.put(&mut parameters);
        for (name, value) in [("hasCwd", self.has_cwd), ("hasStdin", self.has_stdin)] {
            if value {
                parameters.insert(name.into(), true.into());
            }
        }
        parameters
    }
}

/// With what privileges a command runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Privileges {
    /// User name or number, as the filter has it.
    pub run_as: String,
    /// `net_admin` and so on, or only `all`.
    pub capabilities: Vec<String>,
}

/// Reply of Explain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainReply {
    /// The decision.
    pub allowed: bool,
    /// Denied: for machines, as in NotPermitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Denied: for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Allowed: by which filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Allowed: the filter of the inner command, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_filter: Option<String>,
    /// Allowed: what would be executed; absent where none of the filter's executables exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<String>,
    /// Allowed: with what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privileges: Option<Privileges>,
    /// Every filter of that command that the caller may use, in order.
    pub tried: Vec<Tried>,
}

/// One filter that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// Its name.
    pub filter: String,
    /// `file:line`.
    pub source: String,
    /// Absent: it matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<Mismatch>,
}

/// The first thing that did not match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Index into argv of the first argument that nothing could take; the length of argv where more was expected. Absent: it is not about an argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<u32>,
    /// What was expected there, in words.
    pub expected: String,
}

/// Reply of ListFilters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListFiltersReply {
    /// Those that the caller may use, in the order in which they are tried.
    pub filters: Vec<Filter>,
}

/// One filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// Its name.
    pub name: String,
    /// `file:line`.
    pub source: String,
    /// The spellings of its command.
    pub command: Vec<String>,
    /// What arguments it takes, for people: `link set dev INTERFACE mtu 68..65535`.
    pub arguments: String,
    /// With what it runs.
    pub privileges: Privileges,
    /// Only behind the command of another filter.
    #[serde(default)]
    pub inner_only: bool,
}

/// Reply of Reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadReply {
    /// SHA-256 of the policy now in force, in hexadecimal.
    pub policy_hash: String,
    /// How many filters it has.
    pub filters: u64,
    /// Rendered diagnostics that are no errors.
    pub warnings: Vec<String>,
}

/// Reply of GetStatus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReply {
    /// Of the service.
    pub version: String,
    /// Process id of rootwrapd.
    pub pid: u32,
    /// Microseconds since start.
    #[serde(rename = "uptimeUSec")]
    pub uptime_usec: u64,
    /// SHA-256 of the policy in force, in hexadecimal; absent: there is none and every command is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_hash: Option<String>,
    /// Microseconds since it came into force.
    #[serde(rename = "policyAgeUSec", default, skip_serializing_if = "Option::is_none")]
    pub policy_age_usec: Option<u64>,
    /// How many filters it has.
    pub filters: u64,
    /// Why the policy on disk is not in force, rendered; only root sees it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_errors: Vec<String>,
    /// The service is stopping.
    pub draining: bool,
    /// Of all callers for root, else of the caller's user.
    pub counters: Counters,
    /// One a user: all of them for root, else the caller's own.
    pub callers: Vec<CallerStatus>,
}

/// Counted since the service's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Commands allowed.
    pub allowed: u64,
    /// Commands denied.
    pub denied: u64,
    /// Commands that were allowed and could not be started.
    pub launch_failed: u64,
    /// Calls refused as Busy.
    pub busy: u64,
    /// Calls that made no sense.
    pub bad_requests: u64,
}

/// What one user has going.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerStatus {
    /// Who.
    pub uid: u32,
    /// Open connections.
    pub connections: u32,
    /// Running commands.
    pub commands: u32,
    /// Since the service's start (or since it last forgot an idle user).
    pub counters: Counters,
}
