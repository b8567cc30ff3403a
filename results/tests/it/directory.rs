//! The run directory: what is written is read, wherever the writing stopped.

use crate::folder::Folder;
use model::{
    Edge, FaultClass, HostSample, Interval, Limits, Measure, MetricKind, MetricSample, Plan,
    ProbeSample, Probes, ProcessSample, Record, Rng, Series, TargetRef, Tick, What,
};
use results::run::{self, Buckets, Manifest};
use results::{Error, Run, RunWriter, Status};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The files that grow while a run goes.
const GROWING: [&str; 6] =
    [run::INTERVALS, run::SERIES, run::FAULTS, run::PROBES, run::METRICS, run::EVENTS];

pub(crate) fn plan() -> Plan {
    Plan {
        name: "tiny".to_owned(),
        about: "A tiny run".to_owned(),
        seed: 7,
        scale: 1.0,
        target: TargetRef { name: "yardstick".to_owned(), options: BTreeMap::new() },
        protocol: "yardstick".to_owned(),
        rooms: vec!["live".to_owned()],
        lists: Vec::new(),
        crowds: Vec::new(),
        phases: Vec::new(),
        limits: Limits::default(),
        thresholds: Vec::new(),
        probes: Probes::default(),
        script: None,
    }
}

fn random_interval(rng: &mut Rng, second: u32) -> Interval {
    let mut interval = Interval::new(second);
    for measure in [Measure::Join, Measure::Delivery] {
        for _ in 0..rng.below(6) {
            let stats = interval.measure(measure);
            stats.asked += 1;
            stats.done += 1;
            stats.latency.record(rng.below(1 << 34));
            stats.service.record(rng.below(1 << 30));
        }
        if rng.below(2) == 0 {
            interval.fault(measure, FaultClass::ALL[rng.below(15) as usize]);
        }
    }
    interval.counters.sends = rng.below(1_000);
    interval.counters.drops = rng.u64() >> 1;
    interval.gauges.online = rng.below(1_000);
    interval.lag.record(rng.below(1 << 24));
    interval
}

fn random_probe(rng: &mut Rng, at: Tick) -> ProbeSample {
    let process = |name: &str, rng: &mut Rng| ProcessSample {
        pid: 1 + rng.below(3) as u32,
        name: name.to_owned(),
        cpu_ns: rng.below(1 << 40),
        rss_bytes: rng.below(1 << 30),
        ..ProcessSample::default()
    };
    ProbeSample {
        at,
        target: vec![process("a, \"server\"", rng)],
        generator: vec![process("throng", rng)],
        host: HostSample { busy_ns: rng.u64(), load: rng.unit(), ..HostSample::default() },
    }
}

fn random_metrics(rng: &mut Rng, at: Tick) -> Vec<MetricSample> {
    let kinds = [MetricKind::Counter, MetricKind::Gauge, MetricKind::Untyped];
    let sample = |(i, &kind): (usize, &MetricKind)| {
        let name = format!("m{i}");
        let labels = vec![("path".to_owned(), "/a,\"b\"".to_owned())];
        let series = Arc::new(Series { source: "target".to_owned(), name, labels, kind });
        MetricSample { at, series, value: rng.unit() * 1e9 }
    };
    kinds.iter().enumerate().map(sample).collect()
}

/// What was written into a small run.
struct Written {
    intervals: Vec<Interval>,
    probes: Vec<ProbeSample>,
    metrics: Vec<MetricSample>,
    events: Vec<Record>,
}

