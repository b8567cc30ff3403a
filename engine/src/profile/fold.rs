//! Folded stacks: one line a stack, its functions from the root on, and how often it was seen.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Most functions of a stack; what lies deeper is left out.
const FRAMES_MAX: usize = 256;
/// Longest name of a function, characters.
const NAME_MAX: usize = 240;
/// Most different stacks.
const STACKS_MAX: usize = 200_000;
/// Most bytes of all stacks together.
const BYTES_MAX: usize = 48 << 20;
/// Stands for the stacks beyond these bounds.
const LEFT_OUT: &str = "[left out]";

/// Stacks and how often each was seen.
#[derive(Debug, Default)]
pub(super) struct Folds {
    stacks: HashMap<String, u64>,
    bytes: usize,
}

impl Folds {
    /// A stack was seen `weight` times. Functions are given from the root on.
    pub(super) fn add<'a>(&mut self, frames: impl Iterator<Item = &'a str>, weight: u64) {
        let mut stack = String::new();
        for frame in frames.take(FRAMES_MAX) {
            if !stack.is_empty() {
                stack.push(';');
            }
            push_name(&mut stack, frame);
        }
        if stack.is_empty() || weight == 0 {
            return;
        }
        let is_new = !self.stacks.contains_key(&stack);
        if is_new && (self.stacks.len() >= STACKS_MAX || self.bytes + stack.len() > BYTES_MAX) {
            stack = LEFT_OUT.into();
        } else if is_new {
            self.bytes += stack.len();
        }
        let count = self.stacks.entry(stack).or_default();
        *count = count.saturating_add(weight);
    }

    /// Whether nothing was seen.
    pub(super) fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The lines, in order of the alphabet.
    pub(super) fn text(&self) -> String {
        let mut stacks: Vec<(&String, &u64)> = self.stacks.iter().collect();
        stacks.sort_unstable();
        let mut text = String::with_capacity(self.bytes + stacks.len() * 8);
        for (stack, count) in stacks {
            let _ = writeln!(text, "{stack} {count}");
        }
        text
    }
}

/// A name as it can stand in a folded stack: one line, without the separator.
fn push_name(stack: &mut String, name: &str) {
    let clean = name.trim().chars().take(NAME_MAX).map(|c| match c {
        ';' => ':',
        c if c.is_control() => '\u{fffd}',
        c => c,
    });
    let before = stack.len();
    stack.extend(clean);
    if stack.len() == before {
        stack.push_str("[no name]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_format() {
        let mut folds = Folds::default();
        folds.add(["a;b", "c\nd", " "].into_iter(), 2);
        folds.add(["a;b", "c\nd", ""].into_iter(), 1);
        folds.add(std::iter::empty(), 5);
        assert_eq!(folds.text(), "a:b;c\u{fffd}d;[no name] 3\n");
    }

    #[test]
    fn everything_has_an_end() {
        let mut folds = Folds::default();
        folds.add(std::iter::repeat_n("f", 100_000), u64::MAX);
        folds.add(std::iter::repeat_n("f", 100_000), 1);
        let text = folds.text();
        assert_eq!(text.matches('f').count(), FRAMES_MAX);
        assert!(text.ends_with(&format!(" {}\n", u64::MAX)));
        for n in 0..STACKS_MAX + 10 {
            folds.add(std::iter::once(n.to_string().as_str()), 1);
        }
        assert_eq!(folds.stacks.len(), STACKS_MAX + 1);
        assert_eq!(folds.stacks[LEFT_OUT], 11);
    }
}
