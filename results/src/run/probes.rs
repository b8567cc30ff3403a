//! `probes.csv`: a row for each process of a reading, then one for the host that completes it.

use super::csv::{Header, cell, number};
use model::{HostSample, ProbeSample, ProcessSample, Tick};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Header of `probes.csv`. `cpu_percent` is of one core, since the reading before.
pub(crate) const HEAD: &str = "at_s,role,pid,name,cpu_percent,cpu_ns,user_ns,run_queue_ns,\
    rss_bytes,pss_bytes,virtual_bytes,threads,descriptors,switches,read_bytes,written_bytes,\
    busy_ns,steal_ns,load,available_bytes,retransmits,drops,calibration_ns\n";

/// Commas that stand for the columns that only the other kind of row fills.
const HOST_BLANKS: &str = ",,,,,,,";
const PROCESS_BLANKS: &str = ",,,,,,,,,,,,,,";

/// Writes rows; remembers the last reading, of which a percentage is the difference.
#[derive(Debug, Default)]
pub(crate) struct ProbeWriter {
    before: BTreeMap<u32, (Tick, u64)>,
}

impl ProbeWriter {
    /// The rows of one reading.
    pub(crate) fn rows(&mut self, sample: &ProbeSample) -> String {
        let mut rows = String::new();
        let roles = [("target", &sample.target), ("generator", &sample.generator)];
        let mut now = BTreeMap::new();
        for (role, processes) in roles {
            for process in processes {
                let percent = self.percent(sample.at, process);
                process_row(&mut rows, sample.at, role, process, percent);
                now.insert(process.pid, (sample.at, process.cpu_ns));
            }
        }
        self.before = now;
        host_row(&mut rows, sample.at, &sample.host);
        rows
    }

    /// CPU since the reading before, percent of one core.
    fn percent(&self, at: Tick, process: &ProcessSample) -> Option<f64> {
        let &(before, cpu_ns) = self.before.get(&process.pid)?;
        let elapsed = at.ns_since(before);
        (elapsed > 0 && process.cpu_ns >= cpu_ns)
            .then(|| (process.cpu_ns - cpu_ns) as f64 / elapsed as f64 * 100.0)
    }
}

/// Seconds with nine decimals.
pub(super) fn seconds(at: Tick) -> String {
    format!("{}.{:09}", at.0 / 1_000_000_000, at.0 % 1_000_000_000)
}

fn process_row(rows: &mut String, at: Tick, role: &str, p: &ProcessSample, percent: Option<f64>) {
    let _ = write!(rows, "{},{role},{},{},", seconds(at), p.pid, cell(&p.name));
    if let Some(percent) = percent {
        let _ = write!(rows, "{percent:.1}");
    }
    for value in [
        p.cpu_ns,
        p.user_ns,
        p.run_queue_ns,
        p.rss_bytes,
        p.pss_bytes,
        p.virtual_bytes,
        p.threads,
        p.descriptors,
        p.switches,
        p.read_bytes,
        p.written_bytes,
    ] {
        let _ = write!(rows, ",{value}");
    }
    rows.push_str(HOST_BLANKS);
    rows.push('\n');
}

fn host_row(rows: &mut String, at: Tick, h: &HostSample) {
    let load = if h.load.is_finite() { h.load } else { 0.0 };
    let _ = writeln!(
        rows,
        "{},host{PROCESS_BLANKS},{},{},{load},{},{},{},{}",
        seconds(at),
        h.busy_ns,
        h.steal_ns,
        h.available_bytes,
        h.retransmits,
        h.drops,
        h.calibration_ns
    );
}

/// Puts readings together again from their rows.
#[derive(Debug, Default)]
pub(crate) struct ProbeReader {
    reading: ProbeSample,
}

