//! One file: its text, its TOML, and where in it a byte stands.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::report::Report;
use crate::policy::spec::Span;

/// As much of a line as a message carries.
const MAXIMUM_LINE: usize = 16_384;

/// One file of a policy or of the settings.
#[derive(Debug)]
pub(crate) struct Document {
    pub path: PathBuf,
    text: String,
    /// Where each line begins.
    lines: Vec<usize>,
}

/// A place in a file, for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub line: u32,
    pub column: u32,
    pub length: u32,
    pub source_line: String,
}

impl Document {
    /// Takes the file's bytes. What is not UTF-8 is reported, and cuts the text off there.
    pub fn new(file: u32, path: &Path, bytes: Vec<u8>, report: &Report) -> Self {
        let (text, valid) = match String::from_utf8(bytes) {
            Ok(text) => (text, true),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(valid);
                (String::from_utf8(bytes).unwrap_or_default(), false)
            }
        };
        if !valid {
            let at = to_u32(text.len());
            report.error(
                Span { file, start: at, end: at },
                "syntax",
                "this byte is not UTF-8",
                "save the file as UTF-8",
            );
        }
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self {
            path: path.to_owned(),
            text,
            lines,
        }
    }

    /// The line of a byte, from 1.
    pub fn line(&self, at: u32) -> u32 {
        to_u32(self.lines.partition_point(|start| *start <= at as usize))
    }

    /// Where a span stands. It is underlined up to the end of its first line.
    pub fn position(&self, span: Span) -> Position {
        let line = self.line(span.start);
        let start = self.lines.get(line.saturating_sub(1) as usize).copied().unwrap_or_default();
        let rest = self.text.get(start..).unwrap_or_default();
        let whole = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let at = (span.start as usize).saturating_sub(start);
        let to = (span.end as usize).saturating_sub(start);
        Position {
            line,
            column: to_u32(characters(whole, at)).saturating_add(1),
            length: to_u32(characters(whole, to).saturating_sub(characters(whole, at))).max(1),
            source_line: whole.chars().take(MAXIMUM_LINE).collect(),
        }
    }

    /// Parses it; `None` when it is no TOML, every reason reported.
    pub fn parse(&self, file: u32, report: &Report) -> Option<Spanned<DeTable<'_>>> {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        // What a slip leads to on the same line says nothing more.
        let mut last = 0;
        for error in &errors {
            let range = error.span().unwrap_or_default();
            let span = span_of(file, &range);
            let line = self.line(span.start);
            if std::mem::replace(&mut last, line) == line {
                continue;
            }
            report.plain_error(span, "syntax", &format!("not TOML: {}", error.message().replace('\n', ", ")));
        }
        if !errors.is_empty() {
            return None;
        }
        for (_, value) in table.get_ref() {
            self.lint_newlines(file, value, report);
        }
        Some(table)
    }

    /// TOML 1.0 has no newline and no trailing comma between `{` and `}` outside an array; TOML 1.1 has.
    fn lint_newlines(&self, file: u32, value: &Spanned<DeValue<'_>>, report: &Report) {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().for_each(|item| self.lint_newlines(file, item, report)),
            DeValue::Table(table) => {
                if self.text.get(value.span()).is_some_and(|text| text.starts_with('{')) {
                    self.lint_inline(file, value, table, report);
                }
                table.iter().for_each(|(_, item)| self.lint_newlines(file, item, report));
            }
            _ => {}
        }
    }

    fn lint_inline(&self, file: u32, value: &Spanned<DeValue<'_>>, table: &DeTable<'_>, report: &Report) {
        let range = value.span();
        let mut covered = Vec::new();
        self.cover(table, &mut covered);
        covered.sort_unstable_by_key(|part: &std::ops::Range<usize>| part.start);
        covered.push(range.end.saturating_sub(1)..range.end);
        let mut from = range.start;
        for part in covered {
            let gap = self.text.get(from..part.start).unwrap_or_default();
            if let Some(newline) = gap.find('\n') {
                let at = to_u32(from + newline.min(gap.trim_end_matches(['\n', '\r', ' ', '\t']).len()));
                report.warning(
                    Span { file, start: at, end: at },
                    "toml-1.1",
                    "a newline between `{` and `}` is not TOML 1.0: other tools may refuse this file",
                    "write the table on one line, or as a [table] of its own",
                );
                return;
            }
            if gap.contains(',') && part.end == range.end {
                let at = to_u32(from + gap.find(',').unwrap_or_default());
                report.warning(
                    Span {
                        file,
                        start: at,
                        end: at + 1,
                    },
                    "toml-1.1",
                    "a comma before `}` is not TOML 1.0: other tools may refuse this file",
                    "take it out",
                );
            }
            from = from.max(part.end);
        }
    }

    /// What keys and values of an inline table stand on; dotted keys make tables that stand on nothing of their own.
    fn cover(&self, table: &DeTable<'_>, covered: &mut Vec<std::ops::Range<usize>>) {
        for (key, value) in table {
            covered.push(key.span());
            match value.get_ref() {
                DeValue::Table(inner) if !self.text.get(value.span()).is_some_and(|text| text.starts_with('{')) => {
                    self.cover(inner, covered)
                }
                _ => covered.push(value.span()),
            }
        }
    }
}