fn write(dir: &Path, seed: u64) -> (Written, RunWriter) {
    let mut rng = Rng::new(seed, 0);
    let manifest = Manifest { name: "tiny".to_owned(), seed, ..Manifest::default() };
    let mut writer = RunWriter::create(dir, manifest, "about: a tiny run\n", &plan()).unwrap();
    let mut written = Written {
        intervals: Vec::new(),
        probes: Vec::new(),
        metrics: Vec::new(),
        events: Vec::new(),
    };
    for second in 0..4 {
        let interval = random_interval(&mut rng, second);
        writer.interval(&interval).unwrap();
        written.intervals.push(interval);
        let probe = random_probe(&mut rng, Tick::from_millis(u64::from(second) * 1_000 + 3));
        writer.probe(&probe).unwrap();
        written.probes.push(probe);
        let metrics = random_metrics(&mut rng, Tick::from_secs(second.into()));
        writer.metrics(&metrics).unwrap();
        written.metrics.extend(metrics);
        let what = What::Phase { name: format!("p\n{second}"), edge: Edge::End, overdue: true };
        let record = Record { at: Tick(rng.u64() >> 1), what };
        writer.record(&record).unwrap();
        written.events.push(record);
    }
    (written, writer)
}

/// The run holds the first of what was written, and nothing else.
fn check_prefix(run: &Run, written: &Written, context: &str) {
    assert_eq!(run.probes, written.probes[..run.probes.len()], "{context}");
    assert_eq!(run.metrics, written.metrics[..run.metrics.len()], "{context}");
    assert_eq!(run.events, written.events[..run.events.len()], "{context}");
    for (second, interval) in run.seconds.iter().zip(&written.intervals) {
        assert_eq!(second.second, interval.second, "{context}");
        assert_eq!(second.counters, interval.counters, "{context}");
        assert_eq!(second.gauges, interval.gauges, "{context}");
        for (measure, stats) in &second.measures {
            let wrote = &interval.measures[measure];
            let counts = (stats.asked, stats.done, stats.failed);
            assert_eq!(counts, (wrote.asked, wrote.done, wrote.failed), "{context}");
        }
    }
}

#[test]
fn what_is_written_is_read() {
    for seed in 0..20 {
        let folder = Folder::new("round-trip");
        let (written, writer) = write(folder.path(), seed);
        writer.finish(Status::Finished, "", Tick::from_secs(4)).unwrap();
        let run = Run::load(folder.path()).unwrap();
        let context = format!("seed {seed}");
        assert_eq!((run.probes.len(), run.events.len(), run.seconds.len()), (4, 4, 4), "{context}");
        check_prefix(&run, &written, &context);
        assert_eq!(run.plan, Some(plan()));
        assert_eq!(run.scenario, "about: a tiny run\n");
        assert!(!run.cut_short() && run.notes.is_empty());
        for (second, interval) in run.seconds.iter().zip(&written.intervals) {
            assert_eq!(second.faults, interval.faults, "{context}");
            assert_eq!(second.lag, Buckets::from(&interval.lag), "{context}");
            for (measure, wrote) in &interval.measures {
                let read = &second.measures[measure];
                assert_eq!(read.latency, Buckets::from(&wrote.latency), "{context}");
                assert_eq!(read.service, Buckets::from(&wrote.service), "{context}");
            }
        }
    }
}

#[test]
fn the_total_is_the_merge_of_all_intervals() {
    let folder = Folder::new("total");
    let (written, _writer) = write(folder.path(), 5);
    let (mut want, mut got) = (Interval::default(), Interval::default());
    written.intervals.iter().for_each(|interval| want.merge(interval));
    Run::load(folder.path()).unwrap().seconds.iter().for_each(|second| second.add_to(&mut got));
    assert_eq!((got.counters, got.gauges, &got.faults), (want.counters, want.gauges, &want.faults));
    for (measure, stats) in &want.measures {
        let mine = &got.measures[measure];
        assert_eq!((mine.asked, mine.done, mine.failed), (stats.asked, stats.done, stats.failed));
        for q in [0.0, 0.5, 0.99, 1.0] {
            assert_eq!(mine.latency.quantile(q), stats.latency.quantile(q), "{measure:?} {q}");
        }
    }
}

