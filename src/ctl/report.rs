//! A decision and its reasons, as `explain` shows them: the same from the service and from files.

use serde::Serialize;

use super::command_line::CommandLine;
use super::lint::escape;
use super::terminal::{Paint, Style};
use crate::explained;
use crate::policy::facts::Question;
use crate::policy::{Action, Explanation, Permit};
use crate::protocol::io_rootwrap::{ExplainReply, Mismatch, Tried};

/// A decision. Its JSON form is the reply of `io.rootwrap.Explain` with one member more; `docs/json.md` documents it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// As the service answers.
    #[serde(flatten)]
    pub reply: ExplainReply,
    /// What was taken for granted, because the system was not asked.
    pub assumed: Vec<String>,
}

impl From<ExplainReply> for Report {
    fn from(reply: ExplainReply) -> Self {
        Self {
            reply,
            assumed: Vec::new(),
        }
    }
}

impl Report {
    /// From a decision made here. `assumed` is what it leans on.
    #[must_use]
    pub fn new(explanation: Explanation, assumed: &[Question]) -> Self {
        Self {
            reply: explained::reply(explanation, executable),
            assumed: assumed.iter().map(in_words).collect(),
        }
    }

    /// For people.
    #[must_use]
    pub fn text(&self, argv: &[Vec<u8>], style: Style) -> String {
        let line = CommandLine::new(argv);
        let mut text = match &self.reply.filter {
            Some(filter) if self.reply.allowed => self.allowed(filter, argv, style),
            _ => self.denied(style),
        };
        for tried in &self.reply.tried {
            if let Some(mismatch) = &tried.mismatch {
                text.push_str(&mismatch_text(tried, mismatch, &line, style));
            }
        }
        for assumption in &self.assumed {
            text.push_str(&format!("taken for granted: {assumption}\n"));
        }
        text
    }

    fn denied(&self, style: Style) -> String {
        let reason = self.reply.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let message = self.reply.message.as_deref().unwrap_or("no filter allows it");
        // The advice to run this very command.
        let message = message.split("; see: rootwrapctl explain").next().unwrap_or_default();
        format!("{}: {message}{reason}\n", style.paint(Paint::Bad, "denied"))
    }

    fn allowed(&self, filter: &str, argv: &[Vec<u8>], style: Style) -> String {
        let source = self
            .reply
            .tried
            .iter()
            .find(|tried| tried.filter == filter)
            .map_or("", |tried| &tried.source);
        let inner = self
            .reply
            .inner_filter
            .as_ref()
            .map(|inner| format!(" with {inner}"))
            .unwrap_or_default();
        let mut text = format!(
            "{} by {}{inner} {}\n",
            style.paint(Paint::Good, "allowed"),
            style.paint(Paint::Strong, filter),
            style.paint(Paint::Faint, source)
        );
        if let Some(executable) = &self.reply.executable {
            text.push_str(&format!("  executes      {executable}\n"));
        } else if !argv.iter().any(|word| word.ends_with(b"kill")) {
            // A filter for kill may send the signal itself and execute nothing.
            text.push_str("  executes      nothing: the command is not installed\n");
        }
        if let Some(privileges) = &self.reply.privileges {
            let capabilities = match privileges.capabilities.as_slice() {
                [] => "none".to_owned(),
                names => names.join(" "),
            };
            text.push_str(&format!("  run as        {}\n  capabilities  {capabilities}\n", privileges.run_as));
            for name in &privileges.capabilities {
                if let Some(how) = escape(name) {
                    text.push_str(&format!("                {name} is as good as root: it {how}\n"));
                }
            }
        }
        text
    }
}

/// What would be executed: the first of the filter's executables that exists.
fn executable(permit: &Permit) -> Option<String> {
    match permit.action() {
        Action::Execute { candidates, .. } => candidates.iter().find(|path| path.exists()).map(|path| path.display().to_string()),
        Action::Signal { .. } => None,
    }
}

