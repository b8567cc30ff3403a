//! What a sweep found, in sentences: for the terminal, the page and the chart alike.

use super::Growth;
use super::unit::{exact, plain};
use crate::laws::{Law, Laws, MARGIN, SIZES_MIN, Verdict};
use crate::stats::Bounds;

/// A pair of numbers as one reads it.
pub(super) fn pair(bounds: Bounds, show: impl Fn(f64) -> String) -> String {
    match bounds == Bounds::UNKNOWN {
        true => "unknown".to_owned(),
        false => format!("{} … {}", show(bounds.low), show(bounds.high)),
    }
}

/// The findings about one cost, the law first.
pub(super) fn findings(growth: &Growth, parameters: &[String]) -> Vec<String> {
    match (&growth.laws, &growth.exponents) {
        (Some(laws), _) => of_laws(growth, laws),
        (None, Some(exponents)) => vec![exponents_of(parameters, exponents)],
        (None, None) => vec![
            "no exponents: too few runs, or parameters that did not vary independently".to_owned(),
        ],
    }
}

/// The law in a word or two.
pub(super) fn short_verdict(growth: &Growth) -> String {
    let Some(laws) = &growth.laws else { return "see the exponents".to_owned() };
    match &laws.verdict {
        Verdict::Law(law) => law.name().to_owned(),
        Verdict::CannotTell(laws) => {
            laws.iter().map(|law| law.name()).collect::<Vec<_>>().join(", ")
        }
        Verdict::TooFew => "too few runs".to_owned(),
    }
}

fn exponents_of(parameters: &[String], exponents: &[(f64, Bounds)]) -> String {
    let one = |(name, (value, bounds)): (&String, &(f64, Bounds))| {
        format!("{name}^{value:.2} ({})", pair(*bounds, |value| format!("{value:.2}")))
    };
    let all: Vec<String> = parameters.iter().zip(exponents).map(one).collect();
    format!("grows as {}", all.join(" · "))
}

fn of_laws(growth: &Growth, laws: &Laws) -> Vec<String> {
    let mut lines = vec![verdict(laws)];
    if let Some(best) = laws.best() {
        let one = |&(name, value, bounds): &(&'static str, f64, Bounds)| {
            format!("{name} = {} ({})", exact(value), pair(bounds, exact))
        };
        let values: Vec<String> = best.coefficients.iter().map(one).collect();
        let unit = growth.unit.name();
        lines.push(format!("{}{unit}: {}", best.law.formula(), values.join(", ")));
        let (exponent, bounds) = laws.exponent;
        lines.push(format!(
            "a plain power law has the exponent {exponent:.3} ({}); a run lies {:.1} % from the \
             curve",
            pair(bounds, |value| format!("{value:.3}")),
            best.spread * 100.0
        ));
    }
    if laws.is_misfit() {
        lines.push(
            "no law here passes through all sizes within the spread of their repeats: trust the \
             table before the law"
                .to_owned(),
        );
    }
    if let Some(ahead) = &growth.ahead {
        let show = |value| growth.unit.show(value);
        let caution = "outside of the data, so true only if the law still holds there";
        lines.push(format!(
            "at {}: {} ({}); {caution}",
            plain(ahead.n),
            show(ahead.cost),
            pair(ahead.bounds, show)
        ));
    }
    if laws.left_out > 0 {
        lines.push(format!("{} runs without a cost or size above zero left out", laws.left_out));
    }
    lines
}

/// Which law, and by which margin.
pub(super) fn verdict(laws: &Laws) -> String {
    let names = |laws: &[Law]| laws.iter().map(|law| law.name()).collect::<Vec<_>>().join(", ");
    let next = match laws.runner_up {
        Some((law, margin)) => {
            format!(
                "; next is {}, {} AICc behind ({MARGIN} rule a law out)",
                law.name(),
                plain(margin)
            )
        }
        None => String::new(),
    };
    match &laws.verdict {
        Verdict::Law(law) => format!("law: {}{next}", law.name()),
        Verdict::CannotTell(laws) => {
            format!("law: these runs cannot tell between {}{next}", names(laws))
        }
        Verdict::TooFew => {
            format!("law: too few runs with a cost above zero; it takes {SIZES_MIN} sizes, or more")
        }
    }
}
