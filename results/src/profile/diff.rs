//! What changed between two profiles: a differential flame graph, and the functions that take more
//! or less than before.

use super::flame;
use super::shown;
use super::stacks::Profile;
use super::tree::{Tree, Weights};
use crate::error::Error;
use crate::report::escape::xml;
use crate::report::format::{count, percent};
use crate::run::Run;
use crate::summary::Summary;
use model::Measure;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// Functions in a table of changes.
const CHANGES_MAX: usize = 15;
/// Smallest change in it, percent of the whole.
const CHANGE_MIN: f64 = 0.05;
/// Standard errors of a difference of two counts of samples (square root of their sum, as they are
/// about Poisson distributed) that a function must have changed by to be in the table: with some
/// hundred functions, fewer would show chance.
const SIGMAS_TABLE: f64 = 3.0;
/// The same to be colored in the flame graph.
pub(super) const SIGMAS_COLOR: f64 = 2.0;
/// Deliveries below which a profile is not divided by them.
const DELIVERIES_MIN: f64 = 1_000.0;

/// One side of a comparison: profiles of the same phase and profiler, which are summed.
#[derive(Clone, Debug, Default)]
pub struct Side<'a> {
    /// The profiles, one a run.
    pub profiles: Vec<&'a Profile>,
    /// Deliveries while they were taken, all runs together; `None` if nobody counted.
    pub deliveries: Option<f64>,
}

/// A function that takes more or less than before.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its name.
    pub function: String,
    /// Seen in itself at the base, percent of the whole base.
    pub base_percent: f64,
    /// Seen in itself at the candidate, percent of the whole *base*, per delivery if
    /// [`Difference::per_delivery`]: above 100 in all if the candidate takes more.
    pub candidate_percent: f64,
}

/// What changed between two profiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The phase.
    pub phase: String,
    /// The profiler.
    pub name: String,
    /// Whether the sides were divided by their deliveries; otherwise by their samples, and both
    /// are 100 % in all.
    pub per_delivery: bool,
    /// Samples of base and candidate.
    pub seen: [u64; 2],
    /// All of the candidate, percent of all of the base.
    pub candidate_percent: f64,
    /// The flame graph; a page needs [`super::STYLE`] for it, and [`super::SCRIPT`] to zoom.
    pub svg: String,
    /// Functions that changed most, the greatest change first; only what is more than chance.
    pub changes: Vec<Change>,
}

/// What changed from `base` to `candidate`. Both sides need samples.
pub fn diff(base: &Side<'_>, candidate: &Side<'_>) -> Option<Difference> {
    let first = base.profiles.first()?;
    let mut tree = Tree::of([&base.profiles, &candidate.profiles]);
    let total = tree.total();
    if total.iter().any(|weight| *weight <= 0.0) {
        return None;
    }
    let seen = total.map(|weight| weight as u64);
    let deliveries = [base.deliveries, candidate.deliveries]
        .map(|deliveries| deliveries.filter(|count| *count >= DELIVERIES_MIN));
    let per_delivery = match deliveries {
        [Some(base), Some(candidate)] => Some(base / candidate),
        _ => None,
    };
    let unit =
        [100.0 / total[0], per_delivery.map_or(100.0 / total[1], |ratio| 100.0 / total[0] * ratio)];
    tree.scale(unit);
    let mut functions = tree.functions();
    functions.retain(|function| {
        (function.own[1] - function.own[0]).abs() >= CHANGE_MIN
            && sigmas(function.own, unit) >= SIGMAS_TABLE
    });
    functions.sort_by(|a, b| {
        let size = |own: [f64; 2]| (own[1] - own[0]).abs();
        size(b.own).total_cmp(&size(a.own)).then(a.name.cmp(b.name))
    });
    let label = format!("What changed in {}, {}", first.phase, first.name);
    Some(Difference {
        phase: first.phase.clone(),
        name: first.name.clone(),
        per_delivery: per_delivery.is_some(),
        seen,
        candidate_percent: tree.total()[1],
        svg: flame::difference(&tree, &label, unit),
        changes: functions
            .iter()
            .take(CHANGES_MAX)
            .map(|function| Change {
                function: shown(function.name),
                base_percent: function.own[0],
                candidate_percent: function.own[1],
            })
            .collect(),
    })
}

/// By how many standard errors two weights differ, of which one sample has so much on either side.
pub(super) fn sigmas(weights: Weights, unit: Weights) -> f64 {
    let variance = weights[0] * unit[0] + weights[1] * unit[1];
    crate::analysis::ratio((weights[1] - weights[0]).abs(), variance.sqrt())
}

/// What changed in every profile that both sides have, from the run directories of each.
pub fn compare(base: &[&Path], candidate: &[&Path]) -> Result<Vec<Difference>, Error> {
    let load =
        |dirs: &[&Path]| dirs.iter().map(|dir| Run::load(dir)).collect::<Result<Vec<_>, _>>();
    Ok(compare_runs(&load(base)?, &load(candidate)?))
}

fn compare_runs(base: &[Run], candidate: &[Run]) -> Vec<Difference> {
    let keys: BTreeSet<(&str, &str)> = base
        .iter()
        .flat_map(|run| &run.profiles)
        .map(|profile| (profile.phase.as_str(), profile.name.as_str()))
        .collect();
    keys.into_iter().filter_map(|key| diff(&side(base, key), &side(candidate, key))).collect()
}