/// A filter, and under the argument that it could not take what it expected.
fn mismatch_text(tried: &Tried, mismatch: &Mismatch, line: &CommandLine, style: Style) -> String {
    let heading = format!(
        "\n{} {}\n",
        style.paint(Paint::Strong, &tried.filter),
        style.paint(Paint::Faint, &tried.source)
    );
    let Some(argument) = mismatch.argument.and_then(|argument| usize::try_from(argument).ok()) else {
        return format!("{heading}  expected {}\n", mismatch.expected);
    };
    let mark = line.mark(argument);
    let caret = mark.trim_start();
    let blanks = " ".repeat(mark.len() - caret.len());
    format!(
        "{heading}  {}\n  {blanks}{} expected {}\n",
        line.text(),
        style.paint(Paint::Bad, caret),
        mismatch.expected
    )
}

fn in_words(question: &Question) -> String {
    match question {
        Question::PathUnder { path, base, .. } => {
            format!(
                "{} stays below {}",
                CommandLine::new(std::slice::from_ref(path)).text(),
                base.display()
            )
        }
        Question::PidOf {
            pid,
            executables,
            same_unit,
        } => {
            let names: Vec<String> = executables.iter().map(|path| path.display().to_string()).collect();
            let unit = if *same_unit { " in the caller's unit" } else { "" };
            format!("process {pid} runs {}{unit}", names.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::io_rootwrap::Privileges;

    fn argv() -> Vec<Vec<u8>> {
        ["ip", "link", "set", "v0", "mtu", "20"]
            .iter()
            .map(|argument| argument.as_bytes().to_vec())
            .collect()
    }

    fn denied(argument: Option<u32>) -> Report {
        Report::from(ExplainReply {
            reason: Some("arguments-mismatch".into()),
            message: Some("no filter allows these arguments".into()),
            tried: vec![Tried {
                filter: "set-mtu".into(),
                source: "/f.toml:3".into(),
                mismatch: Some(Mismatch {
                    argument,
                    expected: "an integer from 68 to 65535".into(),
                }),
            }],
            ..ExplainReply::default()
        })
    }

    #[test]
    fn a_mismatch_is_marked_under_its_argument() {
        insta::assert_snapshot!(denied(Some(5)).text(&argv(), Style::PLAIN), @r"
        denied: no filter allows these arguments (arguments-mismatch)

        set-mtu /f.toml:3
          ip link set v0 mtu 20
                             ^^ expected an integer from 68 to 65535
        ");
    }

    #[test]
    fn more_expected_is_marked_behind_the_last_argument() {
        let text = denied(Some(6)).text(&argv(), Style::PLAIN);
        assert!(
            text.contains("\n  ip link set v0 mtu 20\n                        ^ expected an integer"),
            "{text}"
        );
        assert!(
            denied(None)
                .text(&argv(), Style::PLAIN)
                .ends_with("set-mtu /f.toml:3\n  expected an integer from 68 to 65535\n")
        );
    }

    #[test]
    fn a_grant_says_filter_user_and_capabilities() {
        let reply = ExplainReply {
            allowed: true,
            filter: Some("hup".into()),
            inner_filter: Some("inner".into()),
            executable: Some("/usr/bin/kill".into()),
            privileges: Some(Privileges {
                run_as: "root".into(),
                capabilities: vec!["kill".into(), "sys_admin".into()],
            }),
            tried: vec![Tried {
                filter: "hup".into(),
                source: "/f.toml:9".into(),
                mismatch: None,
            }],
            ..ExplainReply::default()
        };
        let report = Report {
            reply,
            assumed: vec!["process 7 runs /usr/sbin/dnsmasq".into()],
        };
        insta::assert_snapshot!(report.text(&argv(), Style::PLAIN), @r"
        allowed by hup with inner /f.toml:9
          executes      /usr/bin/kill
          run as        root
          capabilities  kill sys_admin
                        sys_admin is as good as root: it mounts over any file
        taken for granted: process 7 runs /usr/sbin/dnsmasq
        ");
    }

    #[test]
    fn questions_are_put_in_words() {
        let path = Question::PathUnder {
            path: b"/srv/a b".to_vec(),
            base: "/srv".into(),
            links_to: vec![],
            new: false,
        };
        assert_eq!(in_words(&path), "'/srv/a b' stays below /srv");
        let pid = Question::PidOf {
            pid: 7,
            executables: vec!["/a".into(), "/b".into()],
            same_unit: true,
        };
        assert_eq!(in_words(&pid), "process 7 runs /a or /b in the caller's unit");
    }
}
