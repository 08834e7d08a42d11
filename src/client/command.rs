//! `rootwrap`: passes its own descriptors, sends its signals on, mirrors how the command ended.
//!
//! One thread, no runtime: it waits for the service and for signals with poll(2), and no byte of the command's input or output
//! passes through it.

mod forward;
pub(crate) mod report;
mod session;

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::ExitCode;

use super::request::{Input, Request, Sink};
use super::{Client, Server};
use crate::cli::rootwrap::{Arguments, Variable};
use crate::protocol::run::{Run, Wanted, is_terminal_kind};
use crate::sys::descriptors::inherited;
use report::Failure;
use session::Ended;

/// Trouble of rootwrap itself.
const TROUBLE: u8 = 125;

/// The client command's main function; returns its exit status, or does not return: it dies of its command's signal.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to standard output, the rest to standard error; where neither can be written nobody is listening.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { TROUBLE } else { 0 });
        }
    };
    let result = if arguments.list { list(&arguments) } else { run(&arguments) };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            // Nobody is listening: the exit status still says it.
            let _ = writeln!(io::stderr().lock(), "rootwrap: {}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}

fn server(arguments: &Arguments) -> Server {
    arguments.socket.as_ref().map_or_else(Server::default, Server::at)
}

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    // Before anything is opened: the descriptor's number must still mean what it meant at start.
    let begun = match &arguments.resume {
        None => None,
        Some(begun) => Some(
            inherited(begun.socket).map_err(|error| Failure::trouble(format!("cannot go on with descriptor {}: {error}", begun.socket)))?,
        ),
    };
    let request = request(arguments)?;
    let explain = report::explain_line(arguments, &request.run.wanted);
    let ended = match begun {
        Some(socket) => session::resume(socket, arguments.resume.as_ref().and_then(|begun| begun.id.clone())),
        None => request
            .prepare(true)
            .and_then(|prepared| session::run(&server(arguments), prepared)),
    };
    let ended = ended.map_err(|error| report::failure(&error, &explain, arguments))?;
    match ended {
        Ended::Exited(code) => Ok(code),
        Ended::Signaled(signal) => {
            let error = crate::sys::signal::die_of(signal);
            Err(Failure::trouble(format!(
                "the command was ended by signal {signal}, of which rootwrap cannot die: {error}"
            )))
        }
    }
}

fn request(arguments: &Arguments) -> Result<Request, Failure> {
    let argv = arguments.command.iter().map(|argument| argument.clone().into_vec()).collect();
    Ok(Request {
        run: Run {
            wanted: Wanted {
                argv,
                environment: with_terminal(environment(&arguments.env)),
                profile: arguments.profile.clone(),
                filter: arguments.filter.clone(),
            },
            timeout_usec: arguments.timeout.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
            ..Run::default()
        },
        stdin: own_input()?,
        stdout: Sink::Descriptor(own(&io::stdout(), "standard output")?),
        stderr: Sink::Descriptor(own(&io::stderr(), "standard error")?),
        cwd: arguments.chdir.as_deref().map(directory).transpose()?,
    })
}

/// The variables of `--env`, the last of a name only.
pub(crate) fn environment(variables: &[Variable]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut environment: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for variable in variables {
        let name = variable.name.clone().into_vec();
        environment.retain(|(other, _)| *other != name);
        // A variable that is not set is not passed: as `systemd-run --setenv=NAME` does it.
        if let Some(value) = variable.value.clone().or_else(|| std::env::var_os(&variable.name)) {
            environment.push((name, value.into_vec()));
        }
    }
    environment
}

/// Where standard input is a terminal the service passes on what kind it is, whatever the filter says.
fn with_terminal(mut environment: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let kind = std::env::var_os("TERM").map(OsStringExt::into_vec);
    let kind = kind.filter(|kind| is_terminal_kind(kind) && rustix::termios::isatty(io::stdin()));
    if let (Some(kind), false) = (kind, environment.iter().any(|(name, _)| name == b"TERM")) {
        environment.push((b"TERM".to_vec(), kind));
    }
    environment
}

/// A copy of one of our own descriptors. The runtime has opened /dev/null for those that were closed at start.
fn own(stream: &impl AsFd, name: &str) -> Result<OwnedFd, Failure> {
    let copy = stream.as_fd().try_clone_to_owned();
    copy.map_err(|error| Failure::trouble(format!("cannot pass {name}: {error}")))
}

/// Whether our standard input is passed on.
pub(crate) fn passes_input() -> bool {
    matches!(own_input(), Ok(Input::Descriptor(_)))
}

/// Our standard input, unless it is /dev/null: that is what a command has without one, and some filters take none.
fn own_input() -> Result<Input, Failure> {
    let input = own(&io::stdin(), "standard input")?;
    let file = std::fs::File::from(input);
    let is_null = file
        .metadata()
        .is_ok_and(|data| data.file_type().is_char_device() && data.rdev() == rustix::fs::makedev(1, 3));
    Ok(if is_null { Input::Null } else { Input::Descriptor(file.into()) })
}

/// Opened by us, with our rights: the service never resolves a path of ours. O_PATH asks for no right on the directory itself; to
/// open its `.` needs the one to search it, as chdir(2) does.
fn directory(path: &Path) -> Result<OwnedFd, Failure> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).and_then(|found| rustix::fs::openat(found, ".", flags, Mode::empty()));
    opened.map_err(|error| Failure::trouble(format!("cannot change to {}: {error}", path.display())))
}

fn list(arguments: &Arguments) -> Result<u8, Failure> {
    let listed = server(arguments)
        .connect()
        .and_then(|socket| Client::over(socket).list_filters())
        .map_err(|error| report::failure(&error, "rootwrapctl status", arguments))?;
    if listed.filters.is_empty() {
        let _ = writeln!(
            io::stderr().lock(),
            "rootwrap: no filter admits you; who may what is in rootwrap.filters(5)"
        );
    }
    let text = report::listing(&listed);
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::trouble(format!("cannot write: {error}"))),
        _ => Ok(0),
    }
}
