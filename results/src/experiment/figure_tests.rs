//! Figures of a made-up run whose truth is known.

use super::*;
use crate::run::{Manifest, MeasureSecond};
use model::{Histo, ProbeSample, ProcessSample, Tick};

/// A run of 40 s: deliveries take 50 ms in the first ten seconds, then 10 ms; the target uses
/// half a core.
fn run() -> Run {
    let second = |i: u32| {
        let mut latency = Histo::default();
        let ms = if i < 10 { 50 } else { 10 };
        latency.record_n(ms * 1_000_000 + u64::from(i) * 100, 100);
        let mut second = Second { second: i, ..Second::default() };
        second.counters.deliveries = 100;
        let stats =
            MeasureSecond { done: 100, latency: (&latency).into(), ..MeasureSecond::default() };
        second.measures.insert(Measure::Delivery, stats);
        second
    };
    let probe = |i: u64| ProbeSample {
        at: Tick(i * 200_000_000),
        target: vec![ProcessSample {
            pid: 1,
            cpu_ns: i * 100_000_000,
            rss_bytes: 5 << 20,
            ..ProcessSample::default()
        }],
        ..ProbeSample::default()
    };
    Run {
        manifest: Manifest::default(),
        plan: None,
        scenario: String::new(),
        seconds: (0..40).map(second).collect(),
        probes: (0..=200).map(probe).collect(),
        events: Vec::new(),
        metrics: Vec::new(),
        profiles: Vec::new(),
        notes: Vec::new(),
    }
}

fn named(figures: &[Figure], name: &str) -> f64 {
    figures.iter().find(|figure| figure.name == name).map_or(f64::NAN, |figure| figure.value)
}

#[test]
fn the_warm_up_is_cut_by_rule() {
    let cut = warm_up_s(&run());
    assert!((10.0..=15.0).contains(&cut), "{cut}");
    let figures = figures(&run(), cut);
    assert!((named(&figures, "delivery p99") - 10.0).abs() < 0.1);
    assert!((named(&super::figures(&run(), 0.0), "delivery p99") - 50.0).abs() < 0.5);
}

#[test]
fn cpu_per_delivery_is_of_the_same_seconds() {
    for from_s in [0.0, 10.0, 20.0] {
        let each = named(&figures(&run(), from_s), "target CPU per delivery");
        assert!((each - 0.005).abs() < 1e-4, "{from_s}: {each}");
    }
}
