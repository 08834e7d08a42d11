//! What goes to standard error when a command did not run: why, and what to do; and the exit status for it.

use crate::cli::rootwrap::Arguments;
use crate::client::Error;
use crate::protocol;
use crate::protocol::io_rootwrap::ListFiltersReply;
use crate::protocol::run::Wanted;

use super::TROUBLE;

const TIMED_OUT: u8 = 124;
const NOT_PERMITTED: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Characters of a command that a message repeats; the command itself may have thousands of arguments.
const LONGEST_COMMAND: usize = 2000;

/// Why the command did not run, and the exit status.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit status.
    pub status: u8,
    /// A line or more, without the program's name.
    pub text: String,
}

impl Failure {
    /// Trouble of rootwrap itself.
    pub fn trouble(text: String) -> Self {
        Self { status: TROUBLE, text }
    }
}

/// One argument as a shell reads it back; what a terminal would act on is escaped.
pub fn quote(argument: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(byte);
    match std::str::from_utf8(argument) {
        Ok(text) if !text.is_empty() && argument.iter().all(plain) => text.into(),
        Ok(text) if text.chars().all(is_harmless) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let mut quoted = String::from("$'");
            for byte in argument {
                match byte {
                    b'\'' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
                    b' '..=b'~' => quoted.push(char::from(*byte)),
                    // Octal: three digits end an escape, whatever follows.
                    _ => quoted.push_str(&format!("\\{byte:03o}")),
                }
            }
            quoted.push('\'');
            quoted
        }
    }
}

/// Neither a control character nor one that reorders or hides text.
fn is_harmless(c: char) -> bool {
    let hides = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    !c.is_control() && !hides
}

/// Text of the service for a terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if is_harmless(c) || c == '\n' { c } else { '\u{fffd}' })
        .collect()
}

/// The command as a shell reads it back, shortened where it is very long.
fn command_line(argv: &[Vec<u8>]) -> String {
    let mut line = String::new();
    for argument in argv {
        if line.len() > LONGEST_COMMAND {
            line.push_str(" ...");
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let quoted = quote(argument);
        match quoted.char_indices().nth(LONGEST_COMMAND) {
            Some((end, _)) => {
                line.push_str(quoted.get(..end).unwrap_or_default());
                line.push_str("...");
            }
            None => line.push_str(&quoted),
        }
    }
    line
}

/// The line that explains the decision on this request.
pub fn explain_line(arguments: &Arguments, wanted: &Wanted) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut line = String::from("rootwrapctl");
    let mut add = |word: &str, value: Option<&[u8]>| {
        line.push(' ');
        line.push_str(word);
        if let Some(value) = value {
            line.push(' ');
            line.push_str(&quote(value));
        }
    };
    if let Some(socket) = &arguments.socket {
        add("--socket", Some(socket.as_os_str().as_bytes()));
    }
    add("explain", None);
    for (name, value) in &wanted.environment {
        add("--env", Some(&[name.as_slice(), value].join(&b'=')));
    }
    if let Some(filter) = &wanted.filter {
        add("--filter", Some(filter.as_bytes()));
    }
    if let Some(directory) = &arguments.chdir {
        add("--chdir", Some(directory.as_os_str().as_bytes()));
    }
    format!("{line} -- {}", command_line(&wanted.argv))
}

/// Why, for people, and the exit status.
pub fn failure(error: &Error, explain: &str, arguments: &Arguments) -> Failure {
    let text = error.to_string();
    match error {
        Error::Refused(refused) => refusal(refused, explain, arguments),
        Error::Connect { source, .. } => Failure::trouble(format!("{text}{}", connect_hint(source))),
        Error::Untrusted { .. } => Failure::trouble(format!(
            "{text}; the service's socket belongs to root: check --socket and ROOTWRAP_SOCKET"
        )),
        Error::Broken(_) => Failure::trouble(format!(
            "{text}; whether the command ran is unknown, see: journalctl -u rootwrap.service"
        )),
        Error::Unsendable(_) | Error::Protocol(_) => Failure::trouble(text),
    }
}

fn connect_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => "; is it enabled? see: systemctl status rootwrap.socket",
        std::io::ErrorKind::PermissionDenied => "; the socket's mode does not let you in: ask the administrator",
        _ => "",
    }
}

