//! What the server tells about itself, line by line: made on the event loop, written by a thread of
//! its own, so that nobody waits for whoever does not read it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::Write;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::{LOG_FIELD_BYTES_MAX, LOG_LINES_MAX, LOG_LINES_PER_SECOND};

/// How long the end of the server waits for its last lines to be written.
const FAREWELL: Duration = Duration::from_secs(1);

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogForm {
    /// Not at all.
    Off,
    /// For people.
    Text,
    /// For programs: an object in each line.
    Json,
}

impl LogForm {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            LogForm::Off => "off",
            LogForm::Text => "text",
            LogForm::Json => "json",
        }
    }
}

impl FromStr for LogForm {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [LogForm::Off, LogForm::Text, LogForm::Json];
        let found = all.into_iter().find(|form| form.word() == word);
        found.ok_or_else(|| format!("a log is off, text or json, not {word:?}"))
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Info,
    Warn,
    Error,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

/// The value of a field.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Number(u64),
}

/// A field of a line: its name and value. Passwords, tokens and texts of messages are none.
pub(crate) type Field<'a> = (&'static str, Value<'a>);

/// Where lines go. One that is off costs a comparison.
pub(crate) struct Journal {
    form: LogForm,
    /// The time of the lines to come, Unix milliseconds.
    pub(crate) now_ms: u64,
    gates: BTreeMap<&'static str, Gate>,
    shared: Option<Arc<Shared>>,
}

/// How many lines of one kind were written within a second, and how many were not.
#[derive(Debug, Default)]
struct Gate {
    second: u64,
    written: u32,
    kept_back: u64,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Lines that found the queue full.
    dropped: AtomicU64,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<String>,
    is_writing: bool,
    is_closed: bool,
}

impl Journal {
    /// One that writes nothing.
    pub(crate) fn off() -> Journal {
        Journal { form: LogForm::Off, now_ms: 0, gates: BTreeMap::new(), shared: None }
    }

    /// One that writes to `sink`, from a thread of its own.
    pub(crate) fn new(
        form: LogForm,
        sink: impl Write + Send + 'static,
        now_ms: u64,
    ) -> std::io::Result<Journal> {
        if form == LogForm::Off {
            return Ok(Journal::off());
        }
        let shared = Arc::new(Shared::default());
        let reader = shared.clone();
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || reader.write_all(sink))?;
        Ok(Journal { form, now_ms, gates: BTreeMap::new(), shared: Some(shared) })
    }

    /// Tells of an event; beyond [`LOG_LINES_PER_SECOND`] of a kind they are counted only.
    pub(crate) fn note(&mut self, level: Level, event: &'static str, fields: &[Field<'_>]) {
        if self.form == LogForm::Off {
            return;
        }
        let second = self.now_ms / 1_000;
        let gate = self.gates.entry(event).or_default();
        if gate.second != second {
            let kept_back = std::mem::take(gate).kept_back;
            gate.second = second;
            self.tell_kept_back(event, kept_back);
        }
        let Some(gate) = self.gates.get_mut(event) else { return };
        if gate.written >= LOG_LINES_PER_SECOND {
            gate.kept_back += 1;
            return;
        }
        gate.written += 1;
        self.put(level, event, fields);
    }

    /// Tells of an event and where it comes from.
    pub(crate) fn note_of(
        &mut self,
        level: Level,
        event: &'static str,
        address: Option<IpAddr>,
        fields: &[Field<'_>],
    ) {
        if self.form == LogForm::Off {
            return;
        }
        let address = address.map_or_else(String::new, |address| address.to_string());
        let own = [("address", Value::Text(&address))];
        let own = own.into_iter().filter(|_| !address.is_empty());
        let fields: Vec<Field<'_>> = fields.iter().copied().chain(own).collect();
        self.note(level, event, &fields);
    }

    /// Tells that somebody does not read and is cut off.
    pub(crate) fn cut_off(
        &mut self,
        name: Option<&str>,
        address: Option<IpAddr>,
        cause: &'static str,
    ) {
        let fields = [("cause", Value::Text(cause)), ("name", Value::Text(name.unwrap_or("")))];
        self.note_of(Level::Warn, "slow_consumer", address, &fields);
    }

    /// Tells how many lines were kept back, where the second they came in is over.
    pub(crate) fn tidy(&mut self) {
        let second = self.now_ms / 1_000;
        self.tell_of(|gate| gate.second != second);
    }

    /// Tells how many lines were kept back until now.
    pub(crate) fn tell_all(&mut self) {
        self.tell_of(|_| true);
    }

    fn tell_of(&mut self, is_over: impl Fn(&Gate) -> bool) {
        let over = self.gates.iter_mut().filter(|(_, gate)| gate.kept_back > 0 && is_over(gate));
        let over: Vec<(&'static str, u64)> =
            over.map(|(event, gate)| (*event, std::mem::take(&mut gate.kept_back))).collect();
        for (event, kept_back) in over {
            self.tell_kept_back(event, kept_back);
        }
    }

    fn tell_kept_back(&self, event: &'static str, count: u64) {
        if count > 0 {
            let fields = [("of", Value::Text(event)), ("count", Value::Number(count))];
            self.put(Level::Warn, "more", &fields);
        }
    }

    fn put(&self, level: Level, event: &'static str, fields: &[Field<'_>]) {
        let Some(shared) = &self.shared else { return };
        let line = match self.form {
            LogForm::Json => json_line(self.now_ms, level, event, fields),
            _ => text_line(self.now_ms, level, event, fields),
        };
        let mut queue = shared.lock();
        if queue.lines.len() >= LOG_LINES_MAX {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.lines.push_back(line);
        shared.changed.notify_all();
    }

    /// Lines that were lost because whoever reads them is too slow.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.as_ref().map_or(0, |shared| shared.dropped.load(Ordering::Relaxed))
    }
}

