//! `io.rootwrap.Run`, its descriptors, and what the caller asks for that `Explain` shares with it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::Error;
use super::fields::{Fields, base64_bytes, put_byte_strings, put_environment};
use super::{MAX_ARGUMENTS, MAX_DESCRIPTORS};
use crate::sys::passed::PassedFd;

/// What a decision is about: the parameters that Run and Explain share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The command and its arguments, byte for byte; from the wire never empty, at most [`MAX_ARGUMENTS`], no NUL bytes.
    pub argv: Vec<Vec<u8>>,
    /// Variables; from the wire sorted by name, each name once and not empty.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Only this profile is consulted.
    pub profile: Option<String>,
    /// Only this filter may allow it.
    pub filter: Option<String>,
}

impl Wanted {
    pub(super) fn take(fields: &mut Fields) -> Result<Self, Error> {
        let argv = Fields::require("argv", fields.byte_strings("argv")?)?;
        if argv.is_empty() {
            return Err(Error::bad_request("argv is empty"));
        }
        if argv.len() > MAX_ARGUMENTS {
            return Err(Error::bad_request(format!("argv has more than {MAX_ARGUMENTS} elements")));
        }
        Ok(Self {
            argv,
            environment: fields.environment("environment")?,
            profile: fields.string("profile")?,
            filter: fields.string("filter")?,
        })
    }

    pub(super) fn put(&self, parameters: &mut Map<String, Value>) {
        put_byte_strings(parameters, "argv", &self.argv);
        put_environment(parameters, "environment", &self.environment);
        put(parameters, "profile", self.profile.clone());
        put(parameters, "filter", self.filter.clone());
    }
}

pub(super) fn put(parameters: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        parameters.insert(name.into(), value.into());
    }
}

/// Which descriptor of the message is which; each index at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescriptorIndexes {
    /// Standard input.
    pub stdin: Option<usize>,
    /// Standard output.
    pub stdout: Option<usize>,
    /// Standard error.
    pub stderr: Option<usize>,
    /// The directory to run in.
    pub cwd: Option<usize>,
}

/// The descriptors of one Run, by their purpose.
#[derive(Debug, Default)]
pub struct RunDescriptors {
    /// Standard input; `None`: [`Run::stdin`], else /dev/null.
    pub stdin: Option<PassedFd>,
    /// Standard output; `None`: captured.
    pub stdout: Option<PassedFd>,
    /// Standard error; `None`: captured.
    pub stderr: Option<PassedFd>,
    /// The directory to run in.
    pub cwd: Option<PassedFd>,
}

/// Parameters of Run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The command.
    pub wanted: Wanted,
    /// Data for standard input; not together with a descriptor for it.
    pub stdin: Option<Vec<u8>>,
    /// Which descriptor is which.
    pub descriptors: DescriptorIndexes,
    /// The command is ended after this many microseconds; never 0. A shorter limit of the filter wins.
    pub timeout_usec: Option<u64>,
}

impl Run {
    /// Reads the parameters of a call.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`], [`Error::BadRequest`].
    pub fn parse(parameters: Map<String, Value>) -> Result<Self, Error> {
        let mut fields = Fields::new(parameters);
        let wanted = Wanted::take(&mut fields)?;
        let text = fields.string("stdin")?.map(String::into_bytes);
        let bytes = fields.base64("stdinBase64")?;
        if text.is_some() && bytes.is_some() {
            return Err(Error::invalid("stdinBase64"));
        }
        let run = Self {
            wanted,
            stdin: text.or(bytes),
            descriptors: DescriptorIndexes {
                stdin: index(&mut fields, "stdinFileDescriptor")?,
                stdout: index(&mut fields, "stdoutFileDescriptor")?,
                stderr: index(&mut fields, "stderrFileDescriptor")?,
                cwd: index(&mut fields, "cwdFileDescriptor")?,
            },
            timeout_usec: fields.int("timeoutUSec")?,
        };
        fields.finish()?;
        if run.timeout_usec == Some(0) {
            return Err(Error::invalid("timeoutUSec"));
        }
        if run.stdin.is_some() && run.descriptors.stdin.is_some() {
            return Err(Error::invalid("stdinFileDescriptor"));
        }
        Ok(run)
    }