fn refusal(error: &protocol::Error, explain: &str, arguments: &Arguments) -> Failure {
    use protocol::Error as E;
    let text = printable(&error.to_string());
    let (status, text) = match error {
        E::NotPermitted { reason, message } => (NOT_PERMITTED, denial(reason, &printable(message), explain, arguments)),
        E::NoSuchExecutable { command } => (
            NOT_FOUND,
            format!("{}: a filter allows it, but it is not installed", printable(command)),
        ),
        E::TimedOut { timeout_usec } => (TIMED_OUT, format!("the command was ended after {} s", seconds(*timeout_usec))),
        E::LaunchFailed { errno, .. } if *errno == libc::ENOENT => (NOT_FOUND, text),
        E::LaunchFailed { .. } => (NOT_PERMITTED, format!("{text}; see: journalctl -u rootwrap.service")),
        E::Busy { what } => (TROUBLE, busy(what)),
        E::PolicyUnavailable {} => (TROUBLE, text),
        E::AuditUnavailable {} => (TROUBLE, format!("{text}; see: systemctl status systemd-journald")),
        E::OutcomeUnknown { .. } => (TROUBLE, format!("{text}; see: journalctl -u rootwrap.service")),
        _ => (TROUBLE, text),
    };
    Failure { status, text }
}

/// Which limit is reached, and whose.
fn busy(what: &str) -> String {
    let why = match what {
        "filter" => "the filter allows no more of this command at once (max_concurrent)".to_owned(),
        "connections" => "there are too many connections".to_owned(),
        "commands" => "too many commands are running".to_owned(),
        "stopping" => "the service is stopping".to_owned(),
        other => format!("the limit of {} is reached", printable(other)),
    };
    format!("busy: {why}; try again later")
}

/// `reason` is the service's word for machines; `message` its sentence for people, which mostly says already what to do.
fn denial(reason: &str, message: &str, explain: &str, arguments: &Arguments) -> String {
    use std::os::unix::ffi::OsStrExt;
    let text = match reason {
        _ if !message.is_empty() => message.trim_end().to_owned(),
        "no-filter" | "arguments-mismatch" => {
            let argv: Vec<Vec<u8>> = arguments.command.iter().map(|argument| argument.as_bytes().to_vec()).collect();
            format!("no filter for `{}` allows you", command_line(&argv))
        }
        "stdin-mismatch" => "the filter takes no standard input: run it with < /dev/null".into(),
        _ => format!("not permitted: {}", printable(reason)),
    };
    if text.contains("; see: ") {
        text
    } else {
        format!("{}; see: {explain}", text.trim_end_matches('.'))
    }
}

fn seconds(micros: u64) -> String {
    let fraction = format!("{:06}", micros % 1_000_000);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}", micros / 1_000_000)
}

/// The filters, a line each. Empty where there are none.
pub fn listing(listed: &ListFiltersReply) -> String {
    let mut text = String::new();
    for filter in &listed.filters {
        let command = filter.command.first().map_or("", String::as_str);
        let line = format!("{}: {command} {}", filter.name, filter.arguments);
        text.push_str(printable(line.trim_end()).replace('\n', " ").as_str());
        if filter.inner_only {
            text.push_str("  (only behind another filter's command)");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_arguments_then_a_shell_reads_them_back() {
        let bytes: Vec<u8> = (1..=255).collect();
        for argument in [
            &b"ip"[..],
            b"",
            b"a b",
            b"it's",
            b"\x1b[2J",
            "\u{202e}x".as_bytes(),
            "gr\u{fc}n".as_bytes(),
            b"\\",
            b"\n'1",
            b"~",
            &bytes,
        ] {
            let quoted = quote(argument);
            assert!(quoted.chars().all(is_harmless), "{quoted}");
            let output = std::process::Command::new("bash")
                .args(["-c", &format!("printf %s {quoted}")])
                .output()
                .unwrap();
            assert_eq!(output.stdout, argument, "{quoted}");
        }
    }

    #[test]
    fn given_many_arguments_then_the_message_stays_short() {
        let line = command_line(&vec![vec![b'x'; 100]; 4096]);
        assert!(line.len() < 2 * LONGEST_COMMAND && line.ends_with(" ..."));
        assert!(command_line(&[vec![b'x'; 1 << 20]]).len() < 2 * LONGEST_COMMAND);
    }

    #[test]
    fn given_microseconds_then_seconds_without_zeros() {
        assert_eq!(
            (seconds(5_000_000), seconds(1_500_000), seconds(1)),
            ("5".into(), "1.5".into(), "0.000001".into())
        );
    }
}
