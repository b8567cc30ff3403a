//! `intervals.hlog`: the HdrHistogram interval log, version 1.3, one tagged line per measure and
//! second. Written by the library; read by hand, because a file may be hostile and because a
//! library's histogram of every second of an hour would fill the memory.

use super::buckets::Buckets;
use super::csv::{clip, number};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use model::{Interval, Measure};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::time::Duration;

/// Largest histogram accepted, bytes after inflation: four times the largest we can write.
const INFLATED_BYTES_MAX: u64 = 1 << 20;
/// First bytes of a deflated histogram (HdrHistogram, encoding version 2).
const COOKIE_DEFLATED: u32 = 0x1c84_9314;
/// First bytes of a plain histogram (HdrHistogram, encoding version 2).
const COOKIE_PLAIN: u32 = 0x1c84_9313;
/// Nanoseconds in the unit of the log's maxima (milliseconds, as the format's own tools do).
const MAX_DIVISOR: f64 = 1e6;
/// What follows a measure's name in the tag of its service time.
const SERVICE: &str = "/service";
/// The tag of the generator's lag.
const LAG: &str = "lag";

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// A measure's corrected latency.
    Latency(Measure),
    /// A measure's service time.
    Service(Measure),
    /// How late the generator's timers fired.
    Lag,
}

/// The head of the file. Time stamps of lines count from the run's epoch.
pub(crate) fn head(started_unix_ms: u64) -> String {
    let seconds = started_unix_ms as f64 / 1e3;
    let mut head =
        String::from("#[Written by throng; values in nanoseconds, maxima in milliseconds]\n");
    head += "#[Histogram log format version 1.3]\n";
    for what in ["StartTime", "BaseTime"] {
        let _ = writeln!(head, "#[{what}: {seconds:.3} (seconds since epoch)]");
    }
    head += "#[MaxValueDivisor: 1000000.000]\n";
    head += "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
    head
}

/// Writes lines, reusing the serializer's buffers.
#[derive(Default)]
pub(crate) struct HlogWriter {
    serializer: V2DeflateSerializer,
}

impl HlogWriter {
    /// The lines of one second.
    pub(crate) fn lines(&mut self, interval: &Interval) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut log = IntervalLogWriterBuilder::new()
            .with_max_value_divisor(MAX_DIVISOR)
            .begin_log_with(&mut bytes, &mut self.serializer)?;
        let start = Duration::from_secs(u64::from(interval.second));
        let mut line = |histogram: Option<&Histogram<u64>>, tag: &str| -> io::Result<()> {
            let Some(histogram) = histogram else { return Ok(()) };
            log.write_histogram(histogram, start, Duration::from_secs(1), Tag::new(tag))
                .map_err(|error| io::Error::other(error.to_string()))
        };
        for (measure, stats) in &interval.measures {
            line(stats.latency.as_hdr(), measure.name())?;
            line(stats.service.as_hdr(), &format!("{}{SERVICE}", measure.name()))?;
        }
        line(interval.lag.as_hdr(), LAG)?;
        // The builder repeats the divisor's comment, which the head has already.
        let first = bytes.iter().position(|&b| b == b'\n').map_or(0, |at| at + 1);
        bytes.drain(..first);
        Ok(bytes)
    }
}

/// Parses a line: second, subject, histogram. `None` for comments, for the legend, and for tags
/// that this version does not know.
pub(crate) fn parse(line: &str) -> Result<Option<(u32, About, Buckets)>, String> {
    if line.is_empty() || line.starts_with('#') || line.starts_with('"') {
        return Ok(None);
    }
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(tagged) => tagged.split_once(',').ok_or("nothing after the tag")?,
        None => return Ok(None),
    };
    let Some(about) = about(tag) else { return Ok(None) };
    let mut cells = rest.splitn(4, ',');
    let mut cell = |name| cells.next().ok_or_else(|| format!("{name} is missing"));
    let start: f64 = number("start", cell("start")?)?;
    cell("length")?;
    cell("maximum")?;
    let encoded = cell("histogram")?;
    if !(0.0..f64::from(u32::MAX)).contains(&start) {
        return Err(format!("start: {start} is not a second of a run"));
    }
    Ok(Some((start as u32, about, decode(encoded)?)))
}

fn about(tag: &str) -> Option<About> {
    if tag == LAG {
        return Some(About::Lag);
    }
    match tag.strip_suffix(SERVICE) {
        Some(name) => Measure::from_name(name).map(About::Service),
        None => Measure::from_name(tag).map(About::Latency),
    }
}

