//! Known truths: data of each law, with noise, must be recognized.

use super::*;

fn points(seed: u64, sizes: &[f64], noise: f64, truth: impl Fn(f64) -> f64) -> Vec<Point> {
    let mut rng = Rng::new(seed, 9);
    let mut one = |&n: &f64| Point { n, cost: truth(n) * (noise * rng.normal()).exp() };
    (0..3).flat_map(|_| sizes.iter().map(&mut one).collect::<Vec<_>>()).collect()
}

/// `1..1001:100`.
fn hundreds() -> Vec<f64> {
    (0..11).map(|i| f64::from(i) * 100.0 + 1.0).collect()
}

fn doublings() -> Vec<f64> {
    (0..11).map(|i| f64::from(1 << i)).collect()
}

type Truth = fn(f64) -> f64;

#[test]
fn each_law_is_recognized_through_noise() {
    let truths: [(Law, Truth); 8] = [
        (Law::Constant, |_| 7.0),
        (Law::Logarithmic, |n| 3.0 + 2.0 * n.ln()),
        (Law::Linear, |n| 40.0 + 0.5 * n),
        (Law::Linearithmic, |n| 5.0 + 0.2 * n * n.ln()),
        (Law::Quadratic, |n| 100.0 + 0.1 * n * n),
        (Law::Quadratic, |n| 0.1 * n * n),
        (Law::Power, |n| 2.0 * n.powf(1.5)),
        (Law::Scalability, |n| 10.0 * n / (1.0 + 0.02 * (n - 1.0) + 1e-4 * n * (n - 1.0))),
    ];
    for (law, truth) in truths {
        for (sizes, name) in [(hundreds(), "hundreds"), (doublings(), "doublings")] {
            for noise in [0.02, 0.05] {
                let found = |&seed: &u64| {
                    judged(&points(seed, &sizes, noise, truth)).verdict == Verdict::Law(law)
                };
                let found = (0..20).filter(found).count();
                assert!(found >= 19, "{law:?}, {name}, noise {noise}: {found} of 20");
            }
        }
    }
}

#[test]
fn laws_that_the_data_cannot_tell_apart_are_named_together() {
    let narrow: Vec<f64> = (0..11).map(|i| 800.0 + 20.0 * f64::from(i)).collect();
    for seed in 0..5 {
        let laws = fit(&points(seed, &narrow, 0.03, |n| 0.2 * n), seed);
        let believed = laws.believed();
        assert!(matches!(laws.verdict, Verdict::CannotTell(_)), "{seed}: {:?}", laws.verdict);
        for law in [Law::Linear, Law::Linearithmic] {
            assert!(believed.contains(&law), "{seed}: {believed:?}");
        }
        // What follows from either: the truth at ten times the size, and not much less than that.
        let ten = laws.predict(10_000.0).unwrap();
        assert!(ten.outside_data && ten.bounds.contains(2_000.0), "{seed}: {ten:?}");
        assert!(
            ten.bounds.contains(0.2 * 10_000.0 * 10_000f64.ln() / 900f64.ln()),
            "{seed}: {ten:?}"
        );
    }
}

#[test]
fn the_coefficient_of_a_square_is_found_within_two_percent() {
    for seed in 0..5 {
        let laws = fit(&points(seed, &hundreds(), 0.03, |n| 0.1 * n * n), seed);
        let best = laws.best().unwrap();
        let (name, value, _) = best.coefficients[1];
        assert_eq!((best.law, name), (Law::Quadratic, "b"));
        assert!((value / 0.1 - 1.0).abs() < 0.02, "seed {seed}: {value}");
        assert!((laws.exponent.0 - 2.0).abs() < 0.02, "seed {seed}: {:?}", laws.exponent);
        assert!(laws.runner_up.is_some_and(|(_, margin)| margin > 50.0), "{:?}", laws.runner_up);
        assert!(!laws.is_misfit(), "seed {seed}: {:?}", laws.misfit_p);
    }
}

