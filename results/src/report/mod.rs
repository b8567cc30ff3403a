//! Reports: drawn from a run directory at any time, and never a source of anything.

mod by_load;
pub(crate) mod chart;
pub(crate) mod escape;
pub(crate) mod format;
mod metrics;
pub(crate) mod page;
mod provenance;
pub(crate) mod svg;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod thin;
pub(crate) mod whiskers;
pub(crate) mod words;

use crate::analysis::Analysis;
use crate::error::Error;
use crate::profile;
use crate::run::{self, Run};
use crate::summary::{ProfileRow, Summary};
use chart::{Backdrop, Chart, Latencies};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};
use page::Picture;
use serde::Serialize;
use std::fs;
use std::path::Path;
pub use text::summary_text;

/// Measures whose latency gets a chart in the Markdown report, if they occurred; the page has all.
const LATENCY_CHARTS: [&str; 3] = ["delivery", "join", "say"];

const PAGE: &str = concat!(
    include_str!("../../assets/macros.html.j2"),
    include_str!("../../assets/report.html.j2")
);
const MARKDOWN: &str =
    concat!(include_str!("../../assets/macros.md.j2"), include_str!("../../assets/report.md.j2"));
/// How the ids of the charts of metrics begin.
const METRIC_ID: &str = "metric-";

const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uPlot.min.css");
/// Its terms want it beside every copy.
const UPLOT_LICENSE: &str = include_str!("../../assets/uPlot.LICENSE");
const UPLOT_SCRIPT: &str = include_str!("../../assets/uPlot.iife.min.js");

/// Draws `report.html`, `report.md` and `charts/` of a run directory (again). Nothing else in it
/// is touched.
pub fn draw(dir: &Path) -> Result<Analysis, Error> {
    let run = Run::load(dir)?;
    let analysis = Analysis::of(&run);
    let drawing = Drawing::of(&run, &analysis);
    let charts = dir.join(run::CHARTS);
    clear_charts(&charts)?;
    for (name, svg) in drawing.svgs() {
        run::replace(&charts.join(name), svg.as_bytes())?;
    }
    run::replace(&dir.join(run::REPORT_MD), drawing.markdown()?.as_bytes())?;
    run::replace(&dir.join(run::REPORT_HTML), drawing.page()?.as_bytes())?;
    Ok(analysis)
}

/// Makes the folder, and takes away what an earlier drawing left there.
fn clear_charts(charts: &Path) -> Result<(), Error> {
    fs::create_dir_all(charts).map_err(Error::io(charts))?;
    for entry in fs::read_dir(charts).map_err(Error::io(charts))? {
        let path = entry.map_err(Error::io(charts))?.path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            fs::remove_file(&path).map_err(Error::io(&path))?;
        }
    }
    Ok(())
}

/// Everything that a report shows, as values.
struct Drawing<'a> {
    summary: &'a Summary,
    backdrop: Backdrop,
    latencies: Latencies,
    charts: Vec<Chart>,
    /// What load does to the target.
    pictures: Vec<Picture>,
    provenance: Vec<(String, String)>,
    profiles: Vec<Flame>,
}

/// A profile as the page shows it.
#[derive(Serialize)]
struct Flame {
    phase: String,
    profiler: String,
    seen: String,
    svg: String,
    hottest: table::Table,
}

/// What the page's script gets.
#[derive(Serialize)]
struct Data<'a> {
    backdrop: &'a Backdrop,
    charts: &'a [Chart],
    latencies: &'a Latencies,
}

