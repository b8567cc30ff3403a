//! Figures of several rounds: the median and the range, never a number alone.

use std::fmt;

/// The median of several rounds, with the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// The spread of some figures; zeros if there are none.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Spread {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (figures.first(), figures.last()) else {
            return Spread { median: 0.0, min: 0.0, max: 0.0 };
        };
        let (low, high) = (figures[(figures.len() - 1) / 2], figures[figures.len() / 2]);
        Spread { median: (low + high) / 2.0, min, max }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.median {
            big if big >= 100.0 => 0,
            middle if middle >= 10.0 => 1,
            small if small >= 0.1 => 2,
            _ => 3,
        };
        let Spread { median, min, max } = self;
        write!(f, "{median:.digits$} [{min:.digits$}..{max:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_range() {
        let check = |figures: &[f64], want: &str| {
            assert_eq!(Spread::of(figures.iter().copied()).to_string(), want);
        };
        check(&[3.0, 1.0, 2.0], "2.00 [1.00..3.00]");
        check(&[400.0, 100.0], "250 [100..400]");
        check(&[0.031], "0.031 [0.031..0.031]");
        check(&[], "0.000 [0.000..0.000]");
    }
}