#[test]
fn counts_without_any_spread_still_have_their_plain_law() {
    let laws = fit(&points(0, &hundreds(), 0.0, |n| 0.1 * n * (n - 1.0)), 1);
    assert_eq!((&laws.verdict, laws.left_out), (&Verdict::Law(Law::Quadratic), 3));
    let value = laws.best().unwrap().coefficients[1].1;
    assert!((value / 0.1 - 1.0).abs() < 0.02 && !laws.is_misfit(), "{value}");
}

#[test]
fn bounds_hold_the_coefficient_and_the_next_decade() {
    let (mut coefficient, mut decade, mut curve) = (0, 0, 0);
    for seed in 0..40 {
        let laws = fit(&points(seed, &hundreds(), 0.04, |n| 50.0 + 0.5 * n), seed);
        let Some(best) = laws.best().filter(|best| best.law == Law::Linear) else { continue };
        let noise = (0.04 * Rng::new(seed, 77).normal()).exp();
        coefficient += u32::from(best.coefficients[1].2.contains(0.5));
        decade += u32::from(best.predict(10_010.0).bounds.contains(5_055.0 * noise));
        curve += u32::from(best.band(500.0).contains(300.0));
    }
    let all = [coefficient, decade, curve];
    assert!(all.iter().all(|&held| held >= 34), "{all:?} of 40");
}

#[test]
fn a_curve_that_no_law_describes_is_called_a_misfit() {
    let stairs = |n: f64| if n > 500.0 { 4.0 * n } else { n };
    let laws = fit(&points(1, &hundreds(), 0.02, stairs), 1);
    assert!(laws.is_misfit(), "{:?} {:?}", laws.verdict, laws.misfit_p);
}

#[test]
fn degenerate_points_make_no_law_and_no_panic() {
    let few = |list: &[(f64, f64)]| {
        fit(&list.iter().map(|&(n, cost)| Point { n, cost }).collect::<Vec<_>>(), 1)
    };
    let three: [(f64, f64); 3] = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)];
    for list in [&[][..], &three, &[(1.0, f64::NAN), (0.0, 1.0), (-1.0, 2.0), (2.0, 0.0)]] {
        let laws = few(list);
        assert_eq!(laws.verdict, Verdict::TooFew);
        assert!(laws.predict(1.0).is_none());
    }
    assert_eq!(few(&[(1.0, 0.0), (2.0, f64::INFINITY)]).left_out, 2);
    // Four runs fit a constant, and nothing else: what grows is not called one.
    let four = few(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.1)]);
    assert_eq!(four.verdict, Verdict::TooFew);
    assert!(four.predict(10.0).is_none() && (four.exponent.0 - 1.0).abs() < 0.1);
    let exact = few(&[(1.0, 3.0), (2.0, 12.0), (3.0, 27.0), (4.0, 48.0), (5.0, 75.0)]);
    assert_eq!(exact.verdict, Verdict::Law(Law::Quadratic));
    let huge = few(&[(1e-300, 1e300), (1.0, 1e-300), (1e300, 1.0), (1e308, 5.0), (2.0, 1e308)]);
    assert!(huge.ranked.iter().all(|fit| fit.aicc.is_finite()));
}

#[test]
fn exponents_of_a_grid_are_found_one_by_one() {
    let (mut held, mut last) = (0, Vec::new());
    for seed in 0..200 {
        let mut rng = Rng::new(seed, 0);
        last.clear();
        for x in [1.0, 2.0, 5.0, 10.0f64] {
            for y in [100.0, 300.0, 900.0f64, 100.0, 300.0, 900.0] {
                let noise = (0.03 * rng.normal()).exp();
                last.push((vec![x, y], 7.0 * x.powf(1.5) * y.powf(0.5) * noise));
            }
        }
        for ((value, bounds), truth) in power_law(&last).unwrap().iter().zip([1.5, 0.5]) {
            assert!((value - truth).abs() < 0.05, "seed {seed}: {value} {bounds:?}");
            held += u32::from(bounds.contains(truth));
        }
    }
    assert!((370..=396).contains(&held), "bounds held {held} of 400");
    let together: Vec<(Vec<f64>, f64)> =
        (1..9).map(|i| (vec![f64::from(i), f64::from(i) * 2.0], f64::from(i))).collect();
    assert!(power_law(&together).is_none(), "two parameters that moved together");
    assert!(power_law(&[]).is_none() && power_law(&last[..3]).is_none());
}
