//! `rootwrapctl explain`: asks the service, or decides here over the files.

use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use anyhow::bail;

use super::report::Report;
use super::subject::subject;
use super::terminal::Style;
use super::{Answer, check, connect, json, trouble};
use crate::cli::rootwrapctl::Explain;
use crate::client::Error;
use crate::client::command::{environment, passes_input};
use crate::config::{self, Settings, Source};
use crate::policy::facts::{Facts, Question};
use crate::policy::{self, Outcome, Policy, Request};
use crate::protocol::io_rootwrap;
use crate::protocol::run::Wanted;

/// Explains one command.
///
/// # Errors
/// Trouble: no service, no valid policy, an unknown user.
pub fn run(options: &Explain, socket: Option<&Path>, as_json: bool, style: Style) -> anyhow::Result<Answer> {
    let argv: Vec<Vec<u8>> = options.command.iter().map(|argument| argument.clone().into_vec()).collect();
    let environment = environment(&options.env);
    let report = if options.is_offline() {
        offline(options, &argv, &environment)?
    } else {
        online(options, socket, &argv, environment)?
    };
    let text = if as_json {
        json(&report)?
    } else {
        report.text(&argv, style) + advice(options, &report)
    };
    Ok(Answer::new(text, u8::from(!report.reply.allowed)))
}

/// An administrator mostly wants to know about somebody else.
fn advice(options: &Explain, report: &Report) -> &'static str {
    let asked_as_root = !options.is_offline() && rustix::process::geteuid().is_root();
    if asked_as_root && report.reply.reason.as_deref() == Some("no-filter") {
        "this is the answer for root, who asked; for another user: rootwrapctl explain --user USER -- ...\n"
    } else {
        ""
    }
}

/// Asks the service how it would decide for whoever runs this.
fn online(options: &Explain, socket: Option<&Path>, argv: &[Vec<u8>], environment: Vec<(Vec<u8>, Vec<u8>)>) -> anyhow::Result<Report> {
    let question = io_rootwrap::Explain {
        wanted: Wanted {
            argv: argv.to_vec(),
            environment,
            profile: None,
            filter: options.filter.clone(),
        },
        has_cwd: options.chdir.is_some(),
        has_stdin: passes_input(),
    };
    match connect(socket).and_then(|mut client| client.explain(&question)) {
        Ok(reply) => Ok(reply.into()),
        Err(error @ Error::Connect { .. }) => bail!("{error}; with --offline the files are read instead"),
        Err(error) => Err(trouble(&error)),
    }
}

fn offline(options: &Explain, argv: &[Vec<u8>], environment: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<Report> {
    let subject = subject(options)?;
    let policy = load(options)?;
    let request = Request {
        subject: &subject,
        argv,
        environment,
        has_cwd: options.chdir.is_some(),
        has_stdin: passes_input(),
        filter: options.filter.as_deref(),
        profile: None,
    };
    let assumed = questions(&policy, &request);
    Ok(Report::new(policy::explain(&policy, &request, &Facts::lexical()), &assumed))
}

/// The policy that the options name.
fn load(options: &Explain) -> anyhow::Result<Policy> {
    let check_owners = !options.reading.no_owner_check;
    let settings = Settings::load(&options.reading.config, check_owners).map_err(|errors| void(&errors))?;
    let directories = if options.policy.is_empty() {
        settings.filter_dirs.clone()
    } else {
        options.policy.clone()
    };
    if let Some(missing) = options.policy.iter().find(|directory| !directory.is_dir()) {
        bail!("{}: no such directory", missing.display());
    }
    let source = Source {
        directories,
        files: Vec::new(),
        check_owners,
    };
    Ok(config::load(&source, &settings).map_err(|errors| void(&errors))?.policy)
}

fn void(errors: &[config::Diagnostic]) -> anyhow::Error {
    anyhow::anyhow!(
        "the policy has errors, so it allows nothing:\n\n{}",
        check::listing(errors, Style::PLAIN)
    )
}

/// What the decision leans on, if it allows: the questions that the service would ask the system.
fn questions(policy: &Policy, request: &Request<'_>) -> Vec<Question> {
    let mut facts = Facts::new();
    let mut asked = Vec::new();
    while let Outcome::Ask(questions) = policy::decide(policy, request, &facts) {
        let before = asked.len();
        for question in questions {
            if facts.get(&question).is_none() {
                facts.insert(question.clone(), true);
                asked.push(question);
            }
        }
        if asked.len() == before {
            break;
        }
    }
    asked
}
