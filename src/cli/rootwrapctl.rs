//! `rootwrapctl`: the verbs and their options.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand};

use super::rootwrap::{Variable, variable};

/// The program's arguments.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "rootwrapctl",
    version,
    about = "Check, explain and reload the policy of rootwrapd; see how it is doing",
    long_about = "rootwrapctl works on the policy of rootwrapd(8), the service through which unprivileged programs run the few \
        privileged commands that an administrator allowed them. check and explain call the very function with which the service \
        decides, so what they say is what it does.",
    after_long_help = SECTIONS,
    max_term_width = 100,
    disable_help_subcommand = true,
    subcommand_value_name = "VERB"
)]
pub struct Arguments {
    /// Socket of the service.
    #[arg(long, global = true, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    #[arg(long_help = "Socket of the service. Default: $ROOTWRAP_SOCKET, else /run/rootwrap.sock.")]
    pub socket: Option<PathBuf>,
    /// Print one JSON document instead of text.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Verb {
    /// Check filters and settings, and run their tests
    #[command(
        long_about = "Reads the whole policy as the service reads it, the service's settings included, or only the files named, and \
            prints every error and warning in one run: where it is, the line, what is wrong and what to do. Then runs the [[test]] \
            tables of these files. Nothing is changed; the running service is not asked.\n\n\
            Warnings say where a valid filter gives more than it seems: capabilities that are as good as root, and how; commands that run as \
            root without need; arguments that may be anything; programs that do what standard input says; callers that are everybody. They do not change the exit status.\n\n\
            In tests, path_under judges paths by their spelling and pid_of takes any number: a test must not depend on what happens \
            to be on this machine."
    )]
    Check(Check),
    /// Say how a command would be decided, and why
    #[command(
        long_about = "Says whether a command would be allowed, by which filter (file and line), as whom and with which capabilities it \
            would run; and for every filter of that command that does not match, the first argument that nothing could take and what was \
            expected there. Nothing is run.\n\n\
            Without further options the service is asked how it would decide for the user who asks. With --policy, --user, --group, \
            --unit, --label or --offline the policy's files are read and decided here, for anybody; then, because the service's \
            questions to the system are not asked, path_under judges paths by their spelling and pid_of takes any process, and the \
            output says where the answer leans on that."
    )]
    Explain(Explain),
    /// Make the service read its policy again
    #[command(
        long_about = "Makes the service read its filters and settings again and waits for the answer. All or nothing: with any error the \
            old policy stays in force, every error is printed as check does, and the exit status is 1. Root only. This is what \
            `systemctl reload rootwrap` runs."
    )]
    Reload,
    /// Show whether the service runs, with which policy, and what it has done
    #[command(
        long_about = "Shows whether the service runs, its policy (filters, hash, age), and counters. Root sees those of all callers, \
            everybody else his own. Asking starts the service where systemd holds its socket."
    )]
    Status,
}

/// Arguments of `check`.
#[derive(Args, Clone, Debug)]
pub struct Check {
    /// Files to check instead of the whole policy.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Where from and how strictly.
    #[command(flatten)]
    pub reading: Reading,
}

/// Where files are read from and how strictly.
#[derive(Args, Clone, Debug)]
pub struct Reading {
    /// The service's settings file.
    #[arg(long, value_name = "FILE", default_value = "/etc/rootwrap/rootwrap.toml", value_hint = clap::ValueHint::FilePath)]
    #[arg(
        long_help = "The service's settings; files FILE.d/*.toml are read after it. They say where filters and executables are looked up. \
            A file that does not exist is an empty one."
    )]
    pub config: PathBuf,
    /// Do not ask that files belong to root.
    #[arg(long)]
    #[arg(
        long_help = "Accept policy files whatever their owner and mode, for files under review in a checkout. The service itself never does."
    )]
    pub no_owner_check: bool,
}

/// Arguments of `explain`.
#[derive(Args, Clone, Debug)]
pub struct Explain {
    /// Read filters from this directory; again for more, later ones mask earlier ones.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub policy: Vec<PathBuf>,
    /// Decide for this user (name or number) with the user's groups.
    #[arg(long, value_name = "USER", value_hint = clap::ValueHint::Username)]
    pub user: Option<String>,
    /// Decide for a member of this group too (name or number).
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Decide for a process of this systemd unit.
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// Decide for a process with this security label.
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Read the files and decide here; do not ask the service.
    #[arg(long)]
    pub offline: bool,
    /// Where from and how strictly.
    #[command(flatten)]
    pub reading: Reading,
    /// A variable that the caller would set; without a value, to the present one.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = OsStringValueParser::new().try_map(variable))]
    pub env: Vec<Variable>,
    /// Only this filter may allow it.
    #[arg(long, value_name = "NAME")]
    pub filter: Option<String>,
    /// The caller would pass a working directory.
    #[arg(short = 'D', long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub chdir: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

impl Explain {
    /// Whether the files are read here instead of asking the service.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.offline
            || !self.policy.is_empty()
            || !self.group.is_empty()
            || self.user.is_some()
            || self.unit.is_some()
            || self.label.is_some()
    }
}

const SECTIONS: &str = "\
Exit status:
  0  check: no error, all tests pass. explain: allowed. status: the service
     runs with a valid policy. reload: done.
  1  check: errors, or tests that fail. explain: denied. reload: the new
     policy has errors, the old one stays.
  2  Trouble: wrong usage, the service did not answer, files cannot be read.
  3  status: the service does not answer, or its policy is void.
  4  status: there is no socket, rootwrap is not installed or not enabled.

Environment:
  ROOTWRAP_SOCKET  Socket of the service, where --socket does not name it.
  NO_COLOR         Where it is set and not empty, output has no colours. Output
                   that is no terminal never has.

Files:
  /etc/rootwrap/rootwrap.toml   The service's settings, rootwrap.toml(5).
  /etc/rootwrap/filters.d       The administrator's filters.
  /run/rootwrap/filters.d       Filters until the next boot.
  /usr/lib/rootwrap/filters.d   Filters that packages bring, rootwrap.filters(5).

Examples:
  Before a change is put in force:
  $ rootwrapctl check && rootwrapctl reload
  Why does the agent get no answer?
  $ rootwrapctl explain --user neutron --unit neutron-l3-agent.service -- ip link set v0 up
  A file under review:
  $ rootwrapctl check --no-owner-check ./50-l3.toml

See also:
  rootwrap(1), rootwrap.filters(5), rootwrap.toml(5), rootwrapd(8)
";

/// The definition, for the manual and the completions.
#[must_use]
pub fn command() -> clap::Command {
    Arguments::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(arguments: &[&str]) -> Explain {
        let all = ["rootwrapctl", "explain"].iter().chain(arguments);
        match Arguments::try_parse_from(all).unwrap().verb {
            Verb::Explain(explain) => explain,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn given_options_after_the_command_then_they_belong_to_it() {
        let parsed = explain(&["--filter", "a", "ip", "--user", "x", "--json"]);
        assert_eq!(parsed.command, ["ip", "--user", "x", "--json"]);
        assert!(!parsed.is_offline());
    }

    #[test]
    fn given_a_subject_or_a_directory_then_it_is_offline() {
        for option in ["--policy", "--user", "--group", "--unit", "--label"] {
            assert!(explain(&[option, "x", "--", "true"]).is_offline(), "{option}");
        }
        assert!(explain(&["--offline", "--", "true"]).is_offline());
    }

    #[test]
    fn given_no_command_then_usage_error() {
        assert!(Arguments::try_parse_from(["rootwrapctl", "explain"]).is_err());
    }
}
