//! A mistake in a scenario: where, what, and what to do about it, drawn with the line it is in.

use std::fmt;

/// Widest line of a drawn mistake, columns (a file's name alone may be longer).
const COLUMNS: usize = 80;

/// One mistake in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file, or the command line's `--set path`.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// How many characters it concerns, at least 1.
    pub width: u32,
    /// The line itself.
    pub text: String,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub suggestion: String,
}

impl std::error::Error for Mistake {}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let room = COLUMNS - number.len() - 3;
        let (text, indent, width) = window(&self.text, self.column, self.width, room);
        wrap(f, "error: ", &self.reason)?;
        writeln!(f, "{gutter}--> {}:{}:{}", self.file, self.line, self.column)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{}", format!("{number} | {text}").trim_end())?;
        writeln!(f, "{gutter} | {}{}", " ".repeat(indent), "^".repeat(width))?;
        wrap(f, &format!("{gutter} = help: "), &self.suggestion)
    }
}

/// Writes prose, broken between words, indented behind its label.
fn wrap(f: &mut fmt::Formatter<'_>, label: &str, prose: &str) -> fmt::Result {
    write!(f, "{label}")?;
    let mut column = label.len();
    for (i, word) in prose.split_whitespace().enumerate() {
        let width = columns(word);
        if i > 0 && column + 1 + width > COLUMNS {
            write!(f, "\n{}", " ".repeat(label.len()))?;
            column = label.len();
        } else if i > 0 {
            write!(f, " ")?;
            column += 1;
        }
        write!(f, "{}", word.chars().map(shown).collect::<String>())?;
        column += width;
    }
    writeln!(f)
}

/// The part of a line to show: its text, and where in it the mark begins and how wide it is.
fn window(line: &str, column: u32, width: u32, room: usize) -> (String, usize, usize) {
    let chars: Vec<char> = line.chars().map(shown).collect();
    let start = (column.max(1) as usize - 1).min(chars.len());
    let end = (start + width.max(1) as usize).min(chars.len()).max(start);
    let total: usize = chars.iter().map(|&c| breadth(c)).sum();
    let (mut from, mut to) = (0, chars.len());
    if total > room {
        // Keep a third of the room before the mark; an ellipsis at each cut.
        let all = room.saturating_sub(2);
        let mut before = all / 3;
        from = start;
        while from > 0 && breadth(chars[from - 1]) <= before {
            from -= 1;
            before -= breadth(chars[from]);
        }
        // Near the end of the line there is room for more before the mark.
        let mut behind: usize = chars[from..].iter().map(|&c| breadth(c)).sum();
        while from > 0 && behind + breadth(chars[from - 1]) <= all {
            from -= 1;
            behind += breadth(chars[from]);
        }
        to = from;
        let mut used = 0;
        while to < chars.len() && used + breadth(chars[to]) <= all {
            used += breadth(chars[to]);
            to += 1;
        }
    }
    let head = if from > 0 { "…" } else { "" };
    let tail = if to < chars.len() { "…" } else { "" };
    let text = format!("{head}{}{tail}", chars[from..to].iter().collect::<String>());
    let span = |a: usize, b: usize| -> usize { chars[a..b].iter().map(|&c| breadth(c)).sum() };
    let indent = head.chars().count() + span(from, start);
    (text, indent, span(start, end.min(to).max(start)).max(1))
}

/// Control characters would spoil a terminal.
fn shown(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '·',
        c => c,
    }
}

fn columns(text: &str) -> usize {
    text.chars().map(breadth).sum()
}

/// Columns a character takes in a terminal: two for East Asian wide ones and emoji.
fn breadth(c: char) -> usize {
    let wide = matches!(u32::from(c),
        0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD);
    1 + usize::from(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_fits_and_the_mark_is_under_its_word() {
        for at in [0, 10, 60, 200, 480] {
            let text = format!("{}here{}", "a ".repeat(at / 2), " b".repeat(250 - at / 2));
            let mistake = Mistake {
                file: "s.yaml".into(),
                line: 12,
                column: at as u32 + 1,
                width: 4,
                text,
                reason: "a long story about what is wrong here ".repeat(5),
                suggestion: "advice ".repeat(30),
            };
            let drawn = mistake.to_string();
            let lines: Vec<&str> = drawn.lines().collect();
            assert!(lines.iter().all(|line| columns(line) <= COLUMNS), "{drawn}");
            let source = lines.iter().position(|line| line.starts_with("12 |")).unwrap();
            let mark = lines[source + 1].chars().position(|c| c == '^').unwrap();
            let under: String = lines[source].chars().skip(mark).take(4).collect();
            assert_eq!(under, "here", "{drawn}");
        }
    }

    #[test]
    fn wide_and_control_characters_keep_the_mark_in_place() {
        assert_eq!(window("日本: x", 5, 1, 70), ("日本: x".into(), 6, 1));
        assert_eq!(window("a\u{1b}[2J b", 8, 1, 70).0, "a·[2J b");
        assert_eq!(window("", 9, 3, 70), (String::new(), 0, 1));
    }
}