/// Base64 of a deflated histogram of encoding version 2.
fn decode(encoded: &str) -> Result<Buckets, String> {
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|error| format!("histogram “{}…”: {error}", clip(encoded)))?;
    let mut input = bytes.as_slice();
    if u32(&mut input)? != COOKIE_DEFLATED {
        return Err("histogram is not of encoding version 2, deflated".to_owned());
    }
    let length = u32(&mut input)? as usize;
    let deflated = input.get(..length).ok_or("histogram is shorter than it says")?;
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(deflated)
        .take(INFLATED_BYTES_MAX + 1)
        .read_to_end(&mut plain)
        .map_err(|error| format!("histogram does not inflate: {error}"))?;
    if plain.len() as u64 > INFLATED_BYTES_MAX {
        return Err(format!("histogram inflates to more than {INFLATED_BYTES_MAX} bytes"));
    }
    decode_plain(&plain)
}

/// The shape of a histogram: which values an index of its counts stands for.
struct Shape {
    /// log₂ of the lowest value told apart.
    unit: u32,
    /// log₂ of half the sub-buckets of a bucket.
    half: u32,
}

impl Shape {
    fn new(digits: u32, lowest: u64) -> Result<Shape, String> {
        if digits > 5 || lowest == 0 {
            return Err(format!("histogram of {digits} digits from {lowest} is impossible"));
        }
        let sub_buckets = (2 * 10u64.pow(digits)).next_power_of_two();
        Ok(Shape { unit: lowest.ilog2(), half: sub_buckets.ilog2() - 1 })
    }

    /// The highest value counted at `index`.
    fn highest(&self, index: u64) -> Option<u64> {
        let half = 1u64 << self.half;
        let (bucket, sub) = match index >> self.half {
            0 => (0, index),
            above => (u32::try_from(above - 1).ok()?, (index & (half - 1)) + half),
        };
        let shift = self.unit.checked_add(bucket).filter(|&shift| shift < 64)?;
        let low = sub.checked_mul(1u64.checked_shl(shift)?)?;
        low.checked_add((1u64 << shift) - 1)
    }
}

/// Counts as ZigZag LEB128 numbers, a negative one standing for that many zeros.
fn decode_plain(mut input: &[u8]) -> Result<Buckets, String> {
    if u32(&mut input)? != COOKIE_PLAIN {
        return Err("histogram is not of encoding version 2".to_owned());
    }
    let length = u32(&mut input)? as usize;
    if u32(&mut input)? != 0 {
        return Err("shifted histograms are not supported".to_owned());
    }
    let digits = u32(&mut input)?;
    let shape = Shape::new(digits, u64(&mut input)?)?;
    let _highest = u64(&mut input)?;
    let _ratio = u64(&mut input)?;
    let mut counts = input.get(..length).ok_or("histogram is shorter than it says")?;
    let (mut index, mut buckets) = (0u64, Vec::new());
    while !counts.is_empty() {
        let number = zigzag(&mut counts)?;
        let step = match number {
            ..0 => number.unsigned_abs(),
            0 => 1,
            count => {
                let highest = shape.highest(index).ok_or("histogram has too many counts")?;
                buckets.push((highest, count.unsigned_abs()));
                1
            }
        };
        index = index.checked_add(step).ok_or("histogram has too many counts")?;
    }
    Ok(Buckets::ascending(buckets))
}

