//! What a capacity looks like: the answer in words, each criterion against people, the levels.

mod chart;
mod rows;
mod words;

use super::Capacity;
use super::continuous::Settled;
use crate::Error;
use crate::experiment::Drawn;
use crate::report::page::{self, Mood, Page, Section};
use crate::report::table::Table;
use rows::table;

/// Criteria that have a column of their own in a terminal.
const CRITERIA_SHOWN: usize = 2;

/// What the report says besides the answer.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The scenario's name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// The target and its version.
    pub target: String,
}

impl About {
    fn page(&self, answer: Option<u32>, sentence: String, sections: Vec<Section>) -> Page {
        let verdict = match answer {
            Some(people) => words::people(people),
            None => "no answer".to_owned(),
        };
        Page {
            title: format!("Capacity: {}", self.name),
            about: self.about.clone(),
            meta: self.target.clone(),
            verdict,
            mood: if answer.is_some() { Mood::Kept } else { Mood::Broken },
            sentence,
            sections,
            ..Page::default()
        }
    }
}

impl Capacity {
    /// Draws the report.
    pub fn draw(&self, about: &About) -> Result<Drawn, Error> {
        let criteria = Section {
            title: "Each criterion against people".to_owned(),
            note:
                "Every trial, the bound, and the interval of the answer. A level is held in runs \
                   that last; “!” marks a bound that was broken."
                    .to_owned(),
            pictures: pictures(&chart::Picture::of(self)),
            table: table(&self.curves, None),
            narrow: table(&self.curves, Some(CRITERIA_SHOWN)),
            ..Section::default()
        };
        let sections = vec![facts(words::facts(self)), criteria];
        about.page(self.people, words::sentence(self), sections).drawn()
    }
}

impl Settled {
    /// Draws the report.
    pub fn draw(&self, about: &About) -> Result<Drawn, Error> {
        let criteria = Section {
            title: "Each criterion against people".to_owned(),
            note:
                "Every decision: how many people there were, and what was measured over the last \
                   seconds before it."
                    .to_owned(),
            pictures: pictures(&chart::Picture::of_settled(self)),
            ..Section::default()
        };
        let sections = vec![facts(words::settled_facts(self)), criteria];
        about.page(self.supported, words::settled(self), sections).drawn()
    }
}

fn facts(facts: Vec<(&'static str, String)>) -> Section {
    let mut table = Table::new(&["", "found"]);
    table.words = true;
    for (label, fact) in facts {
        table.row(false, [label.to_owned(), fact]);
    }
    Section { title: "The answer".to_owned(), table, ..Section::default() }
}

fn pictures(pictures: &[chart::Picture<'_>]) -> Vec<page::Picture> {
    let picture = |(i, picture): (usize, &chart::Picture<'_>)| page::Picture {
        id: format!("capacity-{}", i + 1),
        title: format!("{} against people", picture.criterion()),
        svg: chart::draw(picture),
    };
    pictures.iter().enumerate().map(picture).collect()
}
