//! Colours, for a terminal only.

use std::io::IsTerminal;

/// Whether and how to colour.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: bool,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug)]
pub enum Paint {
    /// Allowed, passed, running.
    Good,
    /// Denied, an error.
    Bad,
    /// A warning.
    Doubtful,
    /// A place in a file.
    Faint,
    /// A heading.
    Strong,
}

impl Style {
    /// For standard output.
    #[must_use]
    pub fn of_stdout() -> Self {
        Self::of(std::io::stdout().is_terminal())
    }

    /// For standard error.
    #[must_use]
    pub fn of_stderr() -> Self {
        Self::of(std::io::stderr().is_terminal())
    }

    /// Colours on a terminal that has some, where `NO_COLOR` is not set (<https://no-color.org>).
    fn of(is_terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            colour: is_terminal && !refused && !dumb,
        }
    }

    /// No colours.
    pub const PLAIN: Self = Self { colour: false };

    /// A piece of text in its colour.
    #[must_use]
    pub fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Good => "32",
            Paint::Bad => "1;31",
            Paint::Doubtful => "33",
            Paint::Faint => "2",
            Paint::Strong => "1",
        };
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_pipe_then_no_escape_sequences() {
        assert_eq!(Style::PLAIN.paint(Paint::Bad, "denied"), "denied");
        assert_eq!(Style { colour: true }.paint(Paint::Bad, "denied"), "\x1b[1;31mdenied\x1b[0m");
    }
}
