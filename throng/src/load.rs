//! From a scenario file to a plan, with everything that had to be looked up on the way.

use crate::cli::ScenarioArgs;
use crate::failure::Failure;
use crate::site::{self, Site};
use model::scenario::{PlanOptions, Scenario, TEXT_BYTES_MAX};
use model::{Facts, Options, Plan, Protocol};
use results::experiment::Arm;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many times as long populations are held in a run that lasts.
const LASTS: f64 = 3.0;

/// A scenario that is ready to be run.
pub(crate) struct Loaded {
    /// The file's text.
    pub(crate) text: String,
    pub(crate) plan: Plan,
    pub(crate) site: Site,
    pub(crate) protocol: &'static dyn Protocol,
    /// The scenario's folder.
    pub(crate) folder: PathBuf,
    /// Whether `people` is one of the scenario's own parameters.
    pub(crate) has_people: bool,
}

/// Reads, changes and resolves a scenario.
pub(crate) fn load(args: &ScenarioArgs) -> Result<Loaded, Failure> {
    load_arm(args, &Arm::default())
}

/// Reads a scenario and resolves one variant of it.
pub(crate) fn load_arm(args: &ScenarioArgs, arm: &Arm) -> Result<Loaded, Failure> {
    let Some(people) = arm.people else { return load_scaled(args, arm, args.scale) };
    let whole = load_scaled(args, arm, args.scale)?.plan.people().max(1);
    load_scaled(args, arm, args.scale * f64::from(people) / f64::from(whole))
}

fn load_scaled(args: &ScenarioArgs, arm: &Arm, scale: f64) -> Result<Loaded, Failure> {
    let path = &args.scenario;
    let text = read(path)?;
    let mut scenario = Scenario::parse(&path.display().to_string(), &text)
        .map_err(|mistake| Failure::mistakes(&[mistake]))?;
    let described = bring_description(&mut scenario, path)?;
    for change in &args.set {
        let (key, value) = change.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--set {change}: it needs the form PATH=VALUE"))
        })?;
        scenario.set(key, value).map_err(|mistake| Failure::mistakes(&[mistake]))?;
    }
    for (key, value) in &arm.set {
        scenario.set(key, value).map_err(|mistake| Failure::mistakes(&[mistake]))?;
    }
    // What was set may be another file.
    let described = bring_description(&mut scenario, path)?.or(described);
    if let Some(name) = scenario.proto_file() {
        // Relative to the file that names it.
        let text = read(&described.as_deref().unwrap_or(path).with_file_name(name))?;
        scenario.include_proto(&text);
    }
    let target = scenario.target().map_err(|mistakes| Failure::mistakes(&mistakes))?;
    let folders = site::folders(args.folder.targets.as_deref(), Some(path));
    let (site, protocol) = site::resolve(&target, scenario.protocol().as_deref(), &folders)?;
    let options = PlanOptions { name: name(path), seed: args.seed, scale };
    let facts = |name: &str| -> Option<&'static Facts> { Some(protocols::protocol(name)?.facts()) };
    let mut plan = scenario
        .plan(&options, &facts, protocol.facts().name)
        .map_err(|mistakes| Failure::mistakes(&mistakes))?;
    foresee(&scenario, &plan, &site, protocol)?;
    plan.without(&arm.without).map_err(|feature| {
        let used: BTreeSet<&str> =
            plan.crowds.iter().flat_map(|crowd| &crowd.features).map(String::as_str).collect();
        let used: Vec<&str> = used.into_iter().collect();
        Failure::usage(format!(
            "nobody in the scenario uses the feature `{feature}`; used are: {}",
            used.join(", ")
        ))
    })?;
    if arm.lasts {
        plan.lengthen(LASTS);
    }
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let has_people = scenario.has_parameter("people");
    Ok(Loaded { text, plan, site, protocol, folder, has_people })
}

/// Looks for what would only be found out once the target is up: options that do not exist, words
/// that the application has no event for, a description that does not fit its messages.
fn foresee(
    scenario: &Scenario,
    plan: &Plan,
    site: &Site,
    protocol: &dyn Protocol,
) -> Result<(), Failure> {
    let from_target = match site {
        Site::Own { spec, knobs } => spec.foreseen(knobs),
        Site::Elsewhere { .. } => Options::new(),
    };
    let given = &plan.target.options;
    let options = site::with_script(given, site, protocol, &from_target, plan.script.as_ref())?;
    if let Some(misfit) = protocol.misfit(&options) {
        return Err(Failure::mistakes(&[scenario.misfit(&misfit)]));
    }
    protocol.check(&options).map_err(Failure::usage)?;
    let mistakes = scenario.unsaid(plan, &protocol.verbs(&options));
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(Failure::mistakes(&mistakes)),
    }
}

/// Brings the description of a protocol from its file, if the scenario names one; gives back where
/// that is.
fn bring_description(scenario: &mut Scenario, path: &Path) -> Result<Option<PathBuf>, Failure> {
    let Some(name) = scenario.script_file() else { return Ok(None) };
    let beside = path.with_file_name(name);
    let text = read(&beside)?;
    scenario
        .include_script(&beside.display().to_string(), &text)
        .map_err(|mistake| Failure::mistakes(&[mistake]))?;
    Ok(Some(beside))
}

/// The text of a scenario or a suite.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let at = path.display();
    let unreadable = |error| Failure::usage(format!("cannot read {at}: {error}"));
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > TEXT_BYTES_MAX as u64 {
        return Err(Failure::usage(format!("{at} is larger than {} KiB", TEXT_BYTES_MAX >> 10)));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy().into_owned())
}