impl ProbeReader {
    /// Takes the next row; a reading is handed out with its last one.
    pub(crate) fn row(
        &mut self,
        header: &Header,
        row: &str,
    ) -> Result<Option<ProbeSample>, String> {
        let cells: BTreeMap<&str, _> = header.pair(row)?.into_iter().collect();
        let text = |column: &str| cells.get(column).map_or("", |cell| cell.as_ref());
        let value = |column: &str| match text(column) {
            "" => Ok(0),
            cell => number::<u64>(column, cell),
        };
        self.reading.at = tick(text("at_s"))?;
        match text("role") {
            "host" => {
                let mut reading = std::mem::take(&mut self.reading);
                reading.host = HostSample {
                    busy_ns: value("busy_ns")?,
                    steal_ns: value("steal_ns")?,
                    load: Some(number::<f64>("load", text("load"))?)
                        .filter(|load| load.is_finite())
                        .ok_or("load: not a finite number")?,
                    available_bytes: value("available_bytes")?,
                    retransmits: value("retransmits")?,
                    drops: value("drops")?,
                    calibration_ns: value("calibration_ns")?,
                };
                Ok(Some(reading))
            }
            role @ ("target" | "generator") => {
                let process = ProcessSample {
                    pid: number("pid", text("pid"))?,
                    name: text("name").to_owned(),
                    cpu_ns: value("cpu_ns")?,
                    user_ns: value("user_ns")?,
                    run_queue_ns: value("run_queue_ns")?,
                    rss_bytes: value("rss_bytes")?,
                    pss_bytes: value("pss_bytes")?,
                    virtual_bytes: value("virtual_bytes")?,
                    threads: value("threads")?,
                    descriptors: value("descriptors")?,
                    switches: value("switches")?,
                    read_bytes: value("read_bytes")?,
                    written_bytes: value("written_bytes")?,
                };
                match role {
                    "target" => self.reading.target.push(process),
                    _ => self.reading.generator.push(process),
                }
                Ok(None)
            }
            role => Err(format!("role: “{}” is unknown", super::csv::clip(role))),
        }
    }
}

/// Seconds with nine decimals, exactly.
pub(super) fn tick(cell: &str) -> Result<Tick, String> {
    let wrong = || format!("at_s: “{}” is not a time", super::csv::clip(cell));
    let (whole, fraction) = cell.split_once('.').ok_or_else(wrong)?;
    if fraction.len() != 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let fraction: u64 = fraction.parse().map_err(|_| wrong())?;
    let ns = whole.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(fraction));
    ns.map(Tick).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rng;

    fn random(seed: u64) -> ProbeSample {
        let mut rng = Rng::new(seed, 0);
        let process = |rng: &mut Rng| ProcessSample {
            pid: rng.u64() as u32,
            name: ["prosody", "a, \"b\"", "ü"][rng.below(3) as usize].to_owned(),
            cpu_ns: rng.u64(),
            rss_bytes: rng.u64(),
            written_bytes: rng.u64(),
            ..ProcessSample::default()
        };
        ProbeSample {
            at: Tick(rng.u64()),
            target: (0..rng.below(3)).map(|_| process(&mut rng)).collect(),
            generator: (0..rng.below(3)).map(|_| process(&mut rng)).collect(),
            host: HostSample {
                busy_ns: rng.u64(),
                load: rng.unit(),
                calibration_ns: rng.u64(),
                ..HostSample::default()
            },
        }
    }

    #[test]
    fn readings_survive_a_round_trip() {
        let header = Header::parse(HEAD.trim_end()).expect("ours");
        for seed in 0..200 {
            let sample = random(seed);
            let rows = ProbeWriter::default().rows(&sample);
            let mut reader = ProbeReader::default();
            let mut got = None;
            for row in rows.lines() {
                assert_eq!(got, None, "seed {seed}");
                got = reader.row(&header, row).expect("ours");
            }
            assert_eq!(got, Some(sample), "seed {seed}");
        }
    }

    #[test]
    fn the_percentage_is_of_one_core_since_the_reading_before() {
        let mut writer = ProbeWriter::default();
        let reading = |ms, cpu_ms: u64| ProbeSample {
            at: Tick::from_millis(ms),
            target: vec![ProcessSample {
                pid: 1,
                cpu_ns: cpu_ms * 1_000_000,
                ..Default::default()
            }],
            ..ProbeSample::default()
        };
        let percent = |rows: String| rows.split(',').nth(4).map(str::to_owned);
        assert_eq!(percent(writer.rows(&reading(1_000, 50))).as_deref(), Some(""));
        assert_eq!(percent(writer.rows(&reading(1_200, 260))).as_deref(), Some("105.0"));
        assert_eq!(
            percent(writer.rows(&reading(1_400, 10))).as_deref(),
            Some(""),
            "another process"
        );
    }
}
