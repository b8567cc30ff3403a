//! Known truths: sides that are equal, slowed down by so much, loaded unequally, crashed.

use super::*;
use crate::experiment::{Better, Unit};
use model::Rng;

/// The figures of a run, with their means and how much runs of them spread (standard deviation
/// over mean), as seen on a busy machine.
const FIGURES: [(&str, Unit, f64, f64); 14] = [
    ("delivery p50", Unit::Ms, 0.3, 0.03),
    ("delivery p90", Unit::Ms, 0.6, 0.04),
    ("delivery p99", Unit::Ms, 2.0, 0.10),
    ("target CPU per delivery", Unit::CpuSeconds, 4e-6, 0.015),
    ("login p50", Unit::Ms, 0.4, 0.06),
    ("join p50", Unit::Ms, 0.2, 0.06),
    ("join p99", Unit::Ms, 1.5, 0.15),
    ("say p50", Unit::Ms, 0.3, 0.04),
    ("say p99", Unit::Ms, 1.8, 0.12),
    ("target CPU", Unit::CpuSeconds, 2.0, 0.015),
    ("target memory, most", Unit::Bytes, 2e7, 0.01),
    ("bytes received per delivery", Unit::Bytes, 111.0, 0.0),
    ("errors", Unit::Count, 0.0, 0.0),
    ("lost", Unit::Count, 0.0, 0.0),
];

/// Runs whose CPU and latencies are `slow` times what they should be. A whole run is a little
/// faster or slower than another, in all of its figures.
fn side(rng: &mut Rng, runs: usize, slow: f64) -> Vec<Vec<Figure>> {
    let run = |rng: &mut Rng| {
        let machine = 1.0 + 0.005 * rng.normal();
        let figure = |&(name, unit, mean, spread): &(&str, Unit, f64, f64)| {
            let own = 1.0 + spread * rng.normal();
            let slow = if matches!(unit, Unit::Ms | Unit::CpuSeconds) { slow } else { 1.0 };
            let value = if spread > 0.0 { mean * own * machine * slow } else { mean };
            Figure { name: name.into(), unit, better: Better::Less, value }
        };
        FIGURES.iter().map(figure).collect()
    };
    (0..runs).map(|_| run(rng)).collect()
}

fn compared(seed: u64, runs: usize, slow: f64) -> Comparison {
    let mut rng = Rng::new(seed, 0xC0);
    let (base, candidate) = (side(&mut rng, runs, 1.0), side(&mut rng, runs, slow));
    Comparison::default().judged(&base, &candidate)
}

/// How many of `count` comparisons say so.
fn share(count: u64, runs: usize, slow: f64, verdict: Verdict) -> f64 {
    let said = |seed: &u64| compared(*seed, runs, slow).verdict == verdict;
    (0..count).filter(said).count() as f64 / count as f64
}

#[test]
fn equal_sides_are_rarely_called_different() {
    let share = share(120, 6, 1.0, Verdict::NoDifference);
    assert!(share >= 0.95, "{share}");
}

#[test]
fn slower_candidates_are_found() {
    for (slow, least) in [(1.05, 0.8), (1.20, 1.0)] {
        let share = share(60, 6, slow, Verdict::Regressed);
        assert!(share >= least, "{slow}: {share}");
    }
    let share = share(30, 6, 1.0 / 1.2, Verdict::Improved);
    assert_eq!(share, 1.0, "a faster one is no regression");
}

#[test]
fn too_few_runs_say_so_instead_of_nothing() {
    let three = compared(1, 3, 1.5);
    assert_eq!(three.verdict, Verdict::NoDifference);
    assert!(three.remarks[0].contains("cannot be told from noise"), "{:?}", three.remarks);
    let two = compared(1, 2, 1.5);
    assert_eq!((two.verdict, two.exit_code()), (Verdict::NotComparable, 3));
    assert!(two.remarks[0].contains("at least 3 of each"), "{:?}", two.remarks);
    assert!(compared(1, 6, 1.5).remarks.is_empty());
}

#[test]
fn regressions_fail_beyond_what_is_tolerated() {
    let slow = compared(3, 6, 1.2);
    assert_eq!(slow.exit_code(), 1);
    assert_eq!(Comparison { tolerate: 0.5, ..slow }.exit_code(), 0);
    assert_eq!(compared(3, 6, 1.0).exit_code(), 0);
}

#[test]
fn unequal_loads_are_not_compared() {
    let load = |sent| Load { entered: 40.0, sent, owed: 900.0 };
    let side = |sent| Side { runs: 6, load: load(sent), ..Side::default() };
    let mut rng = Rng::new(5, 0);
    let (base, candidate) =
        (super::tests::side(&mut rng, 6, 1.0), super::tests::side(&mut rng, 6, 2.0));
    for (sent, verdict) in [(100.0, Verdict::Regressed), (98.0, Verdict::NotComparable)] {
        let comparison =
            Comparison { base: side(100.0), candidate: side(sent), ..Comparison::default() };
        let comparison = comparison.judged(&base, &candidate);
        assert_eq!(comparison.verdict, verdict, "{sent}: {:?}", comparison.remarks);
    }
}

#[test]
fn a_candidate_that_crashes_has_regressed() {
    let mut comparison = compared(7, 6, 1.0);
    comparison.candidate.crashes.push("004-candidate: after 3.1 s the target ended".into());
    comparison.verdict = Verdict::NoDifference;
    let comparison = Comparison { rows: Vec::new(), remarks: Vec::new(), ..comparison };
    let mut rng = Rng::new(7, 0);
    let runs = side(&mut rng, 6, 1.0);
    let comparison = comparison.judged(&runs, &runs);
    assert_eq!((comparison.verdict, comparison.exit_code()), (Verdict::Regressed, 1));
    let xml = junit(&comparison);
    assert!(xml.contains("failures=\"1\"") && xml.contains("the target ended"), "{xml}");
}

#[test]
fn the_table_fits_a_terminal_and_says_what_matters() {
    let mut comparison = compared(11, 6, 1.2);
    comparison.name = "quickstart".into();
    comparison.base.name = "yardstick?codec=json".into();
    comparison.candidate.name = "yardstick@/a/very/long/path/to/another/build/of/throng".into();
    let page = draw::page(&comparison, None, Vec::new(), Section::default());
    let text = page.drawn().unwrap().text(None);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 80, "{text}");
    for words in ["REGRESSED: worse: ", "target CPU per delivery", "worse\n"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let xml = junit(&comparison);
    let worse = comparison.rows.iter().filter(|row| row.verdict == RowVerdict::Regressed).count();
    assert_eq!(xml.matches("<failure").count(), worse);
    assert_eq!(xml.matches("<testcase").count(), FIGURES.len() + 1);
}

#[test]
fn an_answer_survives_its_file() {
    let comparison = compared(13, 3, 1.1);
    let text = serde_json::to_string(&comparison).unwrap();
    let back: Comparison = serde_json::from_str(&text).unwrap();
    assert_eq!(back.rows.len(), comparison.rows.len());
    assert_eq!(back.verdict, comparison.verdict);
}
