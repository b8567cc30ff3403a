//! `metrics.csv`: what servers published about themselves and what Prometheus answered, a row for
//! each sample.

use super::csv::{Header, cell, clip, number};
use super::probes::{seconds, tick};
use model::metric::{Labels, exposition};
use model::{MetricKind, MetricSample, Series};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// Header of `metrics.csv`.
pub(crate) const HEAD: &str = "at_s,source,metric,labels,kind,value\n";

/// The rows of some samples.
pub(crate) fn rows(samples: &[MetricSample]) -> String {
    let mut rows = String::new();
    for MetricSample { at, series, value } in samples {
        let (labels, kind) = (series.labels_text(), series.kind.name());
        let [source, name, labels] = [&series.source, &series.name, &labels].map(|t| cell(t));
        let _ = writeln!(rows, "{},{source},{name},{labels},{kind},{value}", seconds(*at));
    }
    rows
}

/// Reads rows; samples of one series share it.
#[derive(Debug, Default)]
pub(crate) struct MetricReader {
    known: HashSet<Arc<Series>>,
}

impl MetricReader {
    /// Reads a row. Columns this version does not know are passed over.
    pub(crate) fn row(&mut self, header: &Header, row: &str) -> Result<MetricSample, String> {
        let (mut at, mut value, mut series) = (None, None, Series::default());
        for (column, cell) in header.pair(row)? {
            match column {
                "at_s" => at = Some(tick(&cell)?),
                "source" => series.source = cell.into_owned(),
                "metric" => series.name = cell.into_owned(),
                "labels" => series.labels = labels(&cell)?,
                "kind" => series.kind = MetricKind::from_name(&cell),
                "value" => value = Some(number::<f64>(column, &cell)?),
                _ => {}
            }
        }
        let (Some(at), Some(value)) = (at, value.filter(|value| value.is_finite())) else {
            return Err("a time and a finite value are needed".to_owned());
        };
        let series = match self.known.get(&series) {
            Some(known) => known.clone(),
            None => {
                let series = Arc::new(series);
                self.known.insert(series.clone());
                series
            }
        };
        Ok(MetricSample { at, series, value })
    }
}

fn labels(cell: &str) -> Result<Labels, String> {
    match exposition::read_labels(cell) {
        Some(labels) => Ok(labels),
        None => Err(format!("labels: “{}” cannot be read", clip(cell))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Rng, Tick};

    #[test]
    fn samples_survive_a_round_trip() {
        let header = Header::parse(HEAD.trim_end()).expect("ours");
        let mut reader = MetricReader::default();
        for seed in 0..200 {
            let mut rng = Rng::new(seed, 0);
            let texts = ["a", "", "say \"hi\", you}", "ü\n\\n", "=,{"];
            let mut text = || texts[rng.below(5) as usize].to_owned();
            let labels = vec![("code".to_owned(), text()), ("path".to_owned(), text())];
            let series = Series {
                source: "127.0.0.1:80".to_owned(),
                name: "hits_total".to_owned(),
                labels,
                kind: [MetricKind::Counter, MetricKind::Gauge][seed as usize % 2],
            };
            let value = (rng.unit() - 0.5) * 10f64.powi(rng.below(40) as i32 - 20);
            let sample = MetricSample { at: Tick(rng.u64()), series: Arc::new(series), value };
            let row = rows(std::slice::from_ref(&sample));
            assert_eq!(row.lines().count(), 1, "seed {seed}");
            assert_eq!(reader.row(&header, row.trim_end()), Ok(sample), "seed {seed}");
        }
        assert!(reader.known.len() <= 50);
    }

    #[test]
    fn bad_rows_are_refused() {
        let header = Header::parse(HEAD.trim_end()).expect("ours");
        for row in [
            "1.000000000,s,m,,gauge,NaN",
            "1.000000000,s,m,,gauge,x",
            "1,s,m,,gauge,1",
            "1.000000000,s,m,a=b,gauge,1",
            "1.000000000,s,m,\"a=\"\"b\",gauge,1",
            "1.000000000,s,m",
        ] {
            assert!(MetricReader::default().row(&header, row).is_err(), "{row}");
        }
    }
}
