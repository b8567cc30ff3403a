//! A sweep of known truth, from design to text, Markdown and chart.

use super::*;
use crate::experiment::Unit;
use crate::laws::{Law, Verdict};
use model::Rng;

fn figure(name: &str, unit: Unit, value: f64) -> Figure {
    Figure { name: name.to_owned(), unit, value, ..Figure::default() }
}

/// Everything a report says, and its charts.
fn drawn(sweep: &Sweep) -> (String, String, Vec<(String, String)>) {
    let drawn = sweep.draw(&About::default()).unwrap();
    let (charts, pages): (Vec<_>, Vec<_>) =
        drawn.files.iter().cloned().partition(|(name, _)| name.ends_with(".svg"));
    assert_eq!(pages.len(), 2);
    (drawn.text(None), drawn.markdown.clone(), charts)
}

/// Runs of a design where n people each send to n, with 2 % noise.
fn squares() -> Vec<SweepPoint> {
    let vary = Vary::parse("destinations=1..1001:100").unwrap();
    let design = Design::new(vec![vary], 3, 7).unwrap();
    let mut rng = Rng::new(3, 0);
    let mut run = |done| {
        let values = design.trial(done).unwrap().values;
        let n = values[0].1;
        let mut noise = || (0.02 * rng.normal()).exp();
        let cost = [
            figure("deliveries", Unit::Count, 0.1 * n * n * noise()),
            figure("target CPU", Unit::CpuSeconds, 0.05 + 4e-6 * 0.1 * n * n * noise()),
            figure("delivery p50", Unit::Ms, 1.2 * noise()),
        ];
        SweepPoint { values, cost: cost.to_vec() }
    };
    (0..design.trials()).map(&mut run).collect()
}

#[test]
fn a_square_is_found_from_design_to_text() {
    let sweep = Sweep::of(&squares(), 1);
    assert_eq!((sweep.trials, sweep.costs.len()), (33, 3));
    let deliveries = &sweep.costs[0];
    let laws = deliveries.laws.as_ref().unwrap();
    assert_eq!(laws.verdict, Verdict::Law(Law::Quadratic));
    assert_eq!(sweep.costs[2].laws.as_ref().unwrap().verdict, Verdict::Law(Law::Constant));
    let ahead = deliveries.ahead.unwrap();
    assert!(ahead.outside_data && ahead.bounds.contains(0.1 * 10_010f64.powi(2)), "{ahead:?}");
    let (text, page, charts) = drawn(&sweep);
    assert!(page.contains("![deliveries by destinations](charts/sweep-deliveries.svg)"), "{page}");
    let names: Vec<&str> = charts.iter().map(|(name, _)| name.as_str()).collect();
    let all = ["sweep-deliveries.svg", "sweep-target-cpu.svg", "sweep-delivery-p50.svg"];
    assert_eq!(names, all.map(|name| format!("charts/{name}")));
    assert!(charts.iter().all(|(_, svg)| svg.matches("<circle").count() == 33 + 1));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for words in ["deliveries grows as O(n²)", "at 10,010:", "O(1)", "delivery p50", "per unit"] {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
}

#[test]
fn a_grid_has_exponents_and_no_chart() {
    let vary = ["people=10,20,40", "rooms=1,2,4"].map(|text| Vary::parse(text).unwrap());
    let design = Design::new(vary.to_vec(), 2, 7).unwrap();
    let mut rng = Rng::new(3, 0);
    let mut run = |done| {
        let values = design.trial(done).unwrap().values;
        let cost = values[0].1.powi(2) / values[1].1 * (0.02 * rng.normal()).exp();
        SweepPoint { values, cost: vec![figure("deliveries", Unit::Count, cost)] }
    };
    let points: Vec<SweepPoint> = (0..design.trials()).map(&mut run).collect();
    let sweep = Sweep::of(&points, 1);
    let exponents = sweep.costs[0].exponents.as_ref().unwrap();
    assert!((exponents[0].0 - 2.0).abs() < 0.05 && (exponents[1].0 + 1.0).abs() < 0.05);
    let (text, _, charts) = drawn(&sweep);
    assert_eq!((sweep.costs[0].rows.len(), charts.len()), (9, 0));
    assert!(text.contains("grows as people^"), "{text}");
}

#[test]
fn nothing_foreign_means_anything_and_nothing_at_all_is_no_panic() {
    let point = |n: f64, cost: f64| SweepPoint {
        values: vec![("<b>|\u{1b}".to_owned(), n)],
        cost: vec![figure("</svg>|../x", Unit::CpuSeconds, cost)],
    };
    for points in [
        vec![],
        vec![point(1.0, 0.0)],
        vec![point(0.0, 1.0), point(-5.0, 2.0), point(f64::NAN, 1.0)],
        (0..9).map(|i| point(f64::from(i), f64::from(i - 3))).collect(),
        (1..9).map(|i| point(f64::from(i), 0.0)).collect(),
        (1..9).map(|i| point(10f64.powi(i * 30), 10f64.powi(-i * 30))).collect(),
    ] {
        let sweep = Sweep::of(&points, 1);
        let (text, page, charts) = drawn(&sweep);
        assert!(!page.contains('\u{1b}') && !page.contains("<b>"), "{page}");
        assert!(!text.contains('\u{1b}'));
        for (name, svg) in charts {
            let name = name.strip_prefix("charts/").unwrap();
            assert!(!name.contains(['/', '<', '|']), "{name}");
            assert!(!svg.contains("<b>") && svg.matches("</svg>").count() == 1, "{svg}");
        }
    }
}
