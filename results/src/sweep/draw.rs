//! The report of a sweep.

use super::unit::plain_size;
use super::words::{findings, pair, short_verdict};
use super::{Growth, Sweep, plot};
use crate::experiment::Drawn;
use crate::report::escape::plain;
use crate::report::page::{Mood, Page, Picture, Section};
use crate::report::table::Table;
use crate::stats::Bounds;
use crate::{Error, laws};
use serde_json::{Value, json};

/// Costs that are told in the sentence, and in full on the terminal.
const KEY_COSTS: [&str; 2] = ["deliveries", "target CPU"];

/// What the report needs to know besides.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The scenario's name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// The target and its version.
    pub target: String,
    /// Trials that could not be used, each with its reason.
    pub left_out: Vec<String>,
}

impl Sweep {
    /// Draws the report.
    pub fn draw(&self, about: &About) -> Result<Drawn, Error> {
        let mut sections = vec![self.overview()];
        let told = self.costs.iter().filter(|growth| growth.has_answer());
        sections.extend(told.map(|growth| self.detail(growth)));
        let is_answered = self.costs.iter().any(Growth::has_answer);
        Page {
            title: format!("Sweep: {}", about.name),
            about: about.about.clone(),
            meta: format!(
                "{} · {} runs over {}",
                about.target.trim(),
                self.trials,
                self.parameters.join(" × ")
            ),
            verdict: if is_answered { "measured" } else { "could not measure" }.to_owned(),
            mood: if is_answered { Mood::Kept } else { Mood::Broken },
            sentence: self.sentence(),
            remarks: about.left_out.clone(),
            sections,
            ..Page::default()
        }
        .drawn()
    }

    /// The answer for machines.
    pub fn told(&self) -> Value {
        let bounds = |b: Bounds| json!(b);
        let cost = |growth: &Growth| {
            let row = |row: &super::Row| {
                json!({"values": row.values, "runs": row.runs, "mean": row.cost,
                       "bounds": bounds(row.bounds), "per_unit": row.per_unit})
            };
            let law = growth.laws.as_ref().and_then(laws::Laws::best).map(|fit| {
                let coefficients = fit.coefficients.iter();
                let coefficients: Vec<Value> = coefficients
                    .map(|(name, value, b)| json!({"name": name, "value": value, "bounds": bounds(*b)}))
                    .collect();
                json!({"name": fit.law.name(), "formula": fit.law.formula(),
                       "coefficients": coefficients, "aicc": fit.aicc})
            });
            let believed = growth.laws.iter().flat_map(laws::Laws::believed);
            let believed: Vec<&str> = believed.map(laws::Law::name).collect();
            let exponents = growth.exponent_list().into_iter();
            let exponents: Vec<Value> =
                exponents.map(|(value, b)| json!({"value": value, "bounds": bounds(b)})).collect();
            let ahead = growth.ahead.as_ref().map(|ahead| {
                json!({"at": ahead.n, "cost": ahead.cost, "bounds": bounds(ahead.bounds),
                       "outside_data": ahead.outside_data})
            });
            json!({"cost": growth.name, "rows": growth.rows.iter().map(row).collect::<Vec<_>>(),
                   "law": law, "believed": believed, "exponents": exponents, "ahead": ahead})
        };
        json!({"parameters": self.parameters, "trials": self.trials,
               "costs": self.costs.iter().map(cost).collect::<Vec<_>>()})
    }

    /// Whether any law or exponent was found.
    pub fn is_answered(&self) -> bool {
        self.costs.iter().any(Growth::has_answer)
    }

    fn sentence(&self) -> String {
        let key = self.costs.iter().filter(|growth| KEY_COSTS.contains(&growth.name.as_str()));
        let told: Vec<String> = key
            .map(|growth| format!("{} grows as {}", growth.name, short_verdict(growth)))
            .collect();
        match told.is_empty() {
            true => "see the costs below.".to_owned(),
            false => told.join("; ") + ".",
        }
    }

    fn overview(&self) -> Section {
        let mut table = Table::new(&["cost", "grows as", "exponent", "95 %", "at 10 × the size"]);
        let mut narrow = Table::new(&["cost", "grows as", "exponent", "at 10 ×"]);
        for growth in self.costs.iter().filter(|growth| growth.has_answer()) {
            let exponents = growth.exponent_list();
            let all = |of: &dyn Fn(&(f64, Bounds)) -> String| {
                exponents.iter().map(of).collect::<Vec<_>>().join(" · ")
            };
            let ahead = growth.ahead.as_ref().map(|ahead| growth.unit.show(ahead.cost));
            let ahead = ahead.unwrap_or_else(|| "–".to_owned());
            let exponent = all(&|(value, _)| format!("{value:.2}"));
            let bounds = all(&|(_, bounds)| pair(*bounds, |value| format!("{value:.2}")));
            let (name, law) = (growth.name.clone(), short_verdict(growth));
            narrow.row(false, [name.clone(), law.clone(), exponent.clone(), ahead.clone()]);
            table.row(false, [name, law, exponent, bounds, ahead]);
        }
        Section {
            title: "How each cost grows".to_owned(),
            note: "The law that these runs support, and the exponent of a plain power law. What \
                   lies outside of the data is true only if the law still holds there."
                .to_owned(),
            table,
            narrow,
            ..Section::default()
        }
    }

    fn detail(&self, growth: &Growth) -> Section {
        let names = plain(&self.parameters.join(" × "));
        let mut table = Table::new(&[&names, "runs", "mean", "95 %", "per unit"]);
        for row in &growth.rows {
            let values: Vec<String> = row.values.iter().map(|value| plain_size(*value)).collect();
            let cells = [
                values.join(" × "),
                row.runs.to_string(),
                growth.unit.show(row.cost),
                pair(row.bounds, |value| growth.unit.show(value)),
                growth.unit.show(row.per_unit),
            ];
            table.row(false, cells);
        }
        let picture = growth.laws.as_ref().map(|laws| Picture {
            id: growth.chart_name(),
            title: format!("{} by {names}", growth.name),
            svg: plot::draw(growth, laws, &self.parameters[0]),
        });
        Section {
            title: growth.name.clone(),
            note: findings(growth, &self.parameters).join(". ") + ".",
            table,
            pictures: picture.into_iter().collect(),
            page_only: !KEY_COSTS.contains(&growth.name.as_str()),
            ..Section::default()
        }
    }
}

impl Growth {
    fn exponent_list(&self) -> Vec<(f64, Bounds)> {
        match (&self.laws, &self.exponents) {
            (Some(laws), _) => vec![laws.exponent],
            (None, Some(exponents)) => exponents.clone(),
            (None, None) => Vec::new(),
        }
    }

    fn has_answer(&self) -> bool {
        let is_law = |laws: &laws::Laws| !laws.believed().is_empty();
        self.exponents.is_some() || self.laws.as_ref().is_some_and(is_law)
    }
}
