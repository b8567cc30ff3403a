//! Known truth: features of known cost, alone and where they share work.

use super::*;
use crate::experiment::{Better, Design};
use model::Rng;

/// Runs of one figure with this mean and a spread of 1 %.
fn runs(rng: &mut Rng, mean: f64) -> Vec<Values> {
    let run = |rng: &mut Rng| {
        let value = mean * (1.0 + 0.01 * rng.normal());
        let name = "target CPU".to_owned();
        vec![Figure { name, unit: Unit::CpuSeconds, better: Better::Less, value }]
    };
    (0..5).map(|_| (run(rng), Vec::new())).collect()
}

#[test]
fn costs_and_what_is_left_over_are_found() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed, 0);
        // Everything, without a (3 s), without b (2 s), nothing.
        let arms: Vec<Vec<Values>> =
            [10.0, 7.0, 8.0, 5.0].into_iter().map(|mean| runs(&mut rng, mean)).collect();
        let row = &rows(&arms, |values| &values.0)[0];
        for (cost, want) in row.features.iter().zip([3.0, 2.0]) {
            assert!((cost.value - want).abs() < 0.3 && cost.is_seen(), "seed {seed}: {cost:?}");
        }
        assert!((row.rest.value - 5.0).abs() < 0.15, "seed {seed}");
    }
}

#[test]
fn an_interaction_is_noted_only_where_there_is_one() {
    let mut noted = [0, 0];
    for seed in 0..100 {
        for (which, bare) in [5.0, 4.0].into_iter().enumerate() {
            let mut rng = Rng::new(seed, which as u64);
            let arms: Vec<Vec<Values>> =
                [10.0, 7.0, 8.0, bare].into_iter().map(|mean| runs(&mut rng, mean)).collect();
            noted[which] += interactions(&rows(&arms, |values| &values.0)).len();
        }
    }
    assert!(noted[0] <= 10 && noted[1] == 100, "{noted:?}");
}

#[test]
fn arms_are_everything_each_and_nothing() {
    let feature = |name: &str| Feature {
        name: name.into(),
        without: vec![name.into()],
        ..Feature::default()
    };
    let knob = Feature {
        name: "k".into(),
        set: vec![("target.k".into(), "off".into())],
        ..Feature::default()
    };
    let labels = |features: &[Feature]| -> Vec<String> {
        design(features, 1).arms.into_iter().map(|arm| arm.label).collect()
    };
    assert_eq!(labels(&[feature("a")]), ["everything", "without a"]);
    let all = [feature("a"), knob];
    assert_eq!(labels(&all), ["everything", "without a", "without k", "nothing"]);
    let design = design(&all, 2);
    assert_eq!(design.trials_planned(), 8);
    let bare = &design.arms[3];
    assert_eq!((bare.without.len(), bare.set.len()), (1, 1));
}
