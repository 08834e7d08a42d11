//! `rootwrapd`: its options.

use std::path::PathBuf;

use clap::Parser;

/// The program's arguments.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "rootwrapd",
    version,
    about = "Run privileged commands for unprivileged programs, as filters allow",
    long_about = "rootwrapd owns the socket on which unprivileged programs ask for privileged commands, decides by the filters in \
        /usr/lib/rootwrap/filters.d, /run/rootwrap/filters.d and /etc/rootwrap/filters.d, records every decision in the journal and \
        has rootwrap-launcher start what is allowed.\n\n\
        It is started by rootwrap.socket with the listening socket passed to it (sd_listen_fds(3)). With --socket it binds one by \
        itself: for containers without systemd, and for tests.\n\n\
        After start it keeps no capability but CAP_KILL and cannot execute anything.",
    after_long_help = SECTIONS,
    max_term_width = 100
)]
pub struct Arguments {
    /// Bind this socket, instead of taking the one that systemd passes
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    #[arg(
        long_help = "Bind this socket, instead of taking the one that systemd passes. Anybody may connect to it (mode 0666; the \
        filters decide); the directory must be writable by its owner only."
    )]
    pub socket: Option<PathBuf>,
    /// The service's settings; files in PATH.d are read after it
    #[arg(long, value_name = "PATH", default_value = "/etc/rootwrap/rootwrap.toml", value_hint = clap::ValueHint::FilePath)]
    pub config: PathBuf,
    /// Read filters from here, instead of the directories that the settings name
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    #[arg(
        long_help = "Read filters from here, instead of the directories that the settings name. May be given several times: a \
        file of a later directory masks the file of the same name in an earlier one."
    )]
    pub filters: Vec<PathBuf>,
    /// The program that makes the commands' processes [default: rootwrap-launcher beside rootwrapd]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::ExecutablePath)]
    pub launcher: Option<PathBuf>,
    /// Where the journal listens
    #[arg(long, value_name = "PATH", default_value = crate::audit::JOURNAL_SOCKET, value_hint = clap::ValueHint::FilePath)]
    pub journal_socket: PathBuf,
    /// Start in a user namespace other than the initial one
    #[arg(long)]
    #[arg(
        long_help = "Start in a user namespace other than the initial one. Users of the host that the namespace does not map cannot \
        be told apart there and are refused; whoever made the namespace is root in it."
    )]
    pub allow_userns: bool,
}

const SECTIONS: &str = "\
Signals:
  SIGHUP   Reads the settings and filters again, as `rootwrapctl reload` does, without anybody waiting for the result.
  SIGTERM  Accepts no more callers, lets running commands end within drain_timeout, then ends them, and exits.

Exit status:
  0  Stopped by a signal, or nobody had asked for anything for idle_timeout.
  1  It could not start, or rootwrap-launcher has ended.

Files:
  /etc/rootwrap/rootwrap.toml   The service's settings; and rootwrap.toml.d/*.toml.
  /etc/rootwrap/filters.d       The administrator's filters.

See also:
  rootwrap(1), rootwrapctl(1), rootwrap.filters(5), rootwrap-protocol(7)";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn given_nothing_then_the_installed_paths_are_used() {
        let arguments = Arguments::parse_from(["rootwrapd"]);
        assert_eq!(arguments.config, PathBuf::from("/etc/rootwrap/rootwrap.toml"));
        assert_eq!(arguments.journal_socket, PathBuf::from("/run/systemd/journal/socket"));
        assert!(arguments.socket.is_none() && arguments.filters.is_empty() && !arguments.allow_userns);
    }
}
