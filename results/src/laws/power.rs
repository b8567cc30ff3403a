//! A power law of several parameters at once: `cost = b x^p y^q …`, for grids.

use crate::stats::{Bounds, student_quantile};

/// Parameters at most: a grid of more could not be run.
pub const PARAMETERS_MAX: usize = 8;
/// A pivot this small beside the largest means that two parameters always moved together.
const PIVOT_LEAST: f64 = 1e-10;

/// The exponent of each parameter with its bounds (95 %, Student's t), by least squares on the
/// logarithms. Points with a value or cost not above zero are left out. `None` if too few are left
/// or if the parameters did not move independently.
pub fn power_law(points: &[(Vec<f64>, f64)]) -> Option<Vec<(f64, Bounds)>> {
    let count = points.first()?.0.len();
    let usable = |(values, cost): &&(Vec<f64>, f64)| {
        let good = |value: &f64| *value > 0.0 && value.is_finite();
        values.len() == count && values.iter().all(good) && good(cost)
    };
    let rows: Vec<(Vec<f64>, f64)> = points
        .iter()
        .filter(usable)
        .map(|(values, cost)| (values.iter().map(|value| value.ln()).collect(), cost.ln()))
        .collect();
    let freedom = rows.len().checked_sub(count + 1).filter(|&freedom| freedom > 0)? as f64;
    if count == 0 || count > PARAMETERS_MAX {
        return None;
    }
    let (rows, costs) = centered(rows);
    let product = |a: usize, b: usize| rows.iter().map(|row| row[a] * row[b]).sum::<f64>();
    let matrix = (0..count).map(|a| (0..count).map(|b| product(a, b)).collect()).collect();
    let inverse = inverse(matrix)?;
    let right: Vec<f64> = (0..count)
        .map(|a| rows.iter().zip(&costs).map(|(row, cost)| row[a] * cost).sum())
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let exponents: Vec<f64> = inverse.iter().map(|row| dot(row, &right)).collect();
    let left = rows.iter().zip(&costs).map(|(row, cost)| cost - dot(row, &exponents));
    let variance = left.map(|rest| rest * rest).sum::<f64>() / freedom;
    let t = student_quantile(0.975, freedom);
    let bounds = |(at, &exponent): (usize, &f64)| {
        let error = t * (variance * inverse[at][at]).max(0.0).sqrt();
        (exponent, Bounds { low: exponent - error, high: exponent + error })
    };
    Some(exponents.iter().enumerate().map(bounds).collect())
}

/// Each column and the costs without their means: the factor falls out.
fn centered(mut rows: Vec<(Vec<f64>, f64)>) -> (Vec<Vec<f64>>, Vec<f64>) {
    let many = rows.len() as f64;
    for column in 0..rows[0].0.len() {
        let mean = rows.iter().map(|row| row.0[column]).sum::<f64>() / many;
        rows.iter_mut().for_each(|row| row.0[column] -= mean);
    }
    let mean = rows.iter().map(|row| row.1).sum::<f64>() / many;
    rows.into_iter().map(|(values, cost)| (values, cost - mean)).unzip()
}

/// Gauss and Jordan with pivots on the diagonal: the matrix is symmetric and not negative.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let count = matrix.len();
    let least: Vec<f64> = (0..count).map(|at| matrix[at][at] * PIVOT_LEAST).collect();
    for (at, row) in matrix.iter_mut().enumerate() {
        row.extend((0..count).map(|column| if column == at { 1.0 } else { 0.0 }));
    }
    for at in 0..count {
        let pivot = matrix[at][at];
        if pivot.is_nan() || pivot <= least[at] {
            return None;
        }
        matrix[at].iter_mut().for_each(|value| *value /= pivot);
        let row = matrix[at].clone();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let factor = other[at];
            other.iter_mut().zip(&row).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    Some(matrix.into_iter().map(|row| row[count..].to_vec()).collect())
}
