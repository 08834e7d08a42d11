//! The verbs of `rootwrapctl`, a file each.
//!
//! A verb gives back an `Answer`: what to print and the exit status; trouble is an error, and status 2. Nothing here decides anything:
//! that is `policy::decide`, here and in the service.
#![forbid(unsafe_code)]

mod check;
mod command_line;
mod explain;
mod lint;
mod reload;
mod report;
mod status;
mod subject;
mod terminal;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::rootwrapctl::{Arguments, Verb};
use crate::client::{self, Client};
use terminal::Style;

/// Exit status where the verb could not do its work.
const TROUBLE: u8 = 2;

/// What a verb has to say.
#[derive(Debug)]
struct Answer {
    /// What was asked for, or (to standard error) why it could not be done.
    text: String,
    /// Exit status.
    status: u8,
    /// Whether the text goes to standard error.
    failed: bool,
}

impl Answer {
    /// For standard output.
    fn new(text: String, status: u8) -> Self {
        Self {
            text,
            status,
            failed: false,
        }
    }
}

/// The command's main function; returns its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(answer) => print(&answer),
        Err(error) => {
            complain(&format!("rootwrapctl: {error:#}\n"));
            ExitCode::from(TROUBLE)
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<Answer> {
    let style = Style::of_stdout();
    let socket = arguments.socket.as_deref();
    match &arguments.verb {
        Verb::Check(options) => check::run(options, arguments.json, style),
        Verb::Explain(options) => explain::run(options, socket, arguments.json, style),
        Verb::Reload => reload::run(socket, arguments.json, style),
        Verb::Status => status::run(socket, arguments.json, style),
    }
}

/// The service at this socket, or where clients find it.
fn connect(socket: Option<&Path>) -> Result<Client, client::Error> {
    socket.map_or_else(Client::connect_default, Client::connect)
}

/// A client's error, which names its cause itself.
fn trouble(error: &client::Error) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

/// Prints an answer; a reader that went away is no error.
fn print(answer: &Answer) -> ExitCode {
    if answer.failed {
        complain(&answer.text);
        return ExitCode::from(answer.status);
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(answer.text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&format!("rootwrapctl: standard output: {error}\n"));
            ExitCode::from(TROUBLE)
        }
        _ => ExitCode::from(answer.status),
    }
}

/// To standard error; where that is closed nobody is listening.
fn complain(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// One JSON document with a newline at its end.
fn json(document: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}
