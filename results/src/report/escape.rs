//! Foreign words (of targets, scenarios, errors) made harmless for each place they are shown in.

/// Longest foreign text shown, characters.
const FOREIGN_MAX: usize = 400;

/// Characters that change how the text around them is shown: control characters, and the marks
/// that turn the direction of writing (Unicode Technical Report 36, section 2.5).
fn is_trick(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// One harmless line for a terminal, and the base of all others.
pub(crate) fn plain(text: &str) -> String {
    let mut line: String =
        text.chars().take(FOREIGN_MAX).map(|c| if is_trick(c) { '·' } else { c }).collect();
    if text.chars().nth(FOREIGN_MAX).is_some() {
        line.push('…');
    }
    line
}

/// For Markdown, also within a table: whatever could mean something becomes a character reference.
pub(crate) fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    let plain = plain(text);
    let mut chars = plain.chars().peekable();
    while let Some(c) = chars.next() {
        let link = c == ':' && chars.peek() == Some(&'/');
        match c {
            '&' | '<' | '>' | '"' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' | '\\' | '@'
            | '!' | '$' => escaped.push_str(&format!("&#{};", u32::from(c))),
            ':' if link => escaped.push_str("&#58;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// For the text and attributes of XML and HTML.
pub(crate) fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for c in plain(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON that can stand within a `<script>` element.
pub(crate) fn script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><b>|*x*| `c` [l](http://h) \u{1b}[31m\u{202e}\n\"'&";

    #[test]
    fn nothing_foreign_means_anything() {
        assert!(!plain(HOSTILE).contains(['\u{1b}', '\n', '\u{202e}']));
        assert!(!markdown(HOSTILE).contains(['<', '|', '*', '`', '[', '\n', '\u{1b}']));
        assert!(!markdown(HOSTILE).contains("http://"));
        assert!(!xml(HOSTILE).contains(['<', '"', '\'', '\n', '\u{1b}']));
        assert!(!script(HOSTILE).contains('<'));
        assert_eq!(plain(&"x".repeat(10_000)).chars().count(), FOREIGN_MAX + 1);
    }
}
