//! What a valid filter gives beyond what its author may think: warnings of `check` alone; the service does not repeat them at each reload.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::config::{Diagnostic, Severity};
use crate::policy::spec::{Capabilities, FilterSpec, Span, Stdin};
use crate::policy::{Policy, capability};

/// Capabilities that lead to full root whatever the others are, and how: capabilities(7).
const AS_GOOD_AS_ROOT: &[(&str, &str)] = &[
    ("sys_admin", "mounts over any file"),
    ("sys_module", "loads code into the kernel"),
    ("sys_ptrace", "takes over any process"),
    ("sys_rawio", "writes to memory and disks directly"),
    ("sys_boot", "boots another kernel by kexec"),
    ("dac_override", "writes to any file, /etc/shadow too"),
    ("dac_read_search", "reads any file, keys and /etc/shadow too"),
    ("chown", "takes any file, /etc/shadow too"),
    ("fowner", "changes the mode of any file"),
    ("setuid", "becomes any user"),
    ("setgid", "becomes a member of any group"),
    ("setfcap", "gives any program any capability"),
    ("setpcap", "passes capabilities on beyond the set"),
    ("mknod", "makes device files of disks and memory"),
    ("bpf", "runs programs in the kernel"),
    ("mac_admin", "changes the security policy"),
];

/// Programs that do what standard input says, without being told to.
const READ_COMMANDS: &[&str] = &[
    "arptables-restore",
    "at",
    "bash",
    "batch",
    "chpasswd",
    "crontab",
    "dash",
    "debconf-set-selections",
    "ebtables-restore",
    "fdisk",
    "ip6tables-restore",
    "ipset",
    "iptables-restore",
    "newusers",
    "nft",
    "perl",
    "python3",
    "sfdisk",
    "sh",
    "zsh",
];

/// How a capability leads to full root, where it does.
#[must_use]
pub fn escape(capability: &str) -> Option<&'static str> {
    AS_GOOD_AS_ROOT.iter().find(|(name, _)| *name == capability).map(|(_, how)| *how)
}

/// Warnings on all filters of a policy.
#[must_use]
pub fn lint(policy: &Policy) -> Vec<Diagnostic> {
    let mut files = Files::default();
    let mut warnings = Vec::new();
    for filter in policy.filters() {
        let Some(file) = usize::try_from(filter.span.file).ok().and_then(|file| policy.files().get(file)) else {
            continue;
        };
        let found = of_filter(filter).into_iter();
        warnings.extend(found.map(|found| files.warning(file, filter.span, filter.line, found)));
    }
    warnings
}

/// Code, message and hint.
type Found = (&'static str, String, &'static str);

fn of_filter(filter: &FilterSpec) -> Vec<Found> {
    let execution = &filter.execution;
    // "all" has its own warning, and nothing could be added to it.
    let Capabilities::Set(_) = execution.capabilities else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let escapes: Vec<String> = capability::names(execution.capabilities)
        .into_iter()
        .filter_map(|name| Some(format!("{name} ({})", escape(name)?)))
        .collect();
    if !escapes.is_empty() {
        let hint = "make sure that the arguments leave no way to use it for that, or do with less";
        found.push((
            "root-equivalent",
            format!("`{}` gives what is as good as root: {}", filter.name, escapes.join(", ")),
            hint,
        ));
    }
    let program = program(filter);
    // With those it matters little; and a filter for kill sends the signal by itself and runs nothing.
    if escapes.is_empty() && execution.run_as.ids.as_ref().is_some_and(|ids| ids.uid == 0) && program != "kill" {
        let hint = "if the command needs only its capabilities, give it a plain user: run_as = \"rootwrap\"";
        let message = format!(
            "`{}` runs as root, who owns root's files whatever the capabilities are",
            filter.name
        );
        found.push(("runs-as-root", message, hint));
    }
    if execution.stdin == Stdin::Caller && READ_COMMANDS.contains(&program) {
        let hint = "if it needs no input, add stdin = \"null\"";
        found.push((
            "input-not-judged",
            format!("{program} may do what comes in on standard input, which is not judged"),
            hint,
        ));
    }
    found
}

fn program(filter: &FilterSpec) -> &str {
    let path = filter.command.candidates.first().and_then(|path| path.file_name());
    path.and_then(|name| name.to_str()).unwrap_or_default()
}

/// The texts of the policy's files, each read once. They may have changed since: then a line is not shown.
#[derive(Debug, Default)]
struct Files(HashMap<PathBuf, String>);

impl Files {
    fn warning(&mut self, file: &Path, span: Span, line: u32, (code, message, hint): Found) -> Diagnostic {
        let text = self
            .0
            .entry(file.to_owned())
            .or_insert_with(|| std::fs::read_to_string(file).unwrap_or_default());
        let (column, length) = place(text, span).unwrap_or((1, 1));
        let index = usize::try_from(line).unwrap_or_default().saturating_sub(1);
        Diagnostic {
            severity: Severity::Warning,
            code,
            file: file.to_owned(),
            line,
            column,
            length,
            message,
            hint: Some(hint.to_owned()),
            source_line: text.lines().nth(index).map(str::to_owned),
        }
    }
}

/// Column, from 1, and length of a span in its line, in characters.
fn place(text: &str, span: Span) -> Option<(u32, u32)> {
    let (start, end) = (usize::try_from(span.start).ok()?, usize::try_from(span.end).ok()?);
    let before = text.get(..start)?.rsplit('\n').next()?.chars().count();
    let length = text.get(start..end)?.chars().count();
    Some((u32::try_from(before).ok()?.checked_add(1)?, u32::try_from(length).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_in_the_table_exists() {
        for (name, _) in AS_GOOD_AS_ROOT {
            assert!(capability::number(name).is_some(), "{name}");
        }
        assert_eq!(escape("net_admin"), None);
        assert!(escape("sys_module").is_some());
    }

    #[test]
    fn a_span_is_placed_in_its_line_by_characters() {
        let text = "x\n\u{e4} = \"b\"\n";
        let span = Span {
            file: 0,
            start: 7,
            end: 10,
        };
        assert_eq!(place(text, span), Some((5, 3)));
        assert_eq!(place("short", span), None);
    }
}
