//! Known truth: a target that serves nobody for two seconds, under one request due every 10 ms.
//!
//! Of the 200 requests due in the stall the first 100 wait longer than a second. Corrected latency
//! must show them all, whether the person waits for answers or not; service time shows them for a
//! person who goes on sending, and exactly one for a person who waits, since the others were not
//! even sent: that is coordinated omission.

use crate::rig::{Answer, Folder, at, yardstick};
use model::Measure;
use std::ops::RangeInclusive;

const SECOND_NS: u64 = 1_000_000_000;
/// About 100: what waits for an answer catches up one by one after the stall, and a slow machine
/// takes its time for that.
const HUNDRED: RangeInclusive<u64> = 95..=140;

fn run(folder: &Folder, journey: &str) -> Answer {
    let server = yardstick("stall=2s:2s");
    let scenario = format!(
        "{}
rooms: [lobby]
crowds: {{person: {{size: 1, journey: [login, join, {journey}, leave]}}}}
timeline: [{{run: person at once}}]
",
        at(&server, "proto")
    );
    let answer = folder.run(&scenario, &[]);
    assert_eq!(server.stop().unwrap().faults.len(), 1, "it did stall");
    answer
}

/// How many samples of a measure are longer than a second, by the run's own interval log: in
/// corrected latency, and in service time; and how many samples there are.
fn above_a_second(answer: &Answer, measure: Measure) -> (u64, u64, u64) {
    let mut total = model::Interval::default();
    answer.load().seconds.iter().for_each(|second| second.add_to(&mut total));
    let stats = &total.measures[&measure];
    let above = |histo: &model::Histo| {
        let all = histo.as_hdr().into_iter().flat_map(|hdr| hdr.iter_recorded());
        let above = all.filter(|bucket| bucket.value_iterated_to() > SECOND_NS);
        above.map(|bucket| bucket.count_at_value()).sum::<u64>()
    };
    (above(&stats.latency), above(&stats.service), stats.done)
}

#[test]
fn who_keeps_sending_sees_the_stall_in_both_clocks() {
    let folder = Folder::new("stall");
    let answer = run(&folder, "{talk: {every: 10ms, for: 6s}}");
    for measure in [Measure::Say, Measure::Delivery] {
        let (latency, service, done) = above_a_second(&answer, measure);
        assert_eq!(done, 599, "{measure:?}: one every 10 ms within 6 s");
        assert!(HUNDRED.contains(&latency), "{measure:?}: latency shows {latency} of about 100");
        assert!(HUNDRED.contains(&service), "{measure:?}: service shows {service} of about 100");
    }
    let summary = answer.summary();
    assert_eq!((summary.ledger.owed, summary.ledger.lost), (599, 0));
}

#[test]
fn who_waits_for_answers_sees_it_only_in_corrected_latency() {
    let folder = Folder::new("stall");
    let answer = run(&folder, "{repeat: 600, every: 10ms, do: members}");
    let (latency, service, done) = above_a_second(&answer, Measure::Members);
    assert_eq!(done, 600);
    assert!(HUNDRED.contains(&latency), "latency shows {latency} of about 100");
    assert_eq!(service, 1, "only one request was under way in the stall");
}
