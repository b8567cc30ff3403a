//! The little CSV (RFC 4180) that the run directory needs: one row a line, always.

use std::borrow::Cow;

/// Most cells a row may have.
const CELLS_MAX: usize = 4_096;

/// A text as a cell: quoted where necessary, without anything that would end the line.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() || c == ',' || c == '"') {
        return Cow::Borrowed(text);
    }
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    Cow::Owned(format!("\"{}\"", clean.replace('"', "\"\"")))
}

/// The cells of a row.
pub(crate) fn cells(row: &str) -> Result<Vec<Cow<'_, str>>, String> {
    let mut cells = Vec::new();
    let mut rest = row;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        cells.push(cell);
        if cells.len() > CELLS_MAX {
            return Err(format!("more than {CELLS_MAX} cells"));
        }
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(cells),
            None => return Err("text after a closing quote".to_owned()),
        }
    }
}

fn unquote(quoted: &str) -> Result<(Cow<'_, str>, &str), String> {
    let mut text = String::new();
    let mut rest = quoted;
    loop {
        let end = rest.find('"').ok_or("a quote is never closed")?;
        text.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(next) => {
                text.push('"');
                rest = next;
            }
            None => return Ok((Cow::Owned(text), rest)),
        }
    }
}

/// The header of a table: finds cells by their columns' names.
#[derive(Debug)]
pub(crate) struct Header(Vec<String>);

impl Header {
    /// Parses the first row.
    pub(crate) fn parse(row: &str) -> Result<Header, String> {
        Ok(Header(cells(row)?.into_iter().map(Cow::into_owned).collect()))
    }

    /// Pairs a row's cells with the names of their columns.
    pub(crate) fn pair<'a>(&'a self, row: &'a str) -> Result<Vec<(&'a str, Cow<'a, str>)>, String> {
        let cells = cells(row)?;
        if cells.len() != self.0.len() {
            return Err(format!("{} cells instead of {}", cells.len(), self.0.len()));
        }
        Ok(self.0.iter().map(String::as_str).zip(cells).collect())
    }
}

/// A whole number; the column's name is for the complaint.
pub(crate) fn number<T: std::str::FromStr>(column: &str, cell: &str) -> Result<T, String> {
    cell.parse().map_err(|_| format!("{column}: “{}” is not a number", clip(cell)))
}

/// The beginning of a foreign text, for a message.
pub(crate) fn clip(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { '·' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_survive_a_round_trip() {
        for row in
            [vec!["a", "", "b"], vec!["say \"hi\", you", "ü"], vec![""], vec!["\"", ",", "x y"]]
        {
            let line = row.iter().map(|c| cell(c)).collect::<Vec<_>>().join(",");
            assert_eq!(
                cells(&line).as_deref(),
                Ok(&row.iter().map(|&c| c.into()).collect::<Vec<_>>()[..])
            );
        }
        assert!(!cell("two\nlines").contains('\n'));
    }

    #[test]
    fn bad_rows_are_refused() {
        assert!(cells("\"open").is_err());
        assert!(cells("\"a\"b").is_err());
        assert!(cells(&",".repeat(CELLS_MAX + 1)).is_err());
        assert!(Header::parse("a,b").and_then(|h| h.pair("1").map(|_| ())).is_err());
    }
}
