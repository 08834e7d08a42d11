//! `rootwrapctl status`: whether the service runs, with which policy, and what it has done. Exit statuses are systemctl's.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::terminal::{Paint, Style};
use super::{Answer, connect, json, trouble};
use crate::client::Error;
use crate::policy::counted;
use crate::protocol::io_rootwrap::{CallerStatus, Counters, StatusReply};

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// With a valid policy.
    Running,
    /// It lets commands end and takes no new ones.
    Draining,
    /// It runs and refuses everything.
    NoPolicy,
    /// Its socket is there, but nobody answers.
    NotRunning,
    /// There is no socket.
    NotInstalled,
}

/// JSON form.
#[derive(Debug, Serialize)]
struct Status {
    state: State,
    #[serde(flatten)]
    reply: Option<StatusReply>,
}

/// Asks for the status.
///
/// # Errors
/// Trouble: the socket is not trusted, or the answer cannot be read.
pub fn run(socket: Option<&Path>, as_json: bool, style: Style) -> anyhow::Result<Answer> {
    let status = match connect(socket).and_then(|mut client| client.status()) {
        Ok(reply) => Status::from(reply),
        Err(Error::Connect { source, .. }) if source.kind() == ErrorKind::NotFound => Status::without(State::NotInstalled),
        Err(Error::Connect { source, .. }) if source.kind() == ErrorKind::ConnectionRefused => Status::without(State::NotRunning),
        Err(Error::Broken(_)) => Status::without(State::NotRunning),
        Err(error) => return Err(trouble(&error)),
    };
    let text = if as_json { json(&status)? } else { status.text(style) };
    Ok(Answer::new(text, status.state.exit_status()))
}

impl State {
    fn exit_status(self) -> u8 {
        match self {
            Self::Running | Self::Draining => 0,
            Self::NoPolicy | Self::NotRunning => 3,
            Self::NotInstalled => 4,
        }
    }

    fn text(self, style: Style) -> String {
        match self {
            Self::Running => style.paint(Paint::Good, "running"),
            Self::Draining => style.paint(Paint::Doubtful, "draining") + ": it takes no new commands and waits for those that run",
            Self::NoPolicy => style.paint(Paint::Bad, "no policy") + ": every command is refused until a reload succeeds",
            Self::NotRunning => {
                style.paint(Paint::Bad, "not running") + ": nobody answers; see: systemctl status rootwrap.socket rootwrap.service"
            }
            Self::NotInstalled => style.paint(Paint::Bad, "no socket") + ": start it with: systemctl enable --now rootwrap.socket",
        }
    }
}

impl From<StatusReply> for Status {
    fn from(reply: StatusReply) -> Self {
        let state = match (reply.draining, &reply.policy_hash) {
            (true, _) => State::Draining,
            (false, None) => State::NoPolicy,
            (false, Some(_)) => State::Running,
        };
        Self { state, reply: Some(reply) }
    }
}

impl Status {
    fn without(state: State) -> Self {
        Self { state, reply: None }
    }

    fn text(&self, style: Style) -> String {
        let mut text = format!("    state  {}\n", self.state.text(style));
        let Some(reply) = &self.reply else { return text };
        text.push_str(&format!(
            "  service  {}, pid {}, up {}\n",
            reply.version,
            reply.pid,
            span(reply.uptime_usec)
        ));
        if let Some(hash) = &reply.policy_hash {
            let hash: String = hash.chars().take(12).collect();
            let age = reply
                .policy_age_usec
                .map(|age| format!(", in force for {}", span(age)))
                .unwrap_or_default();
            text.push_str(&format!("   policy  {hash}, {}{age}\n", counted(reply.filters, "filter")));
        }
        text.push_str(&format!(" requests  {}\n", requests(&reply.counters)));
        for caller in &reply.callers {
            text.push_str(&of_caller(caller));
        }
        if !reply.policy_errors.is_empty() {
            text.push_str(&format!("\n{} on disk is not in force:\n", style.paint(Paint::Bad, "the policy")));
        }
        for error in &reply.policy_errors {
            text.push_str(&format!("\n{}\n", error.trim_end()));
        }
        text
    }
}

fn requests(counters: &Counters) -> String {
    let Counters {
        allowed,
        denied,
        launch_failed,
        busy,
        bad_requests,
    } = counters;
    format!("{allowed} allowed, {denied} denied, {launch_failed} not started, {busy} busy, {bad_requests} bad")
}

fn of_caller(caller: &CallerStatus) -> String {
    format!(
        "  uid {:>5}  {}, {} running; {}\n",
        caller.uid,
        counted(caller.connections, "connection"),
        counted(caller.commands, "command"),
        requests(&caller.counters)
    )
}

/// A time span in its two largest units.
fn span(usec: u64) -> String {
    let seconds = Duration::from_micros(usec).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> StatusReply {
        StatusReply {
            version: "0.1.0".into(),
            pid: 812,
            uptime_usec: 7_500_000_000,
            policy_hash: Some("0123456789abcdef".repeat(4)),
            policy_age_usec: Some(61_000_000),
            filters: 28,
            counters: Counters {
                allowed: 120,
                denied: 3,
                ..Counters::default()
            },
            callers: vec![CallerStatus {
                uid: 991,
                connections: 2,
                commands: 1,
                ..CallerStatus::default()
            }],
            ..StatusReply::default()
        }
    }

    #[test]
    fn a_running_service_is_shown_with_policy_age_and_counters() {
        let status = Status::from(reply());
        assert_eq!(status.state.exit_status(), 0);
        insta::assert_snapshot!(status.text(Style::PLAIN), @r"
            state  running
          service  0.1.0, pid 812, up 2 h 5 min
           policy  0123456789ab, 28 filters, in force for 1 min 1 s
         requests  120 allowed, 3 denied, 0 not started, 0 busy, 0 bad
          uid   991  2 connections, 1 command running; 0 allowed, 0 denied, 0 not started, 0 busy, 0 bad
        ");
    }

    #[test]
    fn without_a_policy_it_is_3_and_the_errors_are_shown() {
        let status = Status::from(StatusReply {
            policy_hash: None,
            policy_errors: vec!["/f.toml:1:1: error: unknown key\n".into()],
            ..reply()
        });
        assert_eq!((status.state, status.state.exit_status()), (State::NoPolicy, 3));
        assert!(
            status
                .text(Style::PLAIN)
                .ends_with("the policy on disk is not in force:\n\n/f.toml:1:1: error: unknown key\n")
        );
    }

    #[test]
    fn exit_statuses_are_systemctls() {
        assert_eq!(State::NotRunning.exit_status(), 3);
        assert_eq!(State::NotInstalled.exit_status(), 4);
        assert_eq!(Status::from(StatusReply { draining: true, ..reply() }).state.exit_status(), 0);
    }

    #[test]
    fn json_has_the_state_beside_the_reply() {
        let text = json(&Status::without(State::NotInstalled)).unwrap();
        assert_eq!(text, "{\n  \"state\": \"not-installed\"\n}\n");
        let value: serde_json::Value = serde_json::from_str(&json(&Status::from(reply())).unwrap()).unwrap();
        assert_eq!(
            (&value["state"], &value["filters"], &value["pid"]),
            (&"running".into(), &28.into(), &812.into())
        );
    }

    #[test]
    fn spans_are_in_their_two_largest_units() {
        assert_eq!(
            [span(999_999), span(61_000_000), span(7_500_000_000), span(90_000_000_000)],
            ["0 s", "1 min 1 s", "2 h 5 min", "1 d 1 h"]
        );
    }
}
