//! Messages about files: `file:line:col: error[code]: what`, the source line, a caret, a hint.

use std::fmt;
use std::path::PathBuf;

/// How many characters of a long line are shown before and after where the caret begins.
const CONTEXT: (usize, usize) = (60, 80);

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The policy is void.
    Error,
    /// It is not.
    Warning,
}

/// One message. `Display` renders it over several lines, the last without a newline.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Stable, kebab-case: `unknown-key`, `unsafe-owner`.
    pub code: &'static str,
    /// The file or directory.
    pub file: PathBuf,
    /// From 1; 0 where it is about the file as a whole.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// How many characters the caret underlines.
    pub length: u32,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The line itself.
    pub source_line: Option<String>,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.file.to_string_lossy()))?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}[{}]: {}", self.severity, self.code, printable(&self.message))?;
        let number = if self.line > 0 { self.line.to_string() } else { String::new() };
        let margin = " ".repeat(number.len());
        if let Some(line) = &self.source_line {
            let (text, before, under) = excerpt(line, self.column, self.length);
            write!(f, "\n {number} | {}", text.trim_end())?;
            write!(f, "\n {margin} | {}{}", " ".repeat(before), "^".repeat(under))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n {margin} = hint: {}", printable(hint))?;
        }
        Ok(())
    }
}

/// The part of a line around the caret, ready to print, with the caret's place and width in it.
fn excerpt(line: &str, column: u32, length: u32) -> (String, usize, usize) {
    let start = column.saturating_sub(1) as usize;
    let first = if start > CONTEXT.0 + CONTEXT.1 { start - CONTEXT.0 } else { 0 };
    let mut shown = line.chars().skip(first);
    let mut text = if first > 0 { String::from("...") } else { String::new() };
    text.extend(shown.by_ref().take(start - first).map(as_printed));
    let before = text.chars().count();
    let marked: String = shown.by_ref().take((length as usize).clamp(1, CONTEXT.1)).map(as_printed).collect();
    let under = marked.chars().count().max(1);
    text.push_str(&marked);
    text.extend(shown.by_ref().take(CONTEXT.1).map(as_printed));
    if shown.next().is_some() {
        text.push_str("...");
    }
    (text, before, under)
}

/// A text without anything that steers a terminal or reorders what is shown.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(as_printed).collect()
}

fn as_printed(character: char) -> String {
    match character {
        '\t' => " ".into(),
        c if c.is_control() || steers_display(c) => c.escape_unicode().to_string(),
        c => c.into(),
    }
}

/// Characters of no width, and those that change the direction of others (Unicode TR 9).
fn steers_display(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic() -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: "unknown-key",
            file: "/etc/rootwrap/filters.d/50-l3.toml".into(),
            line: 12,
            column: 1,
            length: 6,
            message: "a filter has no key `comand`".into(),
            hint: Some("did you mean `command`?".into()),
            source_line: Some("comand = \"/usr/sbin/ip\"".into()),
        }
    }

    #[test]
    fn a_message_shows_place_line_caret_and_hint() {
        let expected = "/etc/rootwrap/filters.d/50-l3.toml:12:1: error[unknown-key]: a filter has no key `comand`\n \
            12 | comand = \"/usr/sbin/ip\"\n    | ^^^^^^\n    = hint: did you mean `command`?";
        assert_eq!(diagnostic().to_string(), expected);
    }

    #[test]
    fn a_message_about_a_whole_file_shows_no_line() {
        let about = Diagnostic {
            line: 0,
            source_line: None,
            severity: Severity::Warning,
            ..diagnostic()
        };
        assert!(
            about
                .to_string()
                .starts_with("/etc/rootwrap/filters.d/50-l3.toml: warning[unknown-key]: ")
        );
    }

    #[test]
    fn control_and_bidi_characters_are_escaped_and_the_caret_stays_in_place() {
        let about = Diagnostic {
            column: 3,
            length: 1,
            message: "a\u{1b}[2J".into(),
            source_line: Some("\u{7}\u{202e}x\ty".into()),
            hint: None,
            ..diagnostic()
        };
        let text = about.to_string();
        assert!(text.contains("a\\u{1b}[2J"), "{text}");
        assert!(text.contains(" 12 | \\u{7}\\u{202e}x y\n    |              ^"), "{text}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let about = Diagnostic {
            column: 5001,
            length: 3,
            source_line: Some("x".repeat(5000) + "bad" + &"y".repeat(5000)),
            ..diagnostic()
        };
        let lines: Vec<String> = about.to_string().lines().map(str::to_owned).collect();
        assert!(lines[1].len() < 200 && lines[1].starts_with(" 12 | ...xx") && lines[1].ends_with("yy..."));
        assert_eq!(lines[1].find("bad"), lines[2].find("^^^"));
    }
}
