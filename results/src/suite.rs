//! The index of a suite: several experiments, one after the other, on one page.

use crate::error::Error;
use crate::experiment::{Drawn, told};
use crate::report::escape::xml;
use crate::report::format::duration;
use crate::report::page::{Mood, Page, Section};
use crate::report::table::Table;
use crate::report::words;
use crate::run::{REPORT_HTML, Run};
use serde::Serialize;
use std::path::Path;

/// One experiment of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// Its name, which is its folder's.
    pub name: String,
    /// The command: `run`, `compare`, …
    pub command: String,
    /// What it exited with; absent while it has not been carried out.
    pub code: Option<u8>,
    /// How long it took, seconds.
    pub seconds: f64,
    /// The answer in a word or two.
    pub verdict: String,
    /// The answer in a sentence.
    pub sentence: String,
}

impl Entry {
    /// Reads the answer from the experiment's folder. Leaves it empty if there is none.
    pub fn read(&mut self, dir: &Path) -> Result<(), Error> {
        (self.verdict, self.sentence) = match told(dir)? {
            Some(told) => (told.verdict, told.sentence),
            None => match Run::load(dir).ok().and_then(|run| run.manifest.result) {
                Some(summary) => {
                    (words::verdict_word(&summary).into(), words::verdict_sentence(&summary))
                }
                None => Default::default(),
            },
        };
        Ok(())
    }

    fn cells(&self) -> [String; 5] {
        let verdict = match (self.code, self.verdict.is_empty()) {
            (None, _) => "not yet".to_owned(),
            (Some(code), true) => format!("failed with exit code {code}"),
            (_, false) => self.verdict.clone(),
        };
        let took =
            if self.code.is_some() { duration(self.seconds * 1e3) } else { "–".to_owned() };
        [self.name.clone(), self.command.clone(), verdict, took, self.sentence.clone()]
    }
}

/// The index page of a suite.
pub fn index(title: &str, entries: &[Entry]) -> Result<Drawn, Error> {
    let mut table = Table::new(&["experiment", "command", "verdict", "took", "answer"]);
    table.words = true;
    let mut narrow = Table::new(&["experiment", "command", "verdict", "took"]);
    for entry in entries {
        let cells = entry.cells();
        narrow.row(false, cells[..4].to_vec());
        table.row(false, cells);
        if let Some(row) = table.rows.last_mut().filter(|_| !entry.verdict.is_empty()) {
            row.link = xml(&format!("{}/{REPORT_HTML}", entry.name));
        }
    }
    let done = entries.iter().filter(|entry| entry.code.is_some()).count();
    let well = entries.iter().filter(|entry| entry.code == Some(0)).count();
    let (verdict, mood) = match () {
        () if done < entries.len() => ("under way", Mood::Strained),
        () if well == done => ("kept", Mood::Kept),
        () => ("broken", Mood::Broken),
    };
    let section = Section { title: "Experiments".to_owned(), table, narrow, ..Section::default() };
    Page {
        title: title.to_owned(),
        meta: format!("a suite of {} experiments", entries.len()),
        verdict: verdict.to_owned(),
        mood,
        sentence: format!("{done} of {} carried out, {well} came out well.", entries.len()),
        sections: vec![section],
        ..Page::default()
    }
    .drawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_says_what_is_done_and_how_it_came_out() {
        let entry = |name: &str, code, verdict: &str| Entry {
            name: name.into(),
            command: "run".into(),
            code,
            verdict: verdict.into(),
            sentence: "all is <well>.".into(),
            ..Entry::default()
        };
        let (one, two) = (entry("01-a", Some(0), "kept"), entry("02-b", None, ""));
        let drawn = index("Two", &[one.clone(), two]).unwrap();
        assert_eq!(drawn.verdict(), "under way");
        assert!(drawn.markdown.contains("[01-a](01-a/report.html)"), "{}", drawn.markdown);
        let page = &drawn.files.iter().find(|(name, _)| name == REPORT_HTML).unwrap().1;
        assert!(page.contains("<a href=\"01-a/report.html\">") && page.contains("&lt;well&gt;"));
        assert!(drawn.text(None).contains("not yet"));
        let failed = index("Two", &[one, entry("02-b", Some(2), "")]).unwrap();
        assert_eq!(failed.verdict(), "broken");
        assert!(failed.text(None).contains("failed with exit code 2"));
    }
}
