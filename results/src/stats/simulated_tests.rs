//! Promises of the statistics, kept or not, over thousands of simulated experiments.

use super::*;
use model::Rng;

fn runs(rng: &mut Rng, n: usize, mean: f64, cv: f64) -> Vec<f64> {
    (0..n).map(|_| mean * (1.0 + cv * rng.normal())).collect()
}

/// Log-normal: to the right, as latencies are.
fn skewed(rng: &mut Rng, n: usize, mean: f64, cv: f64) -> Vec<f64> {
    let s = (1.0 + cv * cv).ln().sqrt();
    (0..n).map(|_| mean * (s * rng.normal() - s * s / 2.0).exp()).collect()
}

type Draw = fn(&mut Rng, usize, f64, f64) -> Vec<f64>;

/// How often the bounds of 400 experiments hold the truth: of the relative difference, the
/// absolute one, and the mean.
fn coverage(n: usize, draw: Draw, cv: f64) -> [f64; 3] {
    const EXPERIMENTS: u64 = 400;
    let mut held = [0u32; 3];
    for seed in 0..EXPERIMENTS {
        let mut rng = Rng::new(seed, n as u64);
        let (base, candidate) = (draw(&mut rng, n, 100.0, cv), draw(&mut rng, n, 110.0, cv));
        held[0] += u32::from(difference(&base, &candidate, seed).contains(0.1));
        held[1] += u32::from(difference_absolute(&base, &candidate, seed).contains(10.0));
        held[2] += u32::from(mean_bounds(&base, seed).1.contains(100.0));
    }
    held.map(|held| f64::from(held) / EXPERIMENTS as f64)
}

#[test]
fn bounds_hold_the_truth_as_often_as_they_say() {
    let laws: [(&str, Draw, f64); 2] = [("normal", runs, 0.02), ("very skewed", skewed, 0.4)];
    for (name, draw, cv) in laws {
        for n in [3, 5, 8] {
            let got = coverage(n, draw, cv);
            // 400 experiments tell the coverage to ±1.4 % (one standard error).
            // 400 experiments tell the coverage to ±1.1 % (one standard error). The mean of a few
            // runs with a CV of 40 % and a long tail is the hardest of these.
            let least = [0.93, 0.93, if cv > 0.3 { 0.92 } else { 0.93 }];
            let ok = got.iter().zip(least).all(|(held, least)| (least..=0.995).contains(held));
            assert!(ok, "{name}, {n} + {n} runs: {got:?}");
        }
    }
}

/// q of each measure of one comparison.
fn compare(rng: &mut Rng, n: usize, cv: f64, shifts: &[f64]) -> Vec<f64> {
    let p = |&shift: &f64| {
        permutation_p(&runs(rng, n, 100.0, cv), &runs(rng, n, 100.0 * (1.0 + shift), cv))
    };
    benjamini_hochberg(&shifts.iter().map(p).collect::<Vec<f64>>())
}

#[test]
fn equal_targets_are_called_equal() {
    let wrong = (0..2_000).filter(|&seed| {
        let q = compare(&mut Rng::new(seed, 1), 6, 0.03, &[0.0; 12]);
        q.iter().any(|&q| q <= 0.05)
    });
    let share = wrong.count() as f64 / 2_000.0;
    assert!((0.005..=0.05).contains(&share), "any of 12 measures called different: {share}");
}

/// How often the first measure is found, of 300 comparisons of `n + n` runs.
fn found(n: usize, cv: f64, shifts: &[f64]) -> f64 {
    let is_found = |&seed: &u64| compare(&mut Rng::new(seed, 2), n, cv, shifts)[0] <= 0.05;
    (0..300).filter(is_found).count() as f64 / 300.0
}

#[test]
fn a_slowdown_is_found() {
    let mut alone = [0.0; 12];
    alone[0] = 0.05;
    let five = found(6, 0.015, &alone);
    assert!(five >= 0.8, "5 % in one of 12 measures, 6 + 6 runs: {five}");
    let common = found(5, 0.015, &[0.05; 12]);
    assert!(common >= 0.95, "5 % in all of 12 measures, 5 + 5 runs: {common}");
    alone[0] = 0.2;
    assert_eq!(found(6, 0.015, &alone), 1.0, "20 % in one of 12 measures");
}

#[test]
fn as_many_runs_as_are_needed_find_it() {
    let table = [(0.01, 1), (0.01, 12), (0.015, 12), (0.02, 1), (0.02, 12), (0.03, 1)];
    for (cv, measures) in table {
        let n = runs_needed(cv, 0.05, 0.05, 0.8, measures) as usize;
        let mut shifts = vec![0.0; measures];
        shifts[0] = 0.05;
        let got = found(n, cv, &shifts);
        // The t-test's power is the permutation test's to about 4 %.
        assert!(got >= 0.76, "{n} + {n} runs, CV {cv}, {measures} measures: {got}");
    }
}

/// The table of docs/statistics.md.
#[test]
fn the_table_of_runs_needed_is_documented() {
    let mut table = String::new();
    for cv in [0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1] {
        table += &format!("| {} % |", cv * 100.0);
        for (difference, measures) in [0.02, 0.05, 0.1, 0.2].iter().flat_map(|&d| [(d, 1), (d, 12)])
        {
            table += &format!(" {} |", runs_needed(cv, difference, 0.05, 0.8, measures));
        }
        table += "\n";
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/statistics.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&table), "docs/statistics.md should have\n{table}");
}
