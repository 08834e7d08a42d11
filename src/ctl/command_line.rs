//! A command as a person reads it, and a mark under one of its arguments.

use crate::client::command::report::quote;

/// A command on one line, quoted as a shell would take it, and where each argument stands.
#[derive(Debug)]
pub struct CommandLine {
    text: String,
    /// First column and width of each argument, in characters.
    places: Vec<(usize, usize)>,
}

impl CommandLine {
    /// Quotes a command.
    #[must_use]
    pub fn new(argv: &[Vec<u8>]) -> Self {
        let mut line = Self {
            text: String::new(),
            places: Vec::with_capacity(argv.len()),
        };
        let mut column = 0;
        for argument in argv {
            if !line.text.is_empty() {
                line.text.push(' ');
                column += 1;
            }
            let quoted = quote(argument);
            let width = quoted.chars().count();
            line.text.push_str(&quoted);
            line.places.push((column, width));
            column += width;
        }
        line
    }

    /// The line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Blanks and carets under an argument; one caret behind the last where `argument` is their number.
    #[must_use]
    pub fn mark(&self, argument: usize) -> String {
        let end = self.places.last().map_or(0, |(column, width)| column + width + 1);
        let (column, width) = self.places.get(argument).copied().unwrap_or((end, 1));
        format!("{}{}", " ".repeat(column), "^".repeat(width.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(argv: &[&[u8]]) -> CommandLine {
        CommandLine::new(&argv.iter().map(|argument| argument.to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_quoted_as_a_shell_takes_them() {
        let line = line(&[b"ip", b"", b"a b", b"x=1", b"\n"]);
        assert_eq!(line.text(), r"ip '' 'a b' x=1 $'\012'");
    }

    #[test]
    fn the_mark_stands_under_its_argument_as_quoted() {
        let line = line(&[b"ip", b"a b", b"xyz"]);
        assert_eq!(line.mark(1), "   ^^^^^");
        assert_eq!(line.mark(2), "         ^^^");
        assert_eq!(line.mark(3), "             ^", "behind the last: more was expected");
    }
}
