//! Scaling laws: how a cost grows with a size, which law the runs support, and what it predicts.
//! Errors are relative (least squares on the logarithms), so that a cost that spans decades is
//! judged by its small sizes as much as by its large ones (docs/statistics.md).

mod power;
mod search;
mod shape;
#[cfg(test)]
mod tests;

pub use power::{PARAMETERS_MAX, power_law};
pub use shape::Law;

use crate::stats::{Bounds, tails};
use model::Rng;
use search::{Curve, Sizes};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// One run: a size, and what it cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size: people, rooms, destinations…
    pub n: f64,
    /// The cost, in any unit.
    pub cost: f64,
}

/// Fewer sizes than this show no law.
pub const SIZES_MIN: usize = 4;
/// A law is ruled out if its AICc lies this far above another's: it is 20 times less likely
/// (Burnham, Anderson 2002, section 2.6).
pub const MARGIN: f64 = 6.0;
/// Below this p the curve misses the sizes by more than the repeats spread.
pub const MISFIT_P: f64 = 0.01;
/// How often a believed law is fitted to data drawn anew.
const REDRAWS: usize = 400;
/// Every law is a simplification (deliveries to all but oneself are `n (n - 1)`, not `n²`): this
/// relative distance from a curve is part of every law's spread, so that costs which hardly spread
/// do not rule out a plain law for a fraction of a percent.
const SIMPLIFICATION: f64 = 0.01;
const STREAM: u64 = 0x1a75;

/// A law fitted to the points.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Which.
    pub law: Law,
    /// Akaike's criterion for few points; the lower the better.
    pub aicc: f64,
    /// How far a run lies from the curve, typically: 0.03 is 3 %.
    pub spread: f64,
    /// Name, value, and bounds (unknown for a law that is not believed).
    pub coefficients: Vec<(&'static str, f64, Bounds)>,
    curve: Curve,
    /// Curves fitted to data drawn anew; none for a law that is not believed.
    redrawn: Vec<Curve>,
    /// Distances of the runs from the curve, as logarithms.
    rests: Vec<f64>,
    /// Smallest and largest size of the data.
    sizes: (f64, f64),
}

/// What a law says about a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The size.
    pub n: f64,
    /// The cost by the law.
    pub cost: f64,
    /// Where a single new run would lie, 95 %.
    pub bounds: Bounds,
    /// The size lies outside of the data: the bounds hold only if the law holds there.
    pub outside_data: bool,
}

/// Which law it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The runs support one law.
    Law(Law),
    /// They support several alike, the likeliest first.
    CannotTell(Vec<Law>),
    /// There are too few sizes or runs with a cost.
    TooFew,
}

/// Everything the points say about growth.
#[derive(Clone, Debug)]
pub struct Laws {
    /// All laws that could be fitted, by AICc.
    pub ranked: Vec<Fit>,
    /// Which law it is.
    pub verdict: Verdict,
    /// The best law that was ruled out (of those that bend no more), and how much higher its AICc
    /// is.
    pub runner_up: Option<(Law, f64)>,
    /// The exponent of the plain power law through all points, whatever the verdict, with its
    /// bounds.
    pub exponent: (f64, Bounds),
    /// p of the hypothesis that the first believed law misses no size by more than chance; absent
    /// without repeats.
    pub misfit_p: Option<f64>,
    /// Points without a size or a cost above zero, which have no logarithm.
    pub left_out: usize,
}

/// Fits every law. The same points and seed give the same answer.
pub fn fit(points: &[Point], seed: u64) -> Laws {
    let good = |value: f64| value > 0.0 && value.is_finite();
    let usable: Vec<Point> =
        points.iter().copied().filter(|point| good(point.n) && good(point.cost)).collect();
    let mut laws = judged(&usable);
    laws.left_out = points.len() - usable.len();
    let believed = laws.believed();
    for fit in laws.ranked.iter_mut().filter(|fit| believed.contains(&fit.law)) {
        fit.redraw(&usable, seed);
    }
    laws
}

