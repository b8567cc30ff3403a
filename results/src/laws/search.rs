//! The least squares: which curve of a law comes nearest to the data, in relative terms.

use super::Point;
use super::shape::{Law, Shape};

/// Steps of the search from end to end, for one coefficient and for each of two.
const STEPS: [usize; 2] = [32, 16];
/// Halvings (by the golden section) between two steps.
const NARROWINGS: [usize; 2] = [40, 28];
/// `(sqrt(5) - 1) / 2`.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The data by size: sizes ascending, and at each the mean of the costs' logarithms. Repeats at a
/// size move no curve but through their mean.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) n: Vec<f64>,
    pub(super) repeats: Vec<usize>,
    pub(super) mean: Vec<f64>,
    /// Sum of squares around those means: what no curve can explain.
    pub(super) within: f64,
}

/// A curve: a shape and its factor, with what is left of the squares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    shape: Shape,
    factor: f64,
    pub(super) squares: f64,
}

impl Curve {
    /// The cost at a size.
    pub(super) fn cost(&self, n: f64) -> f64 {
        self.factor * self.shape.value(n)
    }

    /// Names and values of the coefficients.
    pub(super) fn coefficients(&self) -> Vec<(&'static str, f64)> {
        self.shape.coefficients(self.factor)
    }
}

impl Sizes {
    /// Of points whose sizes and costs are above zero.
    pub(super) fn of(points: &[Point]) -> Sizes {
        let mut sorted: Vec<(f64, f64)> = points.iter().map(|p| (p.n, p.cost.ln())).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sizes = Sizes { n: Vec::new(), repeats: Vec::new(), mean: Vec::new(), within: 0.0 };
        for group in sorted.chunk_by(|a, b| a.0 == b.0) {
            let mean = group.iter().map(|point| point.1).sum::<f64>() / group.len() as f64;
            sizes.within += group.iter().map(|point| (point.1 - mean).powi(2)).sum::<f64>();
            sizes.n.push(group[0].0);
            sizes.repeats.push(group.len());
            sizes.mean.push(mean);
        }
        sizes
    }

    /// How many points there are.
    pub(super) fn count(&self) -> usize {
        self.repeats.iter().sum()
    }

    fn largest(&self) -> f64 {
        self.n.last().copied().unwrap_or(1.0)
    }

    /// The geometric mean of the smallest and the largest size, where parts of a sum are compared;
    /// above 1, where every law grows.
    fn middle(&self) -> f64 {
        let smallest = self.n.first().copied().unwrap_or(1.0);
        (smallest * self.largest()).sqrt().max(2.0)
    }

    /// The curve of a law that comes nearest.
    pub(super) fn nearest(&self, law: Law) -> Curve {
        let (middle, largest) = (self.middle(), self.largest());
        let curve = |at: [f64; 2]| self.curve(Shape::of(law, at, middle, largest));
        let squares = |at: [f64; 2]| curve(at).squares;
        match law.searched() {
            0 => curve([0.0; 2]),
            1 => curve([minimum(0, |first| squares([first, 0.0])).0, 0.0]),
            _ => {
                let inner = |second: f64| minimum(1, |first| squares([first, second]));
                let (second, _) = minimum(1, |second| inner(second).1);
                curve([inner(second).0, second])
            }
        }
    }

    /// With the factor that fits best: the mean distance of the logarithms.
    fn curve(&self, shape: Shape) -> Curve {
        let rows = || self.n.iter().zip(&self.repeats).zip(&self.mean);
        let apart = |n: f64, mean: f64| mean - shape.value(n).ln();
        let sum: f64 = rows().map(|((&n, &r), &mean)| r as f64 * apart(n, mean)).sum();
        let log = sum / self.count() as f64;
        let squares: f64 =
            rows().map(|((&n, &r), &mean)| r as f64 * (apart(n, mean) - log).powi(2)).sum();
        let squares = if squares.is_finite() { squares + self.within } else { f64::INFINITY };
        Curve { shape, factor: log.exp(), squares }
    }
}

/// Where in 0..=1 the function is least: by steps, then by the golden section around the best.
fn minimum(fineness: usize, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let steps = STEPS[fineness];
    let step = |i: usize| i as f64 / steps as f64;
    let mut best = (0.0, f64::INFINITY);
    let mut keep = |at: f64, value: f64| {
        if value < best.1 {
            best = (at, value);
        }
    };
    (0..=steps).for_each(|i| keep(step(i), f(step(i))));
    let center = best.0;
    let (mut low, mut high) = ((center - step(1)).max(0.0), (center + step(1)).min(1.0));
    let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_a, mut at_b) = (f(a), f(b));
    for _ in 0..NARROWINGS[fineness] {
        if at_a < at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - GOLDEN * (high - low);
            at_a = f(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + GOLDEN * (high - low);
            at_b = f(b);
        }
    }
    for (at, value) in [(a, at_a), (b, at_b)] {
        if value < best.1 {
            best = (at, value);
        }
    }
    best
}
