//! The final table for the terminal, at most eighty columns wide.

use super::escape::plain;
use super::format::{bytes, count, duration, percent, short};
use super::table::{judged_value, outcome};
use super::words::{verdict_sentence, verdict_word};
use crate::summary::{Outcome, Summary, Usage};
use std::fmt::Write as _;
use std::path::Path;

/// Columns of a terminal.
const COLUMNS: usize = 80;

/// The summary as a text for people; `dir` is the run directory, where the report is.
pub fn summary_text(summary: &Summary, dir: &Path) -> String {
    let mut text = Text::default();
    head(&mut text, summary);
    asked(&mut text, summary);
    measures(&mut text, summary);
    ledger(&mut text, summary);
    target(&mut text, summary);
    errors(&mut text, summary);
    health(&mut text, summary);
    thresholds(&mut text, summary);
    let report = dir.join(crate::run::REPORT_HTML);
    text.blank();
    text.line(&format!("{}: {}", verdict_word(summary).to_uppercase(), verdict_sentence(summary)));
    // A path is for copying, so it is never cut.
    let _ = writeln!(text.0, "report: {}", plain(&report.display().to_string()));
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    /// Words, wrapped at spaces; further lines are indented.
    fn line(&mut self, words: &str) {
        let indent = words.len() - words.trim_start().len();
        let mut line = " ".repeat(indent);
        let mut empty = true;
        for word in words.split_whitespace() {
            let width = line.chars().count() + word.chars().count() + usize::from(!empty);
            if !empty && width > COLUMNS {
                self.raw(&line);
                line = " ".repeat(indent + 2);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.raw(&line);
    }

    /// A line that is laid out already; what is too long is cut.
    fn raw(&mut self, line: &str) {
        let line = line.trim_end();
        if line.chars().count() > COLUMNS {
            self.0.extend(line.chars().take(COLUMNS - 1));
            self.0.push('…');
        } else {
            self.0.push_str(line);
        }
        self.0.push('\n');
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }

    /// A heading with a rule to the edge.
    fn head(&mut self, words: &str) {
        self.blank();
        let rule = "─".repeat(COLUMNS.saturating_sub(words.chars().count() + 1));
        self.raw(&format!("{words} {rule}"));
    }
}

/// Cuts or pads to a width.
fn fit(text: &str, width: usize) -> String {
    let text = plain(text);
    match text.chars().count() > width {
        true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => format!("{text:<width$}"),
    }
}

fn head(text: &mut Text, s: &Summary) {
    text.raw(&"━".repeat(COLUMNS));
    let version = if s.target_version.is_empty() {
        String::new()
    } else {
        format!(" ({})", s.target_version)
    };
    text.line(&plain(&format!("{} on {}{version}, {}", s.name, s.target, s.protocol)));
    if !s.about.is_empty() {
        text.line(&plain(&s.about));
    }
    text.line(&plain(&format!(
        "{} · {} · seed {} · scale {}",
        s.started,
        duration(s.seconds * 1e3),
        s.seed,
        s.scale
    )));
}

fn asked(text: &mut Text, s: &Summary) {
    text.head("asked and achieved");
    let p = &s.people;
    text.line(&format!(
        "  people      {} asked · {} set out · {} in · {} finished · {} gave up",
        count(p.asked),
        count(p.arrived),
        count(p.entered),
        count(p.finished),
        count(p.gave_up)
    ));
    text.line(&format!(
        "  messages    {} due · {} sent · {} late",
        count(s.sends.due),
        count(s.sends.sent),
        count(s.sends.late)
    ));
    text.line(&format!(
        "  deliveries  {} · at most {}/s · at most {} people online",
        count(s.ledger.received),
        count(s.rates.deliveries_per_s_max),
        count(p.online_max)
    ));
}

fn measures(text: &mut Text, s: &Summary) {
    if s.measures.is_empty() {
        return;
    }
    text.head("measure            done  failed       p50       p90       p99       max");
    for row in &s.measures {
        let l = &row.latency;
        let cell = |ms: f64| if l.count > 0 { duration(ms) } else { "–".to_owned() };
        text.raw(&format!(
            "  {:<12} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9}",
            row.name,
            count(row.done),
            count(row.failed),
            cell(l.p50_ms),
            cell(l.p90_ms),
            cell(l.p99_ms),
            cell(l.max_ms)
        ));
    }
}

fn ledger(text: &mut Text, s: &Summary) {
    let l = &s.ledger;
    text.head("ledger");
    text.line(&format!(
        "  messages: {} owed · {} received · {} lost · {} duplicate · {} late · {} of {} out of \
         order · {} unexpected",
        count(l.owed),
        count(l.received),
        count(l.lost),
        count(l.duplicate),
        count(l.late),
        count(l.misordered),
        count(l.audited),
        count(l.unexpected)
    ));
    if l.announcements_owed > 0 || l.announcements_received > 0 {
        text.line(&format!(
            "  announcements: {} owed · {} received · {} lost · {} duplicate",
            count(l.announcements_owed),
            count(l.announcements_received),
            count(l.announcements_lost),
            count(l.announcements_duplicate)
        ));
    }
    if l.presences > 0 || l.presences_max > 0 {
        text.line(&format!(
            "  comings and goings: {} received, {} to {} expected",
            count(l.presences),
            count(l.presences_min),
            count(l.presences_max)
        ));
    }
}

fn target(text: &mut Text, s: &Summary) {
    let Some(whole) = &s.target_usage else { return };
    text.head("target, CPU of one core                     mean      max     time    memory");
    let mut row = |name: &str, usage: &Usage| {
        text.raw(&format!(
            "  {} {:>8} {:>8} {:>8} {:>9}",
            fit(name, 37),
            percent(usage.cpu_mean_percent),
            percent(usage.cpu_max_percent),
            format!("{} s", short(usage.cpu_s)),
            bytes(usage.rss_peak_bytes)
        ));
    };
    row("whole run", whole);
    for phase in &s.phases {
        if let Some(usage) = &phase.target {
            row(&phase.name, usage);
        }
        for stage in &phase.stages {
            let name = format!("  {} {}", stage.mark, stage.name);
            if let Some(usage) = &stage.target {
                row(&name, usage);
            }
        }
    }
}

fn errors(text: &mut Text, s: &Summary) {
    /// More kinds than this are in the report.
    const SHOWN: usize = 6;
    if s.errors.is_empty() {
        return;
    }
    text.head("errors");
    for row in s.errors.iter().take(SHOWN) {
        text.raw(&plain(&format!(
            "  {:>7}  {} {}: {}",
            count(row.count),
            row.measure,
            row.class,
            row.example
        )));
    }
    if s.errors.len() > SHOWN {
        text.line(&format!("  and {} other kinds, see the report", s.errors.len() - SHOWN));
    }
}

fn health(text: &mut Text, s: &Summary) {
    text.head(&format!("generator: {}", s.health.level.name()));
    for finding in &s.health.findings {
        text.line(&plain(&format!(
            "  {}: {}. {}",
            finding.level.name(),
            finding.what,
            finding.advice
        )));
    }
    let lag = &s.lag;
    let cpu = s.generator_usage.as_ref().map_or(String::new(), |usage| {
        format!(
            " · CPU {} mean, {} max",
            percent(usage.cpu_mean_percent),
            percent(usage.cpu_max_percent)
        )
    });
    text.line(&format!(
        "  timers late: {} p99, {} max{cpu}",
        duration(lag.p99_ms),
        duration(lag.max_ms)
    ));
}

fn thresholds(text: &mut Text, s: &Summary) {
    if s.thresholds.is_empty() {
        return;
    }
    text.head("thresholds");
    for judged in &s.thresholds {
        let sign = match judged.outcome {
            Outcome::Kept => '✓',
            Outcome::Broken => '✗',
            Outcome::Unmeasured => '?',
        };
        text.raw(&format!(
            "  {sign} {} {:>12}  {}",
            fit(&judged.text, 44),
            judged_value(judged),
            outcome(judged)
        ));
    }
}