/// The profiles of that phase and name, and the deliveries of the phase in the runs that have one.
fn side<'a>(runs: &'a [Run], (phase, name): (&str, &str)) -> Side<'a> {
    let mut side = Side { profiles: Vec::new(), deliveries: Some(0.0) };
    for run in runs {
        let is_it = |profile: &&Profile| profile.phase == phase && profile.name == name;
        let Some(profile) = run.profiles.iter().find(is_it) else { continue };
        side.profiles.push(profile);
        let summary = run.manifest.result.as_ref();
        let counted = summary.and_then(|summary| deliveries(run, summary, phase));
        side.deliveries = side.deliveries.zip(counted).map(|(sum, more)| sum + more);
    }
    side
}

/// Deliveries while a phase went on; seconds at its edges count in part.
fn deliveries(run: &Run, summary: &Summary, phase: &str) -> Option<f64> {
    let is_it = |name: &str| super::file_name(name, "", 1) == super::file_name(phase, "", 1);
    let row = summary.phases.iter().find(|row| is_it(&row.name))?;
    let within = |second: u32| {
        let (from, to) = (f64::from(second), f64::from(second) + 1.0);
        (to.min(row.end_s) - from.max(row.start_s)).clamp(0.0, 1.0)
    };
    let counts = run.seconds.iter().map(|second| {
        let done = second.measures.get(&Measure::Delivery).map_or(0, |measure| measure.done);
        done as f64 * within(second.second)
    });
    Some(counts.sum())
}

impl Difference {
    /// A section of a page: words, flame graph and table.
    pub fn html(&self) -> String {
        let mut html = format!("<h3>{} · {}</h3>\n", xml(&self.phase), xml(&self.name));
        let _ = writeln!(html, "<p class=\"note\">{}</p>", xml(&self.sentence()));
        html.push_str(&self.svg);
        if self.changes.is_empty() {
            html.push_str("<p class=\"note\">No function changed by more than chance.</p>\n");
            return html;
        }
        html.push_str(
            "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">function\
             </th><th scope=\"col\">base</th><th scope=\"col\">candidate</th>\
             <th scope=\"col\">change</th></tr></thead><tbody>\n",
        );
        for change in &self.changes {
            let _ = writeln!(
                html,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                xml(&change.function),
                percent(change.base_percent),
                percent(change.candidate_percent),
                change.words()
            );
        }
        html.push_str("</tbody></table></div>\n");
        html
    }

    /// What the numbers mean, in words.
    pub fn sentence(&self) -> String {
        let [base, candidate] = self.seen.map(count);
        let unit = match self.per_delivery {
            true => format!(
                "Per delivery, in percent of the base; the candidate takes {} in all",
                percent(self.candidate_percent)
            ),
            false => "Shares of each side's own samples, as deliveries were not counted".into(),
        };
        format!(
            "{unit}. Red takes more than before, blue less, gray does not differ by more than \
             chance; as wide as the mean of both. {base} and {candidate} samples."
        )
    }
}

impl Change {
    /// The change in words, as in `+1.2 %`.
    pub fn words(&self) -> String {
        let change = self.candidate_percent - self.base_percent;
        format!("{}{}", if change > 0.0 { "+" } else { "" }, percent(change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let stacks = stacks.iter().map(|(stack, count)| ((*stack).to_owned(), *count)).collect();
        Profile { phase: "talk".into(), name: "perf".into(), file: String::new(), stacks }
    }

    fn side(profile: &Profile, deliveries: Option<f64>) -> Side<'_> {
        Side { profiles: vec![profile], deliveries }
    }

    #[test]
    fn what_one_delivery_costs_is_compared() {
        let base = profile(&[("main;send", 60), ("main;parse", 40)]);
        // Twice the deliveries: `send` costs the same, `parse` twice as much, `log` is new.
        let candidate = profile(&[("main;send", 120), ("main;parse", 160), ("main;log", 20)]);
        let one = diff(&side(&base, Some(1e4)), &side(&candidate, Some(2e4))).unwrap();
        assert!(one.per_delivery);
        assert_eq!(one.candidate_percent, 150.0);
        let seen: Vec<_> = one.changes.iter().map(|c| (c.function.as_str(), c.words())).collect();
        assert_eq!(seen, [("parse", "+40.0 %".to_owned()), ("log", "+10.0 %".to_owned())]);
        assert!(one.svg.contains("class=\"more4\"") && one.svg.contains("class=\"same\""));
    }

    #[test]
    fn without_deliveries_shares_are_compared() {
        let base = profile(&[("main;send", 50), ("main;parse", 50)]);
        let candidate = profile(&[("main;send", 750), ("main;parse", 250)]);
        for deliveries in [None, Some(10.0)] {
            let one = diff(&side(&base, deliveries), &side(&candidate, Some(1e6))).unwrap();
            assert!(!one.per_delivery);
            let seen: Vec<_> = one.changes.iter().map(Change::words).collect();
            assert_eq!(seen, ["-25.0 %", "+25.0 %"]);
            assert!(one.svg.contains("more4") && one.svg.contains("less4"));
        }
        // The same shares in fewer samples may be chance.
        let [few, other] = [5, 8].map(|n| profile(&[("main;send", n), ("main;parse", 13 - n)]));
        let chance = diff(&side(&few, None), &side(&other, None)).unwrap();
        assert_eq!(chance.changes, []);
        assert!(!chance.svg.contains("more") && chance.html().contains("No function changed"));
        assert!(diff(&side(&base, None), &side(&profile(&[]), None)).is_none());
        assert!(diff(&Side::default(), &side(&base, None)).is_none());
    }
}