    /// The parameters of a call.
    #[must_use]
    pub fn parameters(&self) -> Map<String, Value> {
        let mut parameters = Map::new();
        self.wanted.put(&mut parameters);
        if let Some(data) = &self.stdin {
            put_stdin(&mut parameters, data);
        }
        put(&mut parameters, "stdinFileDescriptor", self.descriptors.stdin);
        put(&mut parameters, "stdoutFileDescriptor", self.descriptors.stdout);
        put(&mut parameters, "stderrFileDescriptor", self.descriptors.stderr);
        put(&mut parameters, "cwdFileDescriptor", self.descriptors.cwd);
        put(&mut parameters, "timeoutUSec", self.timeout_usec);
        parameters
    }

    /// Gives every descriptor of the message its purpose.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for an index without a descriptor or used twice, [`Error::BadRequest`] for a descriptor that no
    /// parameter names. All descriptors are closed then.
    pub fn claim(&self, fds: Vec<PassedFd>) -> Result<RunDescriptors, Error> {
        let mut rest: Vec<Option<PassedFd>> = fds.into_iter().map(Some).collect();
        let mut take = |name: &str, index: Option<usize>| match index {
            None => Ok(None),
            Some(index) => match rest.get_mut(index).and_then(Option::take) {
                Some(fd) => Ok(Some(fd)),
                None => Err(Error::invalid(name)),
            },
        };
        let claimed = RunDescriptors {
            stdin: take("stdinFileDescriptor", self.descriptors.stdin)?,
            stdout: take("stdoutFileDescriptor", self.descriptors.stdout)?,
            stderr: take("stderrFileDescriptor", self.descriptors.stderr)?,
            cwd: take("cwdFileDescriptor", self.descriptors.cwd)?,
        };
        match rest.iter().position(Option::is_some) {
            None => Ok(claimed),
            Some(index) => Err(Error::bad_request(format!("no parameter names descriptor {index} of the message"))),
        }
    }
}

fn index(fields: &mut Fields, name: &str) -> Result<Option<usize>, Error> {
    match fields.int::<usize>(name)? {
        Some(index) if index >= MAX_DESCRIPTORS => Err(Error::invalid(name)),
        index => Ok(index),
    }
}

/// As text where that is possible: JSON has no bytes, and a NUL character is refused.
fn put_stdin(parameters: &mut Map<String, Value>, data: &[u8]) {
    use base64::Engine;
    match std::str::from_utf8(data) {
        Ok(text) if !text.contains('\0') => put(parameters, "stdin", Some(text)),
        _ => put(
            parameters,
            "stdinBase64",
            Some(base64::engine::general_purpose::STANDARD.encode(data)),
        ),
    }
}

/// Which of Run's replies it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// The command has been executed; only with `more`, and another reply follows.
    Started,
    /// It has ended.
    Exited,
}

/// A reply to Run: one struct for both states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReply {
    /// Which one.
    pub state: RunState,
    /// Names the command in Signal, in its environment (ROOTWRAP_REQUEST_ID) and in the journal.
    pub id: String,
    /// Process id in the service's pid namespace; 0 where nothing was executed (a signal sent by a `pid_of` filter).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The filter that allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Exited: its exit status, where it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Exited: the signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<i32>,
    /// Exited: captured standard output.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "base64_bytes")]
    pub stdout: Option<Vec<u8>>,
    /// Exited: captured standard error.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "base64_bytes")]
    pub stderr: Option<Vec<u8>>,
    /// The command wrote more than what was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_truncated: Option<bool>,
    /// The same for standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_truncated: Option<bool>,
    /// Exited: microseconds since exec.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "durationUSec")]
    pub duration_usec: Option<u64>,
    /// Exited: processor time, user and system, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "cpuUSec")]
    pub cpu_usec: Option<u64>,
    /// Exited: most resident memory, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "maxRSSKiB")]
    pub max_rss_kib: Option<u64>,
}

impl RunReply {
    /// A reply with nothing but its state and the command's id.
    #[must_use]
    pub fn new(state: RunState, id: impl Into<String>) -> Self {
        Self {
            state,
            id: id.into(),
            pid: None,
            filter: None,
            exit_code: None,
            exit_signal: None,
            stdout: None,
            stderr: None,
            stdout_truncated: None,
            stderr_truncated: None,
            duration_usec: None,
            cpu_usec: None,
            max_rss_kib: None,
        }
    }
}

