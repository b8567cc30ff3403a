//! `series.csv` and `faults.csv`: counts of every second. The names of the columns are the fields
//! of `Counters` and `Gauges`, and `measure.asked`, `measure.done`, `measure.failed`.

use super::csv::{Header, number};
use super::load::Second;
use model::{Counters, FaultClass, Gauges, Interval, Measure};
use std::fmt::Write as _;

/// Header of `faults.csv`.
pub(crate) const FAULTS_HEAD: &str = "second,measure,class,count\n";

/// Header of `series.csv`.
pub(crate) fn head() -> String {
    let mut head = String::from("second");
    let counters = Counters::default().fields();
    for (name, _) in counters.into_iter().chain(Gauges::default().fields()) {
        let _ = write!(head, ",{name}");
    }
    for measure in Measure::ALL.iter().map(|measure| measure.name()) {
        let _ = write!(head, ",{measure}.asked,{measure}.done,{measure}.failed");
    }
    head.push('\n');
    head
}

/// The row of one second.
pub(crate) fn row(interval: &Interval) -> String {
    let mut row = interval.second.to_string();
    for (_, value) in interval.counters.fields().into_iter().chain(interval.gauges.fields()) {
        let _ = write!(row, ",{value}");
    }
    for measure in Measure::ALL {
        match interval.measures.get(measure) {
            Some(stats) => {
                let _ = write!(row, ",{},{},{}", stats.asked, stats.done, stats.failed);
            }
            None => row.push_str(",0,0,0"),
        }
    }
    row.push('\n');
    row
}

/// The failures of one second, a row each.
pub(crate) fn fault_rows(interval: &Interval) -> String {
    let mut rows = String::new();
    for (measure, classes) in &interval.faults {
        for (class, count) in classes {
            let _ =
                writeln!(rows, "{},{},{},{count}", interval.second, measure.name(), class.name());
        }
    }
    rows
}

/// Reads a row of `series.csv`. Columns this version does not know are passed over.
pub(crate) fn parse(header: &Header, row: &str) -> Result<Second, String> {
    let mut second = Second::default();
    let mut dated = false;
    for (column, cell) in header.pair(row)? {
        if column == "second" {
            second.second = number(column, &cell)?;
            dated = true;
            continue;
        }
        let value: u64 = number(column, &cell)?;
        match column.split_once('.') {
            None => {
                let _known = second.counters.set(column, value) || second.gauges.set(column, value);
            }
            Some((name, field)) => set_measure(&mut second, name, field, value),
        }
    }
    if dated { Ok(second) } else { Err("there is no column “second”".to_owned()) }
}

fn set_measure(second: &mut Second, name: &str, field: &str, value: u64) {
    let Some(measure) = Measure::from_name(name).filter(|_| value > 0) else { return };
    let stats = second.measures.entry(measure).or_default();
    match field {
        "asked" => stats.asked = value,
        "done" => stats.done = value,
        "failed" => stats.failed = value,
        _ => {}
    }
}

/// Reads a row of `faults.csv`; `None` for names that this version does not know.
pub(crate) fn parse_fault(
    header: &Header,
    row: &str,
) -> Result<Option<(u32, Measure, FaultClass, u64)>, String> {
    let (mut second, mut measure, mut class, mut count) = (None, None, None, None);
    for (column, cell) in header.pair(row)? {
        match column {
            "second" => second = Some(number(column, &cell)?),
            "measure" => measure = Measure::from_name(&cell),
            "class" => class = FaultClass::from_name(&cell),
            "count" => count = Some(number(column, &cell)?),
            _ => {}
        }
    }
    let (Some(second), Some(count)) = (second, count) else {
        return Err("the columns “second” and “count” are needed".to_owned());
    };
    Ok(measure.zip(class).map(|(measure, class)| (second, measure, class, count)))
}
