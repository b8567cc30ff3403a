//! The laws as curves: what each says about the cost at a size, up to a factor.

/// A law of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// `a`: the size does not matter.
    Constant,
    /// `a + b ln n`.
    Logarithmic,
    /// `a + b n`.
    Linear,
    /// `a + b n ln n`.
    Linearithmic,
    /// `a + b n²`.
    Quadratic,
    /// `b n^p`.
    Power,
    /// `a + b n^p`.
    PowerAndFixed,
    /// `λ n / (1 + σ (n - 1) + κ n (n - 1))`: the Universal Scalability Law (Gunther 2007, chapter
    /// 4), for throughput over people or cores.
    Scalability,
}

/// Largest logit of the fixed part's share that is tried: 1 in nine million.
const LOGIT_MAX: f64 = 16.0;
/// Exponents that are tried for `a + b n^p`.
const EXPONENTS: [f64; 2] = [0.1, 6.0];
/// Smallest and largest effect of contention and of coherency at the largest size.
const EFFECTS: [f64; 2] = [1e-4, 1e4];

impl Law {
    /// All laws, the simpler first.
    pub const ALL: [Law; 8] = [
        Law::Constant,
        Law::Logarithmic,
        Law::Linear,
        Law::Linearithmic,
        Law::Quadratic,
        Law::Power,
        Law::PowerAndFixed,
        Law::Scalability,
    ];

    /// As one writes it.
    pub fn name(self) -> &'static str {
        match self {
            Law::Constant => "O(1)",
            Law::Logarithmic => "O(log n)",
            Law::Linear => "O(n)",
            Law::Linearithmic => "O(n log n)",
            Law::Quadratic => "O(n²)",
            Law::Power => "power law",
            Law::PowerAndFixed => "power law and a fixed part",
            Law::Scalability => "USL",
        }
    }

    /// Its formula, in the coefficients' names.
    pub fn formula(self) -> &'static str {
        match self {
            Law::Constant => "a",
            Law::Logarithmic => "a + b ln n",
            Law::Linear => "a + b n",
            Law::Linearithmic => "a + b n ln n",
            Law::Quadratic => "a + b n²",
            Law::Power => "b n^p",
            Law::PowerAndFixed => "a + b n^p",
            Law::Scalability => "λ n / (1 + σ (n - 1) + κ n (n - 1))",
        }
    }

    /// Coefficients.
    pub fn coefficients(self) -> usize {
        match self {
            Law::Constant => 1,
            Law::PowerAndFixed | Law::Scalability => 3,
            _ => 2,
        }
    }

    /// How much a law can bend: of laws that fit as well, those that bend least are believed.
    pub fn rank(self) -> u8 {
        match self {
            Law::Constant => 0,
            Law::Power => 2,
            Law::PowerAndFixed | Law::Scalability => 3,
            _ => 1,
        }
    }

    /// How many of the coefficients have to be searched for (the factor is not).
    pub(super) fn searched(self) -> usize {
        self.coefficients() - 1
    }

    /// What grows in the law.
    fn growing(self, n: f64, exponent: f64) -> f64 {
        match self {
            Law::Constant => 1.0,
            Law::Logarithmic => n.max(1.0).ln(),
            Law::Linear => n,
            Law::Linearithmic => n * n.max(1.0).ln(),
            Law::Quadratic => n * n,
            Law::Power | Law::PowerAndFixed | Law::Scalability => n.powf(exponent),
        }
    }
}

/// A law with all but its factor: two numbers whose meaning depends on the law.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    law: Law,
    /// Size at which both parts of a sum weigh the same when the fixed part's share is a half.
    middle: f64,
    /// Share of the fixed part; exponent of a power law; contention.
    first: f64,
    /// Exponent beside a fixed part; coherency.
    second: f64,
}

impl Shape {
    /// Where `at` (each 0 to 1) points to. `middle` and `largest` are sizes of the data.
    pub(super) fn of(law: Law, at: [f64; 2], middle: f64, largest: f64) -> Shape {
        let between = |[low, high]: [f64; 2], at: f64| low + (high - low) * at;
        let effect = |at: f64, size: f64| match at > 0.0 {
            true => between(EFFECTS.map(f64::ln), at).exp() / size,
            false => 0.0,
        };
        let (first, second) = match law {
            Law::Constant => (1.0, 0.0),
            Law::Power => (between([-EXPONENTS[1], EXPONENTS[1]], at[0]), 0.0),
            Law::PowerAndFixed => (share(at[0]), between(EXPONENTS, at[1])),
            Law::Scalability => (effect(at[0], largest), effect(at[1], largest * largest)),
            _ => (share(at[0]), 0.0),
        };
        Shape { law, middle, first, second }
    }

    /// The curve without its factor.
    pub(super) fn value(&self, n: f64) -> f64 {
        let Shape { law, middle, first, second } = *self;
        match law {
            Law::Constant => 1.0,
            Law::Power => (n / middle).powf(first),
            Law::Scalability => n / (1.0 + first * (n - 1.0) + second * n * (n - 1.0)),
            _ => first + (1.0 - first) * law.growing(n, second) / law.growing(middle, second),
        }
    }

    /// The coefficients' names and values, given the factor.
    pub(super) fn coefficients(&self, factor: f64) -> Vec<(&'static str, f64)> {
        let Shape { law, middle, first, second } = *self;
        let sum = || {
            let grown = law.growing(middle, second);
            vec![("a", factor * first), ("b", factor * (1.0 - first) / grown)]
        };
        match law {
            Law::Constant => vec![("a", factor)],
            Law::Power => vec![("b", factor / middle.powf(first)), ("p", first)],
            Law::Scalability => vec![("λ", factor), ("σ", first), ("κ", second)],
            Law::PowerAndFixed => [sum(), vec![("p", second)]].concat(),
            _ => sum(),
        }
    }
}

/// 0 and 1 exactly at the ends, and fine near them.
fn share(at: f64) -> f64 {
    match at {
        at if at <= 0.0 => 0.0,
        at if at >= 1.0 => 1.0,
        at => 1.0 / (1.0 + (-LOGIT_MAX * (2.0 * at - 1.0)).exp()),
    }
}
