//! Profiles of real processes by stand-ins of the profilers, and what goes wrong.

use super::*;
use crate::run::Progress;
use crate::sim::toy::Toy;
use model::{Interval, ProbeSample, Record, What};
use std::process::{Child, Command, Stdio};

/// Keeps what it is told.
#[derive(Default)]
struct Kept {
    profiles: Vec<Profile>,
    remarks: Vec<String>,
}

impl Sink for Kept {
    fn interval(&mut self, _: &Interval) {}
    fn probe(&mut self, _: &ProbeSample) {}
    fn metrics(&mut self, _: &[model::MetricSample]) {}
    fn record(&mut self, record: &Record) {
        if let What::Generator { detail } = &record.what {
            self.remarks.push(detail.clone());
        }
    }
    fn profile(&mut self, profile: &Profile) {
        self.profiles.push(profile.clone());
    }
    fn progress(&mut self, _: &Progress<'_>) {}
}

/// A process that does nothing but end with its standard input.
fn idler() -> Child {
    Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

fn plan(profile: &str) -> Plan {
    let text = format!(
        "target: toy\nrooms: [a]\ncrowds: {{p: {{size: 1, journey: [login]}}}}\n\
         timeline: [{{run: p at once}}, {{rest: 1s, profile: {profile}}}]\n"
    );
    let scenario = model::scenario::Scenario::parse("s.yaml", &text).unwrap();
    scenario.plan(&Default::default(), &|_| Some(model::Protocol::facts(&Toy)), "toy").unwrap()
}

/// The remarks of a profile, from a phase long before to one behind the last.
fn remarks(profile: &str, pids: &[u32]) -> Kept {
    let watched = Watched::default();
    watched.target.lock().unwrap().extend(pids);
    let clock = Clock::start();
    let mut profiles = Profiles::new(&plan(profile), clock, watched, Vec::new());
    let mut kept = Kept::default();
    for phase in 0..3 {
        kept.remarks.extend(profiles.turn(clock.now(), phase));
    }
    profiles.finish(&mut kept);
    kept
}

#[test]
fn what_cannot_be_looked_at_is_a_remark() {
    let mut idler = idler();
    let pids = [idler.id()];
    for (profile, pids, words) in [
        ("py-spy", &pids[..], "no process of Python"),
        ("node", &pids[..], "no process of Node"),
        ("perf", &[], "no process to look at"),
        ("{perf: {after: 1h}}", &pids[..], "over before it could begin"),
    ] {
        let kept = remarks(profile, pids);
        assert_eq!(kept.remarks.len(), 1, "{profile}: {:?}", kept.remarks);
        assert!(kept.remarks[0].contains(words), "{profile}: {:?}", kept.remarks);
        assert!(kept.profiles.is_empty());
    }
    drop(idler.stdin.take());
    idler.wait().unwrap();
}

#[test]
fn what_was_too_short_is_told_as_such() {
    if let Err(why) = tool::check(&Profiler::Perf) {
        eprintln!("skipped: {why}");
        return;
    }
    let mut idler = idler();
    let kept = remarks("perf", &[idler.id()]);
    assert!(kept.remarks[0].contains("too short"), "{:?}", kept.remarks);
    drop(idler.stdin.take());
    idler.wait().unwrap();
}

#[test]
fn every_profile_of_a_phase_has_a_name_of_its_own() {
    let text = "[perf, {perf: {hz: 5}}, {perf: {of: generator}}, {perf: {of: 7}}, py-spy, \
                {pprof: \"http://127.0.0.1/debug/pprof/heap?gc=1\"}]";
    let clock = Clock::start();
    let profiles = Profiles::new(&plan(text), clock, Watched::default(), Vec::new());
    let names: Vec<&str> = profiles.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["perf", "perf-2", "perf-generator", "perf-7", "py-spy", "pprof-heap"]);
}
