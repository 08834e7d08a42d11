//! `rootwrap`: options first, then the command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{CommandFactory, Parser};

/// The program's arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Parser)]
#[command(
    name = "rootwrap",
    version,
    about = "Run a privileged command that a filter allows you",
    long_about = "rootwrap asks rootwrapd(8) to run COMMAND. The service runs it if one of the administrator's filters allows exactly this \
        command with these arguments to you, with no more privileges than it needs, and writes the decision to the journal. The \
        command reads and writes rootwrap's own standard input, output and error directly; where standard input is /dev/null none is passed.\n\n\
        Options stand before COMMAND. What follows COMMAND belongs to it. COMMAND is a bare name, or the path exactly as the filter has it; it \
        may begin with a dash only after `--`.",
    after_long_help = SECTIONS,
    max_term_width = 100,
    override_usage = "rootwrap [OPTIONS] [--] COMMAND [ARGUMENT]...\n       rootwrap --list"
)]
pub struct Arguments {
    /// Socket of the service.
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    #[arg(
        long_help = "Socket of the service. Default: $ROOTWRAP_SOCKET, else /run/rootwrap.sock. It must belong to root; one that is named \
        here or in the environment may also belong to you."
    )]
    pub socket: Option<PathBuf>,
    /// Run in this directory, where the filter lets you choose.
    #[arg(short = 'D', long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub chdir: Option<PathBuf>,
    /// Set a variable that the filter allows; without a value, to its present one.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = clap::builder::OsStringValueParser::new().try_map(variable))]
    #[arg(
        long_help = "Set a variable that the filter allows. Without a value: to the present one; nothing where it is not set. May be repeated."
    )]
    pub env: Vec<Variable>,
    /// Consult this profile instead of the filters.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Only this filter may allow it.
    #[arg(long, value_name = "NAME")]
    pub filter: Option<String>,
    /// End the command after this time.
    #[arg(long, value_name = "TIME", value_parser = super::timespan::parse)]
    #[arg(
        long_help = "End the command after this time: 30s, 500ms, 1min 30s; a number alone is seconds. A shorter limit of the filter wins."
    )]
    pub timeout: Option<Duration>,
    /// List the filters that you may use.
    #[arg(short, long, conflicts_with_all = ["chdir", "env", "profile", "filter", "timeout", "command"])]
    pub list: bool,
    /// A call that the quick client has begun: `--resume=FD:[ID] -- COMMAND...`. For that program only, so it is no option for people.
    #[arg(skip)]
    pub resume: Option<Begun>,
    /// The command and its arguments.
    #[arg(required_unless_present = "list", trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// A call that was begun by the quick client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The connection's descriptor.
    pub socket: i32,
    /// The command's id, once it has been started.
    pub id: Option<String>,
}

/// Reads `--resume=FD:[ID]` and the `--` behind it.
fn begun(line: &[OsString]) -> Option<Begun> {
    let [_, first, dashes, ..] = line else { return None };
    let (socket, id) = first.to_str()?.strip_prefix("--resume=")?.split_once(':')?;
    let begun = Begun {
        socket: socket.parse().ok()?,
        id: (!id.is_empty()).then(|| id.to_owned()),
    };
    (dashes == "--").then_some(begun)
}

/// One `--env`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Before the `=`; never empty.
    pub name: OsString,
    /// Behind it; `None`: there was none.
    pub value: Option<OsString>,
}

/// Reads one `--env`.
pub(super) fn variable(text: OsString) -> Result<Variable, String> {
    let mut parts = text.as_bytes().splitn(2, |byte| *byte == b'=');
    let name = parts.next().unwrap_or_default().to_vec();
    if name.is_empty() {
        return Err("a variable needs a name: NAME or NAME=VALUE".into());
    }
    Ok(Variable {
        name: OsString::from_vec(name),
        value: parts.next().map(|value| OsStr::from_bytes(value).to_owned()),
    })
}

const SECTIONS: &str = "\
Exit status:
  The status of the command; where a signal ended it, rootwrap dies of the same signal. Otherwise:
  124  The command was ended after its time.
  125  Trouble of rootwrap itself: a wrong option, no service, no valid policy, a limit reached.
  126  Not permitted, or the command could not be started.
  127  No such command.