/// `kill -9` may stop the writing of any file behind any byte.
#[test]
fn a_run_cut_off_anywhere_can_be_read() {
    let folder = Folder::new("cut");
    let (written, writer) = write(folder.path(), 11);
    drop(writer);
    for name in GROWING {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let context = format!("{name} cut to {length} of {} bytes", whole.len());
            let run = Run::load(folder.path()).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(run.cut_short());
            check_prefix(&run, &written, &context);
            let torn = length > 0 && whole[length - 1] != b'\n';
            assert_eq!(!run.notes.is_empty(), torn, "{context}");
        }
    }
}

/// The documents are replaced in one step, so a part of one is damage and said to be so.
#[test]
fn damaged_documents_are_refused_with_their_name() {
    let folder = Folder::new("damage");
    drop(write(folder.path(), 12));
    for name in [run::MANIFEST, run::PLAN] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() - 1 {
            fs::write(&path, &whole[..length]).unwrap();
            let error = Run::load(folder.path()).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|e| e.contains(name)), "{name} {length} {error:?}");
        }
        fs::write(&path, &whole).unwrap();
    }
}

/// Any byte of any file changed: a run or an error, never a panic or a hang.
#[test]
fn hostile_files_are_refused_or_read_but_never_panic() {
    let folder = Folder::new("hostile");
    drop(write(folder.path(), 13));
    for name in GROWING.into_iter().chain([run::MANIFEST, run::PLAN, run::SCENARIO]) {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        for seed in 0..400 {
            let mut rng = Rng::new(seed, 9);
            let mut bytes = whole.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = [b',', b'\n', b'9', b'"', b'-', 0, 0xff, rng.u64() as u8]
                    [rng.below(8) as usize];
            }
            fs::write(&path, &bytes).unwrap();
            match Run::load(folder.path()) {
                Ok(run) if seed % 8 > 0 => drop(results::Analysis::of(&run)),
                Ok(_) => drop(results::draw(folder.path()).unwrap()),
                Err(error) => assert!(error.to_string().contains(name), "{seed}: {error}"),
            }
        }
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn errors_name_file_and_line() {
    let folder = Folder::new("lines");
    drop(write(folder.path(), 14));
    for (name, bad, want) in [
        (run::SERIES, "1,2\n", "series.csv, line 6: 2 cells instead of"),
        (run::FAULTS, "x,join,closed,1\n", "second: “x” is not a number"),
        (run::INTERVALS, "Tag=join,1,1,1,AAAA\n", "histogram is too short"),
        (run::PROBES, "nonsense\n", "line 14: 1 cells instead of"),
        (run::METRICS, "1.0,a,b,,gauge,1\n", "line 14: at_s: “1.0” is not a time"),
        (run::EVENTS, "{\"at\":1}\n", "events.jsonl, line 5: missing field `event`"),
    ] {
        let path = folder.path().join(name);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{bad}")).unwrap();
        let error = Run::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains(want) && error.contains(name), "{name}: {error}");
        fs::write(&path, &whole).unwrap();
    }
    let nothing = Folder::new("nothing");
    let error = Run::load(nothing.path()).unwrap_err().to_string();
    assert!(error.contains("not a run directory"), "{error}");
}

#[test]
fn a_run_directory_is_never_overwritten() {
    let folder = Folder::new("twice");
    drop(write(folder.path(), 1));
    let again = RunWriter::create(folder.path(), Manifest::default(), "", &plan());
    assert!(matches!(again.err(), Some(Error::Exists { .. })));
}

#[test]
fn a_newer_format_is_refused() {
    let folder = Folder::new("newer");
    drop(write(folder.path(), 1));
    let path = folder.path().join(run::MANIFEST);
    let text = fs::read_to_string(&path).unwrap().replace("\"format\": 1", "\"format\": 99");
    fs::write(&path, text).unwrap();
    let error = Run::load(folder.path()).unwrap_err().to_string();
    assert!(error.contains("format 99 is newer"), "{error}");
}
