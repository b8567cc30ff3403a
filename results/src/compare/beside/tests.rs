//! Known truths: servers that cost so many times as much, that were loaded otherwise, that crashed.

use super::*;
use crate::compare::Load;
use crate::experiment::Better;
use crate::run::Status;
use model::Rng;

/// Means of the base, and how much runs spread.
const FIGURES: [(&str, Unit, f64, f64); 6] = [
    ("delivery p50", Unit::Ms, 0.3, 0.03),
    ("delivery p99", Unit::Ms, 2.0, 0.1),
    ("target CPU per delivery", Unit::CpuSeconds, 2e-6, 0.02),
    ("join p50", Unit::Ms, 0.5, 0.05),
    ("target memory per person", Unit::Bytes, 4e3, 0.02),
    ("lost", Unit::Count, 0.0, 0.0),
];

fn runs(rng: &mut Rng, count: usize, times: f64) -> Vec<Vec<Figure>> {
    let run = |rng: &mut Rng| {
        let figure = |&(name, unit, mean, spread): &(&str, Unit, f64, f64)| {
            let value = mean * times * (1.0 + spread * rng.normal());
            Figure { name: name.into(), unit, better: Better::Less, value }
        };
        FIGURES.iter().map(figure).collect()
    };
    (0..count).map(|_| run(rng)).collect()
}

fn side(name: &str, runs: usize) -> Side {
    let load = Load { entered: 100.0, sent: 1_000.0, owed: 100_000.0 };
    Side { name: name.into(), version: "1.0".into(), runs, load, ..Side::default() }
}

/// Three servers: 1, 10 and 30 times the cost.
fn three(seed: u64, change: impl Fn(&mut Vec<Side>)) -> SideBySide {
    let mut rng = Rng::new(seed, 0);
    let figures: Vec<_> = [1.0, 10.0, 30.0].map(|times| runs(&mut rng, 5, times)).into();
    let mut sides = vec![side("yardstick", 5), side("ejabberd", 5), side("prosody", 5)];
    change(&mut sides);
    let (name, about) = ("one-crowd".into(), "The same <crowd> on three servers".into());
    SideBySide { name, about, sides, ..SideBySide::default() }.filled(&figures)
}

#[test]
fn ratios_are_found_and_their_bounds_hold_the_truth() {
    let mut held = 0;
    for seed in 0..100 {
        let told = three(seed, |_| {});
        assert!(told.is_measured() && told.remarks.is_empty(), "seed {seed}: {:?}", told.remarks);
        let cpu = told.rows.iter().find(|row| row.name == "target CPU per delivery").unwrap();
        for (cell, truth) in cpu.cells.iter().skip(1).zip([10.0, 30.0]) {
            let ratio = cell.ratio.unwrap();
            assert!((ratio / truth - 1.0).abs() < 0.1, "seed {seed}: {ratio}");
            held += u32::from(cell.ratio_bounds.unwrap().contains(truth));
        }
        assert_eq!((cpu.cells[0].ratio, told.rows[5].cells[1].ratio), (None, None), "seed {seed}");
    }
    assert!((180..=200).contains(&held), "{held} of 200");
}

#[test]
fn another_load_has_no_ratio_and_says_so() {
    let told = three(1, |sides| sides[2].load.owed = 90_000.0);
    let [_, same, other] = &told.rows[0].cells[..] else { panic!("three sides") };
    assert!(same.ratio.is_some() && other.ratio.is_none() && other.mean.is_some());
    assert!(told.remarks[0].starts_with("prosody: the load differed"), "{:?}", told.remarks);
    let told = three(1, |sides| sides[1].runs = 2);
    assert_eq!(told.exit_code(), 3);
    assert!(told.remarks[0].contains("ejabberd: 2 usable runs"), "{:?}", told.remarks);
}

#[test]
fn announcements_count_only_where_every_side_has_them() {
    let trial = |owed: u64, is_usable: bool| {
        let mut trial = Trial::default();
        if is_usable {
            trial.summary.status = Status::Finished;
        }
        trial.summary.ledger.announcements_owed = owed;
        trial
    };
    let side = |owed: &[(u64, bool)]| {
        let trials = owed.iter().map(|&(owed, is_usable)| trial(owed, is_usable));
        (String::new(), trials.collect::<Vec<Trial>>())
    };
    for (base, other, is_mixed) in [
        (&[(5, true), (5, true)][..], &[(4, true)][..], false),
        (&[(0, true)], &[(0, true), (0, true)], false),
        (&[(5, true)], &[(0, true)], true),
        (&[(5, true)], &[(0, false)], false),
        (&[], &[(7, true)], false),
    ] {
        assert_eq!(
            is_announced_on_some(&[side(base), side(other)]),
            is_mixed,
            "{base:?} {other:?}"
        );
    }
}

#[test]
fn the_report_is_as_it_was() {
    let told = three(1, |sides| sides[2].crashes.push("run 3: after 2.0 s it ended".into()));
    let drawn = draw::page(&told).drawn().unwrap();
    assert_eq!(drawn.files.len(), 5 + 2);
    let html = &drawn.files.iter().find(|(name, _)| name.ends_with(".html")).unwrap().1;
    assert!(html.contains("&lt;crowd&gt;") && html.contains("join p50, with 95 % bounds</title>"));
    for (name, got) in [("beside.txt", drawn.text(None)), ("beside.md", drawn.markdown)] {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &got).unwrap();
        }
        let want = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(want, got, "{name}: if it is meant to: BLESS=1 cargo test -p results beside");
    }
}