Signals:
  SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGCONT are sent on to the command, unless
  rootwrap was started with them ignored. SIGTSTP stops both until SIGCONT. When rootwrap is killed, its command is ended, unless the filter lets it run on.

Environment:
  ROOTWRAP_SOCKET  Socket of the service.

Examples:
  $ rootwrap ip link set v0 up
  $ rootwrap --timeout 10s mount /srv/backup
  $ rootwrap --list

See also:
  rootwrapctl(1), rootwrapd(8), rootwrap.filters(5), rootwrap-protocol(7)
";

impl Arguments {
    /// The definition, for help, manuals and completions.
    #[must_use]
    pub fn definition() -> clap::Command {
        Self::command()
    }

    /// Reads a command line, the program's name first (it may even be missing: execve(2) allows that).
    ///
    /// A line without options needs no parser: that is the usual one, and every invocation pays for what happens before the request.
    ///
    /// # Errors
    /// clap's, also for `--help` and `--version`.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut line: Vec<OsString> = line.into_iter().collect();
        if line.get(1).is_some_and(|first| !first.as_bytes().starts_with(b"-")) {
            return Ok(Self {
                command: line.split_off(1),
                ..Self::default()
            });
        }
        if let Some(begun) = begun(&line) {
            return Ok(Self {
                command: line.split_off(3),
                resume: Some(begun),
                ..Self::default()
            });
        }
        // Messages begin with this name, whatever the caller of execve(2) called the program.
        let rest = line.into_iter().skip(1);
        Self::try_parse_from(std::iter::once(OsString::from("rootwrap")).chain(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::read(std::iter::once("rootwrap").chain(line.iter().copied()).map(OsString::from))
    }

    #[test]
    fn given_the_definition_then_clap_finds_no_fault_in_it() {
        Arguments::definition().debug_assert();
    }

    #[test]
    fn given_a_command_then_all_that_follows_is_its_own() {
        for tail in [
            &["ip", "link"][..],
            &["ip", "-o", "link"],
            &["ip", "--help"],
            &["ip", "--socket", "/x", "-l"],
            &["ip", "--", "x", "--"],
            &["--", "-x", "--", "y"],
        ] {
            let command: Vec<OsString> = tail.iter().skip(usize::from(tail[0] == "--")).map(OsString::from).collect();
            assert_eq!(read(tail).unwrap().command, command);
            // The same behind an option, which takes the way through the parser.
            let mut with_option = vec!["--filter", "f"];
            with_option.extend(tail);
            let read = read(&with_option).unwrap();
            assert_eq!((read.command, read.filter), (command, Some("f".into())), "{with_option:?}");
        }
    }

    #[test]
    fn given_an_unknown_option_or_no_command_then_nothing_is_sent() {
        for line in [
            &["--bogus", "ip"][..],
            &["-x", "ip"],
            &[],
            &["--"],
            &["--filter", "f"],
            &["--env", "=x", "ip"],
            &["--list", "ip"],
        ] {
            assert!(read(line).is_err(), "{line:?}");
        }
        assert!(Arguments::read([]).is_err());
    }

    #[test]
    fn given_what_the_quick_client_has_begun_then_its_connection_and_command_are_taken_over() {
        let resumed = read(&["--resume=5:ab", "--", "ip", "-x"]).unwrap();
        let id = Some("ab".to_owned());
        assert_eq!(
            (resumed.resume, resumed.command),
            (Some(Begun { socket: 5, id }), vec!["ip".into(), "-x".into()])
        );
        assert_eq!(
            read(&["--resume=5:", "--", "ip"]).unwrap().resume,
            Some(Begun { socket: 5, id: None })
        );
        for line in [
            &["--resume=5", "--", "ip"][..],
            &["--resume=x:", "--", "ip"],
            &["--resume=5:", "ip"],
        ] {
            assert!(read(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn given_variables_then_the_first_equals_sign_divides() {
        let read = read(&["--env", "A=b=c", "--env", "D", "--env", "E=", "ip"]).unwrap();
        let pair = |name: &str, value: Option<&str>| Variable {
            name: name.into(),
            value: value.map(Into::into),
        };
        assert_eq!(read.env, [pair("A", Some("b=c")), pair("D", None), pair("E", Some(""))]);
    }
}
