//! Comparisons: is the candidate better than the base? Whole runs are the unit; every figure gets
//! a difference with its bounds, a test, and a verdict. docs/statistics.md has the formulas.

mod beside;
mod charts;
pub(crate) mod draw;
mod junit;
mod row;

pub use beside::{Cell, Ratios, SideBySide, beside};
pub use junit::junit;
pub use row::{Row, RowVerdict};

use crate::analysis::starved;
use crate::capacity::Capacity;
use crate::experiment::{Drawn, Figure, Trial, figures, warm_up_s};
use crate::profile::{self, Difference};
use crate::report::chart::Backdrop;
use crate::report::format::short;
use crate::report::page::Section;
use crate::report::table::Table;
use crate::run::Run;
use crate::{Analysis, Error};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Error rate of all rows together: the share of false alarms among the alarms (Benjamini and
/// Hochberg) is at most this.
pub const ALPHA: f64 = 0.05;
/// Fewest runs of each side for a verdict.
pub const RUNS_MIN: usize = 3;
/// Load that differs by more than this share is another load, and its figures are not compared.
const LOAD_TOLERANCE: f64 = 0.01;
/// Measured by simulation: how likely a difference of the size called detectable is to be seen.
const POWER: f64 = 0.8;
/// Seed of resampling: the same runs give the same bounds.
const SEED: u64 = 0x7109;

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Side {
    /// What it is: `yardstick?codec=json`.
    pub name: String,
    /// Version of its target, as it says itself.
    pub version: String,
    /// Runs that were used.
    pub runs: usize,
    /// Runs that were not, each with its reason.
    pub left_out: Vec<String>,
    /// Used runs in which the target waited for a processor rather than ran, each with how long.
    pub starved: Vec<String>,
    /// Targets that ended by themselves, each with its time and last words.
    pub crashes: Vec<String>,
    /// Load of the runs, on average.
    pub load: Load,
}

/// What was asked of the target in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// People who got in.
    pub entered: f64,
    /// Messages said.
    pub sent: f64,
    /// Deliveries owed.
    pub owed: f64,
}

/// What a comparison says as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At least one figure regressed, or only the candidate crashed.
    Regressed,
    /// At least one figure improved and none regressed.
    Improved,
    /// No figure differs, as far as these runs can tell.
    NoDifference,
    /// The runs cannot be compared.
    #[default]
    NotComparable,
}

/// A comparison of two sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Comparison {
    /// The scenario's name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// What is compared with.
    pub base: Side,
    /// What is compared.
    pub candidate: Side,
    /// Whether both sides are the same: what differs is noise.
    pub is_aa: bool,
    /// Seconds at the beginning of each run that figures of deliveries leave out.
    pub warm_up_s: f64,
    /// What it says as a whole.
    pub verdict: Verdict,
    /// Why it cannot be compared, or what else has to be known; one sentence each.
    pub remarks: Vec<String>,
    /// The figures.
    pub rows: Vec<Row>,
    /// The relative difference that is tolerated.
    pub tolerate: f64,
}

impl Comparison {
    /// What the program exits with: 0 no regression, 1 a regression beyond what is tolerated,
    /// 3 could not measure.
    pub fn exit_code(&self) -> u8 {
        match self.verdict {
            Verdict::NotComparable => 3,
            Verdict::Regressed if self.candidate.crashes.len() > self.base.crashes.len() => 1,
            _ => u8::from(self.rows.iter().any(|row| row.is_regression_beyond(self.tolerate))),
        }
    }
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Name of the base.
    pub base: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Whether both are the same.
    pub is_aa: bool,
    /// The relative difference that is tolerated: 0.02 for 2 %.
    pub tolerate: f64,
    /// How many people each side holds, if that was searched for.
    pub capacities: Option<(Capacity, Capacity)>,
}

/// Compares the trials of two sides, reading their run directories, and draws the report.
pub fn compare(
    question: &Question,
    base: &[Trial],
    candidate: &[Trial],
) -> Result<(Comparison, Drawn), Error> {
    let usable = |trials: &[Trial]| -> Vec<PathBuf> {
        let usable = trials.iter().filter(|trial| trial.flaw().is_none());
        usable.map(|trial| trial.dir.clone()).collect()
    };
    let (base_dirs, candidate_dirs) = (usable(base), usable(candidate));
    let base = Used::read(&question.base, base)?;
    let candidate = Used::read(&question.candidate, candidate)?;
    let warm_up_s = common_warm_up_s(&[&base, &candidate]);
    let of = |side: &Used| side.runs.iter().map(|run| figures(run, warm_up_s)).collect();
    let (base_figures, candidate_figures): (Vec<_>, Vec<_>) = (of(&base), of(&candidate));
    let first = base.runs.first().or(candidate.runs.first());
    let head = first.map(|run| run.manifest.clone()).unwrap_or_default();
    let comparison = Comparison {
        name: head.name,
        about: head.about,
        base: base.side,
        candidate: candidate.side,
        is_aa: question.is_aa,
        warm_up_s,
        tolerate: question.tolerate,
        ..Comparison::default()
    };
    let mut comparison = comparison.judged(&base_figures, &candidate_figures);
    if let Some((base, candidate)) = &question.capacities {
        comparison.rows.insert(0, row::capacity(base, candidate));
        comparison.verdict = comparison.whole();
    }
    let backdrop = first.map(|run| Backdrop::of(&Analysis::of(run).summary));
    let charts = charts::charts(&base.runs, &candidate.runs);
    let page = draw::page(&comparison, backdrop, charts, profiles(&base_dirs, &candidate_dirs)?);
    Ok((comparison, page.drawn()?))
}