impl<'a> Drawing<'a> {
    fn of(run: &Run, analysis: &'a Analysis) -> Drawing<'a> {
        Drawing {
            summary: &analysis.summary,
            backdrop: Backdrop::of(&analysis.summary),
            latencies: chart::latencies(run, analysis),
            charts: chart::charts(run, analysis),
            pictures: by_load::pictures(run, analysis),
            provenance: provenance::facts(run),
            profiles: run.profiles.iter().zip(&analysis.summary.profiles).map(flame).collect(),
        }
    }

    /// The charts of the Markdown report: file names and contents.
    fn svgs(&self) -> Vec<(String, String)> {
        let file = |chart: &Chart| (format!("{}.svg", chart.id), svg::draw(chart, &self.backdrop));
        let pictures = self.pictures.iter();
        let pictures = pictures.map(|picture| (format!("{}.svg", picture.id), picture.svg.clone()));
        self.latency_charts().chain(&self.charts).map(file).chain(pictures).collect()
    }

    fn latency_charts(&self) -> impl Iterator<Item = &Chart> {
        LATENCY_CHARTS.iter().filter_map(|&name| self.latencies.latency.get(name))
    }

    fn markdown(&self) -> Result<String, Error> {
        self.render(markdown_environment(), MARKDOWN, String::new())
    }

    fn page(&self) -> Result<String, Error> {
        let data =
            Data { backdrop: &self.backdrop, charts: &self.charts, latencies: &self.latencies };
        let json = serde_json::to_string(&data)
            .map_err(|error| Error::Template { reason: error.to_string() })?;
        self.render(html_environment(), PAGE, escape::script(&json))
    }

    fn render(
        &self,
        environment: Environment,
        template: &str,
        data: String,
    ) -> Result<String, Error> {
        let charts: Vec<(&str, &str)> = self
            .latency_charts()
            .chain(&self.charts)
            .map(|chart| (chart.id.as_str(), chart.title.as_str()))
            .collect();
        let summary = self.summary;
        let values = serde_json::json!({
            "s": summary,
            "verdict": words::verdict_word(summary),
            "verdict_sentence": words::verdict_sentence(summary),
            "achieved_sentence": words::achieved_sentence(summary),
            "length": format::duration(summary.seconds * 1e3),
            "tiles": provenance::tiles(summary),
            "achieved": table::achieved(summary),
            "thresholds": table::thresholds(summary),
            "measures": table::measures(summary),
            "phases": table::phases(summary),
            "spans": table::spans(summary),
            "marks": summary.marks.iter().map(|mark| format!("{} {}", mark.name, format::at(mark.at_s))).collect::<Vec<_>>(),
            "ledger": table::ledger(summary),
            "errors": table::errors(summary),
            "metrics": self.charts.iter().filter(|c| c.id.starts_with(METRIC_ID)).map(|c| &c.id).collect::<Vec<_>>(),
            "pictures": self.pictures,
            "provenance": self.provenance,
            "profiles": self.profiles,
            "charts": charts,
            "assets": assets(),
            "data": data,
        });
        fill(environment, template, values)
    }
}

/// What every page carries, so that it works without a network.
fn assets() -> serde_json::Value {
    serde_json::json!({
        "style": format!("{UPLOT_STYLE}{STYLE}{}", profile::STYLE),
        "script": format!("{SCRIPT}{}", profile::SCRIPT),
        "uplot": UPLOT_SCRIPT,
        "uplot_license": UPLOT_LICENSE,
    })
}

/// For pages: every value is escaped unless the template says otherwise.
fn html_environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("plain", |text: &str| escape::plain(text));
    environment
}

/// For Markdown: foreign words go through the filter `md`.
fn markdown_environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.add_filter("md", |text: &str| escape::markdown(text));
    environment
}

/// Fills in a template of ours.
fn fill(
    mut environment: Environment<'_>,
    template: &str,
    values: serde_json::Value,
) -> Result<String, Error> {
    let broken = |error: minijinja::Error| Error::Template { reason: format!("{error:#}") };
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(broken)?);
    environment.render_str(template, Value::from(Serde(values))).map_err(broken)
}

fn flame((drawn, row): (&profile::Profile, &ProfileRow)) -> Flame {
    Flame {
        phase: row.phase.clone(),
        profiler: row.profiler.clone(),
        seen: format::count(row.seen),
        svg: profile::flame(drawn),
        hottest: table::hottest(row),
    }
}
