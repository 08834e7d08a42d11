//! "Did you mean ...?"

/// The nearest of some names, if near enough to be a slip of the fingers.
pub(crate) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if wrong.len() > 64 {
        return None;
    }
    let lower = wrong.to_lowercase().replace('-', "_");
    let allowed = (lower.chars().count() / 3).clamp(1, 3);
    names
        .into_iter()
        .map(|name| (distance(&lower, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// `did you mean ...?` where something is near, else what there is.
pub(crate) fn hint(wrong: &str, names: &[&str]) -> String {
    match nearest(wrong, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("it is one of {}", names.join(", ")),
    }
}

/// Insertions, deletions, replacements and swaps of neighbours that make `a` from `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&above, j) + usize::from(x != y))
                .min(at(&above, j + 1) + 1)
                .min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let names = ["command", "capabilities", "callers", "cwd", "name"];
        assert_eq!(nearest("comand", names), Some("command"));
        assert_eq!(nearest("capabilites", names), Some("capabilities"));
        assert_eq!(nearest("Callers", names), Some("callers"));
        assert_eq!(nearest("nmae", names), Some("name"));
        assert_eq!(nearest("priority", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest(&"x".repeat(100_000), names), None);
    }

    #[test]
    fn distances_are_those_of_damerau_and_levenshtein() {
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("abcd", "abdc")), (3, 0, 1));
    }
}
