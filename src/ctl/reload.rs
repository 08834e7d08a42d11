//! `rootwrapctl reload`: makes the service read its policy again, and waits.

use std::path::Path;

use serde::Serialize;

use super::terminal::{Paint, Style};
use super::{Answer, connect, json, trouble};
use crate::client::Error;
use crate::policy::counted;
use crate::protocol;
use crate::protocol::io_rootwrap::ReloadReply;

/// JSON form of a reload that failed.
#[derive(Serialize)]
struct Failed {
    errors: Vec<String>,
}

/// Reloads.
///
/// # Errors
/// Trouble: no service, not root.
pub fn run(socket: Option<&Path>, as_json: bool, style: Style) -> anyhow::Result<Answer> {
    let answer = match connect(socket).and_then(|mut client| client.reload()) {
        Ok(reply) if as_json => Answer::new(json(&reply)?, 0),
        Ok(reply) => Answer::new(reloaded(&reply, style), 0),
        Err(Error::Refused(protocol::Error::ReloadFailed { diagnostics: errors })) if as_json => Answer::new(json(&Failed { errors })?, 1),
        Err(Error::Refused(protocol::Error::ReloadFailed { diagnostics })) => Answer {
            text: not_reloaded(&diagnostics, Style::of_stderr()),
            status: 1,
            failed: true,
        },
        Err(error) => return Err(trouble(&error)),
    };
    Ok(answer)
}

fn reloaded(reply: &ReloadReply, style: Style) -> String {
    let hash: String = reply.policy_hash.chars().take(12).collect();
    let (verdict, filters) = (style.paint(Paint::Good, "reloaded"), counted(reply.filters, "filter"));
    format!("{}{verdict}: {filters} in force, policy {hash}\n", paragraphs(&reply.warnings))
}

fn not_reloaded(errors: &[String], style: Style) -> String {
    let verdict = style.paint(Paint::Bad, "not reloaded");
    let advice = "what was in force stays; `rootwrapctl check` tries again without the service";
    format!("{}{verdict}: {advice}\n", paragraphs(errors))
}

fn paragraphs(diagnostics: &[String]) -> String {
    diagnostics
        .iter()
        .map(|diagnostic| format!("{}\n\n", diagnostic.trim_end()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_and_errors_stand_before_the_verdict() {
        let reply = ReloadReply {
            policy_hash: "0123456789abcdef".into(),
            filters: 1,
            warnings: vec!["/f.toml:1:1: warning[x]: y\n".into()],
        };
        assert_eq!(
            reloaded(&reply, Style::PLAIN),
            "/f.toml:1:1: warning[x]: y\n\nreloaded: 1 filter in force, policy 0123456789ab\n"
        );
        let text = not_reloaded(&["/f.toml:1:1: error[x]: y".into()], Style::PLAIN);
        assert!(
            text.starts_with("/f.toml:1:1: error[x]: y\n\nnot reloaded: what was in force stays"),
            "{text}"
        );
    }
}