/// Whether a value of TERM looks like the name of a terminal, terminfo(5): letters, digits, `+`, `-`, `.` and `_`, up to 64. Such a one
/// goes to a command that has a terminal as its standard input, whatever the filter says.
#[must_use]
pub fn is_terminal_kind(value: &[u8]) -> bool {
    (1..=64).contains(&value.len()) && value.iter().all(|b| b.is_ascii_alphanumeric() || b"+-._".contains(b)) && !value.starts_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(value: Value) -> Result<Run, Error> {
        match value {
            Value::Object(members) => Run::parse(members),
            _ => panic!("an object"),
        }
    }

    #[test]
    fn given_every_parameter_then_it_survives_the_wire() {
        let full = Run {
            wanted: Wanted {
                argv: vec![b"ip".to_vec(), b"\xff".to_vec()],
                environment: vec![(b"LANG".to_vec(), b"C".to_vec())],
                profile: Some("neutron".into()),
                filter: Some("set-mtu".into()),
            },
            stdin: None,
            descriptors: DescriptorIndexes {
                stdin: Some(0),
                stdout: Some(1),
                stderr: Some(2),
                cwd: Some(3),
            },
            timeout_usec: Some(1),
        };
        assert_eq!(Run::parse(full.parameters()).unwrap(), full);
        for data in [&b"text"[..], b"a\0b", b"\xff"] {
            let mut with_data = full.clone();
            with_data.stdin = Some(data.to_vec());
            with_data.descriptors.stdin = None;
            assert_eq!(Run::parse(with_data.parameters()).unwrap(), with_data);
        }
    }

    #[test]
    fn given_bad_parameters_then_typed_errors() {
        use serde_json::json;
        for (value, name) in [
            (json!({}), "argv"),
            (json!({"argv": ["x"], "uid": 0}), "uid"),
            (json!({"argv": ["x"], "timeoutUSec": 0}), "timeoutUSec"),
            (json!({"argv": ["x"], "stdin": "a", "stdinBase64": ""}), "stdinBase64"),
            (
                json!({"argv": ["x"], "stdin": "a", "stdinFileDescriptor": 0}),
                "stdinFileDescriptor",
            ),
            (json!({"argv": ["x"], "stdoutFileDescriptor": 4}), "stdoutFileDescriptor"),
            (json!({"argv": ["x"], "stdoutFileDescriptor": -1}), "stdoutFileDescriptor"),
        ] {
            assert_eq!(run(value).unwrap_err(), Error::invalid(name));
        }
        assert!(matches!(run(json!({"argv": []})).unwrap_err(), Error::BadRequest { .. }));
        let many = vec!["x"; MAX_ARGUMENTS + 1];
        assert!(matches!(run(json!({"argv": many})).unwrap_err(), Error::BadRequest { .. }));
    }

    #[test]
    fn given_descriptors_then_each_is_claimed_exactly_once() {
        use serde_json::json;
        let fds = |n: usize| {
            (0..n)
                .map(|_| std::fs::File::open("/dev/null").unwrap().into())
                .collect::<Vec<PassedFd>>()
        };
        let two = run(json!({"argv": ["x"], "stdoutFileDescriptor": 1, "stderrFileDescriptor": 0})).unwrap();
        let claimed = two.claim(fds(2)).unwrap();
        assert!(claimed.stdout.is_some() && claimed.stderr.is_some() && claimed.stdin.is_none());
        assert!(matches!(two.claim(fds(3)).unwrap_err(), Error::BadRequest { .. }));
        assert_eq!(two.claim(fds(1)).unwrap_err(), Error::invalid("stdoutFileDescriptor"));
        let twice = run(json!({"argv": ["x"], "stdoutFileDescriptor": 0, "stderrFileDescriptor": 0})).unwrap();
        assert_eq!(twice.claim(fds(1)).unwrap_err(), Error::invalid("stderrFileDescriptor"));
        assert!(matches!(
            run(json!({"argv": ["x"]})).unwrap().claim(fds(1)).unwrap_err(),
            Error::BadRequest { .. }
        ));
    }
}