/// A range of bytes as a span.
pub(crate) fn span_of(file: u32, range: &std::ops::Range<usize>) -> Span {
    Span {
        file,
        start: to_u32(range.start),
        end: to_u32(range.end),
    }
}

fn characters(text: &str, bytes: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < bytes).count()
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<(u32, u32, &'static str)> {
        let report = Report::new();
        let document = Document::new(0, Path::new("/f.toml"), text.as_bytes().to_vec(), &report);
        document.parse(0, &report);
        let found = report.into_diagnostics(&[document]);
        found.iter().map(|d| (d.line, d.column, d.code)).collect()
    }

    #[test]
    fn given_several_syntax_errors_then_all_are_told() {
        assert_eq!(
            codes("a = \nb = 1\nc = [1,\n\nd = 'x\n").iter().map(|c| c.2).collect::<Vec<_>>()[..2],
            ["syntax", "syntax"]
        );
    }

    #[test]
    fn given_newlines_in_inline_tables_then_they_are_linted_outside_arrays_only() {
        assert_eq!(codes("a = { b = 1,\n c = 2 }\n"), [(1, 13, "toml-1.1")]);
        assert_eq!(codes("a = { b.x = 1, b.y = [\n 1,\n], c = \"\"\"\n\n\"\"\" }\n"), []);
        assert_eq!(codes("a = { b = 1, }\nc = { d = ',', e = [1,] }\nf = {}\n"), [(1, 12, "toml-1.1")]);
        assert_eq!(codes("a = [{ b = [\n{ c = 1\n} ] }]\n"), [(2, 8, "toml-1.1")]);
    }

    #[test]
    fn given_bytes_that_are_not_utf8_then_the_first_is_shown() {
        let report = Report::new();
        let document = Document::new(0, Path::new("/f.toml"), b"a = 1\n# \xff\n".to_vec(), &report);
        let found = report.into_diagnostics(&[document]);
        assert_eq!((found[0].line, found[0].column, found[0].code), (2, 3, "syntax"));
    }

    #[test]
    fn columns_are_characters() {
        let report = Report::new();
        let text = "x = 'äöü' # ?\ny = 1\r\n";
        let document = Document::new(0, Path::new("/f.toml"), text.as_bytes().to_vec(), &report);
        let at = text.find('#').unwrap() as u32;
        let position = document.position(Span {
            file: 0,
            start: at,
            end: at + 3,
        });
        assert_eq!((position.line, position.column, position.length), (1, 11, 3));
        assert_eq!(
            document
                .position(Span {
                    file: 0,
                    start: at + 4,
                    end: at + 9
                })
                .source_line,
            "y = 1"
        );
    }
}