/// Where the time of processes went on one side and the other, all runs of a side together.
fn profiles(base: &[PathBuf], candidate: &[PathBuf]) -> Result<Section, Error> {
    let base: Vec<&Path> = base.iter().map(PathBuf::as_path).collect();
    let candidate: Vec<&Path> = candidate.iter().map(PathBuf::as_path).collect();
    let differences = profile::compare(&base, &candidate)?;
    let mut table = Table::new(&["phase", "profiler", "what changed"]);
    table.words = true;
    for difference in &differences {
        let cells = [&difference.phase, &difference.name, &difference.sentence()];
        table.row(false, cells.map(String::clone));
    }
    Ok(Section {
        title: "Where the time goes: candidate against base".to_owned(),
        note: "Red: more time than in the base; blue: less; gray: no more than chance.".to_owned(),
        table,
        html: differences.iter().map(Difference::html).collect(),
        ..Section::default()
    })
}

/// A side with the runs that can be used.
struct Used {
    side: Side,
    runs: Vec<Run>,
}

impl Used {
    fn read(name: &str, trials: &[Trial]) -> Result<Used, Error> {
        let mut side = Side { name: name.to_owned(), ..Side::default() };
        let mut runs = Vec::new();
        for trial in trials {
            let run = trial.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            side.version.clone_from(&trial.summary.target_version);
            let at_s = trial.summary.seconds;
            match (trial.crash(), trial.flaw()) {
                (Some(how), _) => side.crashes.push(format!("{run}: after {at_s:.1} s {how}")),
                (None, Some(why)) => side.left_out.push(format!("{run}: {why}")),
                (None, None) => {
                    let starved = starved::target(&trial.summary);
                    let words = starved.map(|starved| starved.words("the target"));
                    side.starved.extend(words.map(|words| format!("{run}: {words}")));
                    runs.push(Run::load(&trial.dir)?);
                }
            }
        }
        side.load = Load {
            entered: mean_of(trials, |trial| trial.summary.people.entered),
            sent: mean_of(trials, |trial| trial.summary.sends.sent),
            owed: mean_of(trials, |trial| {
                trial.summary.ledger.owed + trial.summary.ledger.announcements_owed
            }),
        };
        side.runs = runs.len();
        Ok(Used { side, runs })
    }
}

/// A number's mean over the trials that can be used.
fn mean_of(trials: &[Trial], of: fn(&Trial) -> u64) -> f64 {
    let used = trials.iter().filter(|trial| trial.flaw().is_none());
    let (sum, count) = used.fold((0.0, 0u32), |(sum, n), trial| (sum + of(trial) as f64, n + 1));
    sum / f64::from(count.max(1))
}

/// The same warm-up is cut from all runs, so that all tell of the same seconds: the median of
/// what each would have cut by itself.
fn common_warm_up_s(sides: &[&Used]) -> f64 {
    let mut cuts: Vec<f64> = sides.iter().flat_map(|side| &side.runs).map(warm_up_s).collect();
    cuts.sort_by(f64::total_cmp);
    cuts.get(cuts.len() / 2).copied().unwrap_or(0.0)
}

impl Comparison {
    /// Fills in rows, remarks and the verdict.
    fn judged(mut self, base: &[Vec<Figure>], candidate: &[Vec<Figure>]) -> Comparison {
        self.rows = row::rows(base, candidate);
        self.remarks.extend(unlike(&self.base, &self.candidate));
        if base.len().min(candidate.len()) < RUNS_MIN {
            self.remarks.push(format!(
                "{} and {} usable runs: a verdict takes at least {RUNS_MIN} of each",
                base.len(),
                candidate.len()
            ));
        }
        let is_comparable = self.remarks.is_empty();
        if !is_comparable {
            self.rows.iter_mut().for_each(|row| row.verdict = RowVerdict::NotComparable);
        }
        let blind = row::runs_for_a_verdict(&self.rows, base.len(), candidate.len());
        self.remarks.extend(blind.filter(|_| is_comparable));
        self.verdict = self.whole();
        self
    }

    /// What all rows together say.
    fn whole(&self) -> Verdict {
        let any = |verdict| self.rows.iter().any(|row| row.verdict == verdict);
        match () {
            () if self.candidate.crashes.len() > self.base.crashes.len() => Verdict::Regressed,
            () if any(RowVerdict::Regressed) => Verdict::Regressed,
            () if any(RowVerdict::Improved) => Verdict::Improved,
            () if any(RowVerdict::NoDifference) => Verdict::NoDifference,
            () => Verdict::NotComparable,
        }
    }
}

/// Loads that differ: what was not asked equally cannot be compared.
fn unlike(base: &Side, candidate: &Side) -> Vec<String> {
    if base.runs == 0 || candidate.runs == 0 {
        return Vec::new();
    }
    let (a, b) = (&base.load, &candidate.load);
    let pairs = [
        ("people who got in", a.entered, b.entered),
        ("messages sent", a.sent, b.sent),
        ("deliveries owed", a.owed, b.owed),
    ];
    let unlike = pairs.into_iter().filter(|&(_, a, b)| (a - b).abs() > LOAD_TOLERANCE * a.max(b));
    unlike
        .map(|(what, a, b)| {
            let (a, b) = (short(a), short(b));
            format!("the load differed: {what}, {a} on average against {b}")
        })
        .collect()
}

#[cfg(test)]
mod tests;
