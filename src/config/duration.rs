//! Spans of time as systemd.time(7) spells them: `5s`, `100ms`, `1h 30min`; a number alone is seconds.

use std::time::Duration;

use toml::de::DeValue;

use super::reader::{Node, Reader};

const UNITS: [(&str, u64); 17] = [
    ("us", 1),
    ("usec", 1),
    ("ms", 1_000),
    ("msec", 1_000),
    ("s", 1_000_000),
    ("sec", 1_000_000),
    ("second", 1_000_000),
    ("seconds", 1_000_000),
    ("m", 60_000_000),
    ("min", 60_000_000),
    ("minute", 60_000_000),
    ("minutes", 60_000_000),
    ("h", 3_600_000_000),
    ("hr", 3_600_000_000),
    ("hour", 3_600_000_000),
    ("hours", 3_600_000_000),
    ("d", 86_400_000_000),
];

/// Reads a span of time within `range`.
pub(crate) fn read(reader: Reader<'_>, node: Node<'_>, what: &str, range: std::ops::RangeInclusive<Duration>) -> Option<Duration> {
    let value = match node.value {
        DeValue::String(text) => parse(text),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok().map(Duration::from_secs),
        _ => {
            reader.wrong_type(
                node,
                &format!("{what} is a time such as \"5s\" or \"100ms\", or a number of seconds"),
            );
            return None;
        }
    };
    let Some(value) = value else {
        reader.error(
            node.span,
            "bad-time",
            &format!("{what} is no time"),
            "write it as in \"5s\", \"100ms\", \"1h 30min\", or as a whole number of seconds",
        );
        return None;
    };
    if range.contains(&value) {
        return Some(value);
    }
    let message = format!("{what} is from {:?} to {:?}", range.start(), range.end());
    reader.report.plain_error(node.span, "out-of-range", &message);
    None
}

/// `None` for what is no time, or one of over 2^64 microseconds.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim_matches(' ');
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(digits)?;
        let after = after.trim_start_matches(' ');
        let letters = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(letters)?;
        let micros = match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, micros)) => *micros,
            None if unit.is_empty() && total == 0 && after.is_empty() => 1_000_000,
            None => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(micros)?)?;
        rest = after.trim_start_matches(' ');
    }
    Some(Duration::from_micros(total))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn times_are_read_as_systemd_reads_them() {
        for (text, millis) in [
            ("5s", 5_000),
            ("100ms", 100),
            ("2min", 120_000),
            ("1h 30min", 5_400_000),
            ("1h30min", 5_400_000),
            ("5", 5_000),
            ("2 s", 2_000),
            ("1d", 86_400_000),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            " ",
            "s",
            "5x",
            "-5s",
            "1.5s",
            "5s 3",
            "99999999999999999999s",
            "infinity",
            "5\ts",
            "５s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
