//! Time spans as systemd.time(7) writes them: `5s`, `1min 30s`, `500ms`, `2` (seconds).

use std::time::Duration;

/// Units in microseconds; longer spellings as systemd has them.
const UNITS: &[(&[&str], u64)] = &[
    (&["us", "usec", "µs", "μs"], 1),
    (&["ms", "msec"], 1_000),
    (&["", "s", "sec", "second", "seconds"], 1_000_000),
    (&["m", "min", "minute", "minutes"], 60_000_000),
    (&["h", "hr", "hour", "hours"], 3_600_000_000),
    (&["d", "day", "days"], 86_400_000_000),
    (&["w", "week", "weeks"], 604_800_000_000),
];

/// Parses a time span that is longer than nothing.
///
/// # Errors
/// A sentence that says what a time span looks like.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time span: write for example 30s, 500ms or 1min 30s");
    let mut total = 0_u64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split(after.trim_start(), char::is_alphabetic);
        total = microseconds(number, unit)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(wrong)?;
        rest = after.trim_start();
    }
    match total {
        0 => Err("a time span of zero leaves no time to run".into()),
        total => Ok(Duration::from_micros(total)),
    }
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// `1.5` and `min`: whole numbers only until the end, so that nothing is rounded.
fn microseconds(number: &str, unit: &str) -> Option<u64> {
    let (_, factor) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let mut total = whole.parse::<u64>().ok()?.checked_mul(*factor)?;
    let mut weight = *factor;
    for digit in fraction.chars() {
        weight /= 10;
        total = total.checked_add(weight.checked_mul(u64::from(digit.to_digit(10)?))?)?;
    }
    (!fraction.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_systemds_spellings_then_they_are_read() {
        for (text, micros) in [
            ("5", 5_000_000),
            ("5s", 5_000_000),
            ("500ms", 500_000),
            ("1min 30s", 90_000_000),
            ("1min30s", 90_000_000),
            ("1.5 h", 5_400_000_000),
            ("10us", 10),
            ("0.25s", 250_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn given_something_else_then_it_says_how_to_write_one() {
        for text in ["", "s", "-1", "5x", "1..2", ".5", "5.", "99999999999999999w", "1 2x"] {
            assert!(parse(text).unwrap_err().contains("for example"), "{text}");
        }
        assert!(parse("0").unwrap_err().contains("zero"));
    }
}
