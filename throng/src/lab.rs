//! Carries out experiments: trial after trial into one folder, and on from where an interrupted
//! one was.

use crate::cli::{OutputArgs, ScenarioArgs};
use crate::failure::Failure;
use crate::governed::Governed;
use crate::load::{load, load_arm};
use crate::trial::{self, Setting};
use engine::clock;
use results::experiment::{Arm, Design, Drawn, Experiment, Told, Trial};
use results::run::iso_utc;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// An experiment under way.
pub(crate) struct Lab<'a> {
    scenario: &'a ScenarioArgs,
    setting: Rc<Setting<'a>>,
    experiment: Experiment,
}

impl<'a> Lab<'a> {
    /// Opens the folder of an experiment of some kind. The question is everything that decides
    /// which trials are made.
    pub(crate) fn open(
        kind: &str,
        question: &impl Serialize,
        scenario: &'a ScenarioArgs,
        args: &'a OutputArgs,
    ) -> Result<Lab<'a>, Failure> {
        let setting = Rc::new(Setting::new(&args.engine)?);
        Lab::at(args.out.clone(), kind, question, scenario, setting)
    }

    /// An experiment that is a part of this one, in a folder of its own.
    pub(crate) fn within(
        &self,
        dir: PathBuf,
        kind: &str,
        question: &impl Serialize,
    ) -> Result<Lab<'a>, Failure> {
        Lab::at(Some(dir), kind, question, self.scenario, self.setting.clone())
    }

    fn at(
        dir: Option<PathBuf>,
        kind: &str,
        question: &impl Serialize,
        scenario: &'a ScenarioArgs,
        setting: Rc<Setting<'a>>,
    ) -> Result<Lab<'a>, Failure> {
        let loaded = load(scenario)?;
        let named = || trial::default_dir(&format!("{kind}-{}", loaded.plan.name));
        let dir = dir.unwrap_or_else(named);
        let question = (question, &scenario.set, scenario.scale, scenario.seed);
        let question =
            serde_json::to_value(question).map_err(|error| Failure::usage(error.to_string()))?;
        let told = Told {
            kind: kind.to_owned(),
            name: loaded.plan.name.clone(),
            question,
            command: std::env::args().collect(),
            throng: env!("CARGO_PKG_VERSION").to_owned(),
            started: iso_utc(clock::unix_seconds() * 1_000),
            ..Told::default()
        };
        let experiment = Experiment::open(&dir, told, &loaded.text)
            .map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Lab { scenario, setting, experiment })
    }

    /// The folder.
    pub(crate) fn dir(&self) -> &Path {
        self.experiment.dir()
    }

    /// Makes trials until the design wants no more.
    pub(crate) fn pursue(&mut self, design: &dyn Design) -> Result<Vec<Trial>, Failure> {
        let mut done = self.experiment.trials().map_err(unwritten)?;
        while let Some(arm) = design.next(&done) {
            let (number, all) = (done.len() + 1, design.trials_planned().max(done.len() + 1));
            self.say(&format!("trial {number} of {all}: {}", arm.label));
            done.push(self.make(arm, None)?);
        }
        Ok(done)
    }

    /// Makes one trial whose population is governed, always anew: what a governor saw is not kept.
    pub(crate) fn govern(&mut self, arm: &Arm, governed: &mut Governed) -> Result<Trial, Failure> {
        self.make(arm.clone(), Some(governed))
    }

    fn make(&mut self, arm: Arm, governed: Option<&mut Governed>) -> Result<Trial, Failure> {
        let loaded = load_arm(self.scenario, &arm)?;
        let dir = self.experiment.begin(&arm).map_err(unwritten)?;
        let reason = trial::carry_out(&loaded, &dir, &self.setting, governed)?;
        if self.setting.is_interrupted() {
            let dir = self.dir().display();
            return Err(Failure::unmeasured(format!(
                "interrupted; the same command with --out {dir} goes on"
            )));
        }
        let analysis = results::draw(&dir).map_err(unwritten)?;
        Ok(Trial { arm, dir, summary: analysis.summary, reason })
    }

    /// Writes the answer and the report into the folder.
    pub(crate) fn conclude(
        &mut self,
        answer: &impl Serialize,
        drawn: &Drawn,
    ) -> Result<(), Failure> {
        self.experiment.conclude(answer, drawn).map_err(unwritten)
    }

    fn say(&self, words: &str) {
        if !self.setting.engine.quiet {
            eprintln!("{words}");
        }
    }
}

/// Writes a file that the user asked for.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::unmeasured(format!("cannot write {}: {error}", path.display())))
}

/// Appends Markdown to the summary of a GitHub job, if this is one.
pub(crate) fn tell_forge(markdown: &str) -> Result<(), Failure> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").map(PathBuf::from) else {
        return Ok(());
    };
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    write(&path, &(old + markdown + "\n"))
}

fn unwritten(error: results::Error) -> Failure {
    Failure::unmeasured(error.to_string())
}
