//! `rootwrapctl reload`: makes the service read its policy again, and waits.

use std::path::Path;

use serde::Serialize;

use super::terminal::{Paint, Style};
use super::{Answer, connect, json, trouble};
use crate::client::Error;
use crate::protocol;

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
    match connect(socket).and_then(|mut client| client.reload()) {
        Ok(reply) if as_json => Ok(Answer {
            text: json(&reply)?,
            status: 0,
        }),
        Ok(reply) => {
            let warnings: String = reply.warnings.iter().map(|warning| format!("{}\n\n", warning.trim_end())).collect();
            let hash: String = reply.policy_hash.chars().take(12).collect();
            Ok(Answer {
                text: format!(
                    "{warnings}{}: {} filters in force, policy {hash}\n",
                    style.paint(Paint::Good, "reloaded"),
                    reply.filters
                ),
                status: 0,
            })
        }
        Err(Error::Refused(protocol::Error::ReloadFailed { diagnostics: errors })) if as_json => Ok(Answer {
            text: json(&Failed { errors })?,
            status: 1,
        }),
        Err(Error::Refused(protocol::Error::ReloadFailed { diagnostics })) => {
            let errors: String = diagnostics.iter().map(|error| format!("{}\n\n", error.trim_end())).collect();
            let verdict = style.paint(Paint::Bad, "not reloaded");
            Ok(Answer {
                text: format!("{errors}{verdict}: what was in force stays; `rootwrapctl check` tries again without the service\n"),
                status: 1,
            })
        }
        Err(error) => Err(trouble(&error)),
    }
}
