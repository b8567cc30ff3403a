//! What somebody probably meant: the nearest of the words that would have been right.

/// Longest word that is compared, characters: the work grows with the square.
const WORD_MAX: usize = 64;
/// Most words shown in a list of those that are possible.
const LISTED_MAX: usize = 20;

/// The candidate nearest to `word`, if it is near enough to be what was meant.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = word.chars().count();
    if length > WORD_MAX {
        return None;
    }
    let limit = (length / 3).max(1);
    candidates
        .into_iter()
        .filter(|other| other.chars().count() <= WORD_MAX)
        .map(|other| (distance(word, other), other))
        .filter(|&(far, other)| far <= limit || (length > 2 && is_form(word, other)))
        .min_by_key(|&(far, _)| far)
        .map(|(_, other)| other)
}

/// "did you mean …?" or, if nothing is near, what there is.
pub(super) fn advice<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
    possible: &str,
) -> String {
    if let Some(near) = nearest(word, candidates.clone()) {
        return format!("did you mean `{near}`?");
    }
    let mut all = candidates.into_iter();
    let listed: Vec<String> = all.by_ref().take(LISTED_MAX).map(|c| format!("`{c}`")).collect();
    match (listed.is_empty(), all.next()) {
        (true, _) => format!("there are no {possible}"),
        (false, None) => format!("the {possible} are {}", listed.join(", ")),
        (false, Some(_)) => format!("the {possible} are {}, …", listed.join(", ")),
    }
}

/// Whether one is the other with another ending or separator: `viewer` and `viewers`.
fn is_form(word: &str, other: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let (word, other) = (plain(word), plain(other));
    word == other || (word.len() > 2 && other.starts_with(&word))
}

/// Edits (insert, remove, replace, swap neighbors) from one word to the other; case is half
/// a mistake and is not counted.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    let is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    if is_swap {
                        least = least.min(rows[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant_is_found() {
        let words = ["size", "features", "accounts", "joined", "journey", "viewers", "log-normal"];
        let check =
            |word: &str, want: Option<&str>| assert_eq!(nearest(word, words), want, "{word}");
        check("sise", Some("size"));
        check("szie", Some("size"));
        check("viewer", Some("viewers"));
        check("Size", Some("size"));
        check("log_normal", Some("log-normal"));
        check("feature", Some("features"));
        check("jurney", Some("journey"));
        check("banana", None);
        check("x", None);
        check(&"x".repeat(100_000), None);
    }

    #[test]
    fn advice_lists_what_there_is() {
        assert_eq!(advice("q", ["a1", "b1"], "keys"), "the keys are `a1`, `b1`");
        assert_eq!(advice("q", [], "rooms"), "there are no rooms");
    }
}