/// Everything but the bounds, of points with a size and a cost above zero.
fn judged(points: &[Point]) -> Laws {
    let sizes = Sizes::of(points);
    let rows: Vec<(Vec<f64>, f64)> = points.iter().map(|p| (vec![p.n], p.cost)).collect();
    let exponent = power_law(&rows).and_then(|exponents| exponents.first().copied());
    let mut laws = Laws {
        ranked: Vec::new(),
        verdict: Verdict::TooFew,
        runner_up: None,
        exponent: exponent.unwrap_or((f64::NAN, Bounds::UNKNOWN)),
        misfit_p: None,
        left_out: 0,
    };
    if sizes.n.len() >= SIZES_MIN {
        // With few runs AICc weighs coefficients so heavily that a constant would win over what
        // plainly grows, or be all that can be fitted.
        let Bounds { low, high } = laws.exponent.1;
        let grows = low > 0.0 || high < 0.0;
        let candidates = Law::ALL.iter().filter(|&&law| !(grows && law == Law::Constant));
        laws.ranked = candidates.filter_map(|&law| Fit::of(law, points, &sizes)).collect();
        laws.ranked.sort_by(|a, b| a.aicc.total_cmp(&b.aicc));
        laws.judge();
        laws.misfit_p = laws.best().and_then(|fit| misfit(fit, &sizes));
    }
    laws
}

impl Laws {
    /// Laws that bend least among those that are not ruled out.
    fn judge(&mut self) {
        let Some(first) = self.ranked.first() else { return };
        let least = first.aicc;
        let near: Vec<Law> =
            self.ranked.iter().filter(|fit| fit.aicc - least < MARGIN).map(|fit| fit.law).collect();
        let rank = near.iter().map(|law| law.rank()).min().unwrap_or(0);
        let kept: Vec<Law> = near.into_iter().filter(|law| law.rank() == rank).collect();
        let of = |law: Law| self.ranked.iter().find(|fit| fit.law == law).map(|fit| fit.aicc);
        let best = kept.first().and_then(|&law| of(law)).unwrap_or(least);
        self.runner_up = self
            .ranked
            .iter()
            .find(|fit| fit.law.rank() <= rank && !kept.contains(&fit.law))
            .map(|fit| (fit.law, fit.aicc - best));
        self.verdict = match kept[..] {
            [law] => Verdict::Law(law),
            _ => Verdict::CannotTell(kept),
        };
    }

    /// The laws that the runs support.
    pub fn believed(&self) -> Vec<Law> {
        match &self.verdict {
            Verdict::Law(law) => vec![*law],
            Verdict::CannotTell(laws) => laws.clone(),
            Verdict::TooFew => Vec::new(),
        }
    }

    /// The likeliest of them.
    pub fn best(&self) -> Option<&Fit> {
        let law = *self.believed().first()?;
        self.ranked.iter().find(|fit| fit.law == law)
    }

    /// The cost at a size: that of the likeliest law, with bounds that hold for every law the runs
    /// support.
    pub fn predict(&self, n: f64) -> Option<Prediction> {
        let mut whole = self.best()?.predict(n);
        for law in self.believed() {
            let fit = self.ranked.iter().find(|fit| fit.law == law)?;
            let bounds = fit.predict(n).bounds;
            whole.bounds.low = whole.bounds.low.min(bounds.low);
            whole.bounds.high = whole.bounds.high.max(bounds.high);
        }
        Some(whole)
    }

    /// Whether even the likeliest law misses sizes by more than the repeats spread.
    pub fn is_misfit(&self) -> bool {
        self.misfit_p.is_some_and(|p| p < MISFIT_P)
    }
}