impl Drop for Journal {
    /// Waits until the last lines are written, but not for ever.
    fn drop(&mut self) {
        self.tell_all();
        let Some(shared) = self.shared.take() else { return };
        let mut queue = shared.lock();
        queue.is_closed = true;
        shared.changed.notify_all();
        let is_busy = |queue: &mut Queue| queue.is_writing || !queue.lines.is_empty();
        drop(shared.changed.wait_timeout_while(queue, FAREWELL, is_busy));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes until the journal is closed and everything is written.
    fn write_all(&self, mut sink: impl Write) {
        loop {
            let mut queue = self.lock();
            queue.is_writing = false;
            self.changed.notify_all();
            while queue.lines.is_empty() && !queue.is_closed {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            if queue.lines.is_empty() {
                return;
            }
            queue.is_writing = true;
            let text: String = queue.lines.drain(..).collect();
            drop(queue);
            let _ = sink.write_all(text.as_bytes()); // there is nobody else to tell
            let _ = sink.flush();
        }
    }
}

fn json_line(now_ms: u64, level: Level, event: &str, fields: &[Field<'_>]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (time, level) = (time_of(now_ms), level.word());
    let mut line = format!(r#"{{"time":"{time}","level":"{level}","event":"{event}""#);
    for (name, value) in fields {
        let _ = match value {
            Value::Text(text) => write!(line, r#","{name}":{}"#, quoted(cut(text))),
            Value::Number(number) => write!(line, r#","{name}":{number}"#),
        };
    }
    line.push_str("}\n");
    line
}

fn text_line(now_ms: u64, level: Level, event: &str, fields: &[Field<'_>]) -> String {
    // What others chose must not look like fields or lines of ours.
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:[]".contains(&byte) || byte >= 0x80;
    let mut line = format!("{} {} {event}", time_of(now_ms), level.word());
    for (name, value) in fields {
        let _ = match value {
            Value::Text(text) => match cut(text) {
                text if !text.is_empty() && text.bytes().all(is_plain) => {
                    write!(line, " {name}={}", text.escape_debug())
                }
                text => write!(line, " {name}={text:?}"),
            },
            Value::Number(number) => write!(line, " {name}={number}"),
        };
    }
    line.push('\n');
    line
}

/// The beginning of a text, whole characters.
fn cut(text: &str) -> &str {
    let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() <= LOG_FIELD_BYTES_MAX;
    let last = text.char_indices().take_while(fits).last();
    &text[..last.map_or(0, |(at, letter)| at + letter.len_utf8())]
}

/// A time as RFC 3339 has it, in UTC. Days are counted in eras of 400 years that begin in March, so
/// that the leap day is the last of its year.
fn time_of(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1_000, unix_ms % 1_000);
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A place to write to, which tells what was written once it may go on.
    pub(crate) struct Sink {
        written: Sender<String>,
        go: Option<Receiver<()>>,
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if let Some(go) = &self.go {
                let _ = go.recv();
            }
            let _ = self.written.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    pub(crate) fn sink() -> (Sink, Receiver<String>) {
        let (written, heard) = channel();
        (Sink { written, go: None }, heard)
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        let rows = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_251_199_001, "2024-02-29T23:59:59.001Z"),
            (1_735_689_600_000, "2025-01-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (unix_ms, expect) in rows {
            assert_eq!(time_of(unix_ms), expect);
        }
    }

    #[test]
    fn a_line_is_one_line_whatever_a_name_holds() {
        let fields = [
            ("name", Value::Text("a b=\"c\"\n\u{1b}[31m\u{202e}")),
            ("address", Value::Text("::1")),
            ("count", Value::Number(3)),
        ];
        let text = text_line(0, Level::Warn, "login_failed", &fields);
        let expect = "1970-01-01T00:00:00.000Z warn login_failed \
                      name=\"a b=\\\"c\\\"\\n\\u{1b}[31m\\u{202e}\" address=::1 count=3\n";
        assert_eq!(text, expect);
        let line = json_line(0, Level::Warn, "login_failed", &fields);
        assert_eq!(line.matches('\n').count(), 1);
        let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed["name"], "a b=\"c\"\n\u{1b}[31m\u{202e}");
        assert_eq!((&parsed["level"], &parsed["count"]), (&"warn".into(), &3.into()));
        let long = "\u{e4}".repeat(LOG_FIELD_BYTES_MAX);
        assert!(text_line(0, Level::Info, "x", &[("name", Value::Text(&long))]).len() < 400);
    }

    #[test]
    fn a_storm_of_one_kind_is_counted_and_hides_no_other() {
        let (sink, heard) = sink();
        let mut journal = Journal::new(LogForm::Json, sink, 5_000).unwrap();
        for _ in 0..1_000 {
            journal.note(Level::Warn, "storm", &[]);
        }
        journal.note(Level::Info, "rare", &[]);
        journal.tidy(); // the second is not over
        journal.now_ms = 6_000;
        journal.tidy();
        journal.tidy();
        journal.note(Level::Warn, "storm", &[]);
        drop(journal);
        let text: String = heard.iter().collect();
        let count = |event: &str| text.matches(&format!("\"event\":\"{event}\"")).count();
        let most = LOG_LINES_PER_SECOND as usize;
        assert_eq!((count("storm"), count("rare"), count("more")), (most + 1, 1, 1), "{text}");
        assert!(text.contains(&format!("\"of\":\"storm\",\"count\":{}", 1_000 - most)), "{text}");
    }

    #[test]
    fn nobody_waits_for_a_reader_that_does_not_read() {
        let (written, heard) = channel();
        let (go, may_go) = channel();
        let sink = Sink { written, go: Some(may_go) };
        let mut journal = Journal::new(LogForm::Text, sink, 0).unwrap();
        let lines = LOG_LINES_MAX as u64 * 4;
        for number in 0..lines {
            journal.now_ms = number * 1_000; // each in a second of its own
            journal.note(Level::Info, "tick", &[("number", Value::Number(number))]);
        }
        let dropped = journal.dropped();
        // The reader holds at most as many as the queue does.
        assert!(dropped >= lines / 2, "{dropped}");
        (0..3).for_each(|_| go.send(()).unwrap());
        drop(journal);
        let text: String = heard.iter().collect();
        assert_eq!(text.lines().count() as u64, lines - dropped);
        assert!(text.contains("number=0\n"));
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let (written, _heard) = channel();
        let (_go, may_go) = channel();
        let sink = Sink { written, go: Some(may_go) };
        let mut journal = Journal::new(LogForm::Text, sink, 0).unwrap();
        journal.note(Level::Info, "last", &[]);
        drop(journal); // a hang is what this finds
    }

    #[test]
    fn what_is_off_starts_nothing() {
        let (sink, heard) = sink();
        let mut journal = Journal::new(LogForm::Off, sink, 0).unwrap();
        journal.note(Level::Error, "any", &[]);
        drop(journal);
        assert_eq!(heard.iter().count(), 0);
        assert_eq!("json".parse(), Ok(LogForm::Json));
        assert!("yaml".parse::<LogForm>().unwrap_err().contains("off, text or json"));
    }
}
