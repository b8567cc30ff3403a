//! The report of an experiment as a value: what it says, its tables, its charts. The page, the
//! Markdown and the text for the terminal are all drawn from it, so they say the same.

use super::chart::{Backdrop, Chart, Latencies};
use super::table::Table;
use super::text::Text;
use super::{Data, escape, svg};
use crate::error::Error;
use serde::Serialize;
use std::path::Path;

const PAGE: &str = concat!(
    include_str!("../../assets/macros.html.j2"),
    include_str!("../../assets/experiment.html.j2")
);
const MARKDOWN: &str = concat!(
    include_str!("../../assets/macros.md.j2"),
    include_str!("../../assets/experiment.md.j2")
);

/// How the verdict is colored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mood {
    /// As wanted.
    #[default]
    Kept,
    /// Look closer.
    Strained,
    /// Not as wanted, or no answer.
    Broken,
}

/// The report of an experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Page {
    /// The command and the scenario: `compare quickstart`.
    pub(crate) title: String,
    /// What the scenario is about.
    pub(crate) about: String,
    /// What was tried, in a line.
    pub(crate) meta: String,
    /// The answer in a word or two.
    pub(crate) verdict: String,
    /// Its color.
    pub(crate) mood: Mood,
    /// The answer in a sentence.
    pub(crate) sentence: String,
    /// What else has to be known, a sentence each.
    pub(crate) remarks: Vec<String>,
    /// The parts.
    pub(crate) sections: Vec<Section>,
    /// What lies behind charts over time.
    #[serde(skip)]
    pub(crate) backdrop: Option<Backdrop>,
}

/// A part of a report.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Section {
    /// Its title.
    pub(crate) title: String,
    /// How to read it.
    pub(crate) note: String,
    /// Its table, if any.
    pub(crate) table: Table,
    /// The table for a terminal of eighty columns; the same one if that has no head.
    pub(crate) narrow: Table,
    /// Pictures: a file name and an SVG that was drawn by us.
    pub(crate) pictures: Vec<Picture>,
    /// Parts of a page that was drawn by us and cannot be shown elsewhere.
    pub(crate) html: String,
    /// Charts over time.
    pub(crate) charts: Vec<Chart>,
    /// Whether a terminal does without it.
    pub(crate) page_only: bool,
}

/// A picture.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Picture {
    /// Its file name without `.svg`.
    pub(crate) id: String,
    /// What it shows.
    pub(crate) title: String,
    /// The SVG.
    pub(crate) svg: String,
}

/// A report that was drawn.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// Its files, names and contents.
    pub files: Vec<(String, String)>,
    /// The Markdown among them.
    pub markdown: String,
    page: Page,
}

impl Drawn {
    /// The answer in a word or two.
    pub fn verdict(&self) -> String {
        self.page.verdict.clone()
    }

    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        self.page.sentence.clone()
    }

    /// The report for a terminal; `dir` is where its files are, if they were written.
    pub fn text(&self, dir: Option<&Path>) -> String {
        self.page.text(dir.map(|dir| dir.join(crate::run::REPORT_HTML)).as_deref())
    }
}

impl Page {
    /// Draws it.
    pub(crate) fn drawn(self) -> Result<Drawn, Error> {
        Ok(Drawn { files: self.files()?, markdown: self.markdown()?, page: self })
    }

    /// The files of the report, names and contents: the page, the Markdown, its charts.
    fn files(&self) -> Result<Vec<(String, String)>, Error> {
        let chart = |name: &str, svg: String| (format!("{}/{name}.svg", crate::run::CHARTS), svg);
        let mut files: Vec<(String, String)> = Vec::new();
        for section in &self.sections {
            let pictures = section.pictures.iter().map(|p| chart(&p.id, p.svg.clone()));
            files.extend(pictures);
            if let Some(backdrop) = &self.backdrop {
                let charts = section.charts.iter();
                files.extend(charts.map(|c| chart(&c.id, svg::draw(c, backdrop))));
            }
        }
        files.push((crate::run::REPORT_MD.to_owned(), self.markdown()?));
        files.push((crate::run::REPORT_HTML.to_owned(), self.html()?));
        Ok(files)
    }

    fn html(&self) -> Result<String, Error> {
        let none = Backdrop::none();
        let data = Data {
            backdrop: self.backdrop.as_ref().unwrap_or(&none),
            charts: &self.sections.iter().flat_map(|s| s.charts.clone()).collect::<Vec<_>>(),
            latencies: &Latencies::default(),
        };
        let json = serde_json::to_string(&data)
            .map_err(|error| Error::Template { reason: error.to_string() })?;
        super::fill(
            super::html_environment(),
            PAGE,
            serde_json::json!({
                "p": self,
                "assets": super::assets(),
                "data": escape::script(&json),
            }),
        )
    }

    /// The report for a forge: a pull request, a summary of a job.
    fn markdown(&self) -> Result<String, Error> {
        super::fill(super::markdown_environment(), MARKDOWN, serde_json::json!({ "p": self }))
    }

    /// The report for a terminal; `path` is where the page is, if it was written.
    fn text(&self, path: Option<&Path>) -> String {
        let mut text = Text::default();
        text.rule();
        text.line(&escape::plain(&self.title));
        for line in [&self.about, &self.meta].into_iter().filter(|line| !line.is_empty()) {
            text.line(&escape::plain(line));
        }
        for section in self.sections.iter().filter(|section| !section.page_only) {
            let table =
                if section.narrow.head.is_empty() { &section.table } else { &section.narrow };
            if !table.rows.is_empty() {
                text.head(&section.title);
                text.table(table);
            }
            if !section.note.is_empty() && !table.rows.is_empty() {
                text.line(&section.note);
            }
        }
        text.blank();
        for remark in &self.remarks {
            text.line(&escape::plain(&format!("note: {remark}")));
        }
        text.line(&escape::plain(&format!("{}: {}", self.verdict.to_uppercase(), self.sentence)));
        if let Some(path) = path {
            text.path("report", path);
        }
        text.finish()
    }
}