impl Fit {
    /// `None` if there are too few points for so many coefficients.
    fn of(law: Law, points: &[Point], sizes: &Sizes) -> Option<Fit> {
        let (count, k) = (points.len() as f64, law.coefficients() as f64 + 1.0);
        if sizes.n.len() <= law.coefficients() || count - k - 1.0 <= 0.0 {
            return None;
        }
        let curve = sizes.nearest(law);
        let variance = curve.squares / count + SIMPLIFICATION.powi(2);
        let aicc = count * variance.ln() + 2.0 * k + 2.0 * k * (k + 1.0) / (count - k - 1.0);
        let unknown = |(name, value)| (name, value, Bounds::UNKNOWN);
        curve.squares.is_finite().then(|| Fit {
            law,
            aicc,
            spread: (curve.squares / (count - law.coefficients() as f64)).sqrt(),
            coefficients: curve.coefficients().into_iter().map(unknown).collect(),
            curve,
            redrawn: Vec::new(),
            rests: points.iter().map(|p| p.cost.ln() - curve.cost(p.n).ln()).collect(),
            sizes: (sizes.n[0], sizes.n[sizes.n.len() - 1]),
        })
    }

    /// Bootstrap over the rests: data are drawn from the curve and what it left, and fitted again
    /// (Davison, Hinkley 1997, section 6.2).
    fn redraw(&mut self, points: &[Point], seed: u64) {
        let mut rng = Rng::new(seed, STREAM);
        let count = self.rests.len() as f64;
        let middle = self.rests.iter().sum::<f64>() / count;
        // What a curve leaves is smaller than what it was drawn to, by its coefficients.
        let wider = (count / (count - self.law.coefficients() as f64)).sqrt();
        self.rests.iter_mut().for_each(|rest| *rest = (*rest - middle) * wider);
        let expected: Vec<f64> = points.iter().map(|point| self.curve.cost(point.n)).collect();
        self.redrawn = (0..REDRAWS)
            .map(|_| {
                let draw = |(point, cost): (&Point, &f64)| {
                    let rest = self.rests[rng.below(self.rests.len() as u64) as usize];
                    Point { n: point.n, cost: cost * rest.exp() }
                };
                let drawn: Vec<Point> = points.iter().zip(&expected).map(draw).collect();
                Sizes::of(&drawn).nearest(self.law)
            })
            .collect();
        for at in 0..self.coefficients.len() {
            let value = |curve: &Curve| curve.coefficients()[at].1;
            self.coefficients[at].2 =
                tails(&mut self.redrawn.iter().map(value).collect::<Vec<_>>());
        }
    }

    /// The cost by the law.
    pub fn cost(&self, n: f64) -> f64 {
        self.curve.cost(n)
    }

    /// Where the curve itself lies at a size, 95 %.
    pub fn band(&self, n: f64) -> Bounds {
        let mut costs: Vec<f64> = self.redrawn.iter().map(|curve| curve.cost(n)).collect();
        tails(&mut costs)
    }

    /// The cost at a size, and where a single new run would lie.
    pub fn predict(&self, n: f64) -> Prediction {
        // Every redrawn curve meets another of the rests: both errors count.
        let rest = |at: usize| self.rests[at % self.rests.len()].exp();
        let drawn = self.redrawn.iter().enumerate();
        let mut costs: Vec<f64> = drawn.map(|(at, curve)| curve.cost(n) * rest(at)).collect();
        let bounds = tails(&mut costs);
        let outside_data = n < self.sizes.0 || n > self.sizes.1;
        Prediction { n, cost: self.cost(n), bounds, outside_data }
    }
}

/// The lack-of-fit F test (Draper, Smith 1998, section 2.1): distances of the sizes from the curve
/// against the spread of the repeats.
fn misfit(fit: &Fit, sizes: &Sizes) -> Option<f64> {
    let between = sizes.n.len().checked_sub(fit.law.coefficients()).filter(|&f| f > 0)? as f64;
    let repeats = sizes.count().checked_sub(sizes.n.len()).filter(|&f| f > 0)? as f64;
    let noise = sizes.within / repeats + SIMPLIFICATION.powi(2);
    let ratio = ((fit.curve.squares - sizes.within).max(0.0) / between) / noise;
    Some(FisherSnedecor::new(between, repeats).ok()?.sf(ratio))
}