/// A number of 1 to 9 bytes, seven bits each but for the ninth.
fn zigzag(input: &mut &[u8]) -> Result<i64, String> {
    let mut value = 0u64;
    for position in 0..9 {
        let (&byte, rest) = input.split_first().ok_or("histogram ends within a number")?;
        *input = rest;
        let last = position == 8;
        value |= u64::from(if last { byte } else { byte & 0x7f }) << (7 * position);
        if last || byte & 0x80 == 0 {
            break;
        }
    }
    Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

fn u32(input: &mut &[u8]) -> Result<u32, String> {
    let (bytes, rest) = input.split_first_chunk().ok_or("histogram is too short")?;
    *input = rest;
    Ok(u32::from_be_bytes(*bytes))
}

fn u64(input: &mut &[u8]) -> Result<u64, String> {
    let (bytes, rest) = input.split_first_chunk().ok_or("histogram is too short")?;
    *input = rest;
    Ok(u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use hdrhistogram::serialization::{Deserializer, V2Serializer};
    use model::Rng;

    fn random(seed: u64) -> Interval {
        let mut rng = Rng::new(seed, 1);
        let mut interval = Interval::new(rng.below(5000) as u32);
        for _ in 0..rng.below(2_000) {
            let bits = 5 + rng.below(40);
            let stats = interval.measure(Measure::Delivery);
            stats.latency.record(rng.below(1 << bits));
            stats.service.record_n(rng.below(1 << 30), rng.below(1 << 40));
            interval.lag.record(rng.below(1 << 22));
        }
        interval
    }

    #[test]
    fn what_is_written_is_read() {
        for seed in 0..20 {
            let interval = random(seed);
            let bytes = HlogWriter::default().lines(&interval).expect("memory does not fail");
            let mut seen = 0;
            for line in String::from_utf8(bytes).expect("text").lines() {
                let (second, about, buckets) = parse(line).expect("valid").expect("known");
                let stats = &interval.measures[&Measure::Delivery];
                let want = match about {
                    About::Latency(_) => &stats.latency,
                    About::Service(_) => &stats.service,
                    About::Lag => &interval.lag,
                };
                assert_eq!(
                    (second, buckets),
                    (interval.second, Buckets::from(want)),
                    "seed {seed}"
                );
                seen += 1;
            }
            assert_eq!(seen, if interval.lag.count() == 0 { 0 } else { 3 }, "seed {seed}");
        }
    }

    /// The standard reader finds in the file what we put there.
    #[test]
    fn the_standard_reader_reads_it() {
        let interval = random(7);
        let mut file = head(1_700_000_000_123).into_bytes();
        file.extend(HlogWriter::default().lines(&interval).expect("memory does not fail"));
        let text = String::from_utf8(file).expect("text");
        // The legend line is for spreadsheets; the Rust reader, unlike the Java one, lacks it.
        let text: String =
            text.lines().filter(|l| !l.starts_with('"')).map(|l| format!("{l}\n")).collect();
        let mut tags = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            let LogEntry::Interval(line) = entry.expect("valid") else { continue };
            let bytes = STANDARD.decode(line.encoded_histogram()).expect("base64");
            let histogram: Histogram<u64> =
                Deserializer::new().deserialize(&mut bytes.as_slice()).expect("histogram");
            assert_eq!(line.start_timestamp().as_secs(), u64::from(interval.second));
            tags.push((line.tag().map(|t| t.as_str().to_owned()), histogram.len(), line.max()));
        }
        let stats = &interval.measures[&Measure::Delivery];
        let want = [
            ("delivery", &stats.latency),
            ("delivery/service", &stats.service),
            ("lag", &interval.lag),
        ];
        for ((tag, count, max_ms), (name, histo)) in tags.iter().zip(want) {
            assert_eq!((tag.as_deref(), *count), (Some(name), histo.count()));
            assert!((max_ms - histo.max() as f64 / 1e6).abs() < 0.001, "{tag:?} {max_ms}");
        }
        assert_eq!(tags.len(), 3);
    }

    #[test]
    fn every_index_stands_for_the_value_the_library_says() {
        for (low, high, digits) in [(1_000, model::HIGHEST_NS, 3), (1, 1 << 40, 2), (7, 1 << 50, 4)]
        {
            let mut histogram =
                Histogram::<u64>::new_with_bounds(low, high, digits).expect("bounds");
            let mut rng = Rng::new(low, 0);
            for _ in 0..1_000 {
                histogram.saturating_record(rng.below(high));
            }
            let mut plain = Vec::new();
            use hdrhistogram::serialization::Serializer as _;
            V2Serializer::new().serialize(&histogram, &mut plain).expect("memory does not fail");
            let want: Vec<_> = histogram
                .iter_recorded()
                .map(|b| (b.value_iterated_to(), b.count_at_value()))
                .collect();
            assert_eq!(decode_plain(&plain), Ok(Buckets::ascending(want)));
        }
    }

    /// Whatever bytes stand there: an answer, never a panic.
    #[test]
    fn hostile_histograms_are_refused() {
        for line in [
            "Tag=delivery",
            "Tag=delivery,1",
            "Tag=delivery,x,1,1,AAAA",
            "Tag=delivery,NaN,1,1,",
            "Tag=lag,-1,1,1,HISTFAAA",
            "Tag=lag,1,1,1,????",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert_eq!(parse("Tag=unheard-of,1,1,1,AAAA"), Ok(None));
        let mut plain = Vec::new();
        let interval = random(3);
        use hdrhistogram::serialization::Serializer as _;
        let histogram = interval.lag.as_hdr().expect("recorded");
        V2Serializer::new().serialize(histogram, &mut plain).expect("memory does not fail");
        for seed in 0..3_000 {
            let mut rng = Rng::new(seed, 2);
            let mut bytes = plain.clone();
            for _ in 0..=rng.below(6) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.below(256) as u8;
            }
            bytes.truncate(rng.below(bytes.len() as u64 * 2) as usize);
            if let Ok(buckets) = decode_plain(&bytes) {
                buckets.add_to(&mut model::Histo::default());
            }
        }
    }
}
