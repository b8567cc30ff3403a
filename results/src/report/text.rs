//! The final table for the terminal, at most eighty columns wide.

use super::escape::plain;
use super::format::{bytes, count, duration, percent, short};
use super::table::{Table, judged_value, outcome};
use super::words::{verdict_sentence, verdict_word};
use crate::summary::{Outcome, Summary, Usage};
use std::fmt::Write as _;
use std::path::Path;

/// Columns of a terminal.
const COLUMNS: usize = 80;
/// Spaces between columns of a table.
const GAP: usize = 2;
/// Least width of a table's first column.
const FIRST_MIN: usize = 12;

/// The summary as a text for people; `dir` is the run directory, where the report is.
pub fn summary_text(summary: &Summary, dir: &Path) -> String {
    let mut text = Text::default();
    head(&mut text, summary);
    asked(&mut text, summary);
    measures(&mut text, summary);
    target(&mut text, summary);
    profiles(&mut text, summary);
    errors(&mut text, summary);
    health(&mut text, summary);
    thresholds(&mut text, summary);
    text.blank();
    text.line(&format!("{}: {}", verdict_word(summary).to_uppercase(), verdict_sentence(summary)));
    text.path("report", &dir.join(crate::run::REPORT_HTML));
    text.finish()
}

/// Text of at most eighty columns, as it grows.
#[derive(Default)]
pub(crate) struct Text(String);

impl Text {
    /// All of it.
    pub(crate) fn finish(self) -> String {
        self.0
    }

    /// A path is for copying, so it is never cut.
    pub(crate) fn path(&mut self, label: &str, path: &Path) {
        let _ = writeln!(self.0, "{label}: {}", plain(&path.display().to_string()));
    }

    /// A thick rule from edge to edge.
    pub(crate) fn rule(&mut self) {
        self.raw(&"━".repeat(COLUMNS));
    }

    /// A table: the first column is words and gets what the others leave. Where all columns are
    /// words the last one is wrapped.
    pub(crate) fn table(&mut self, table: &Table) {
        if table.words {
            return self.words_table(table);
        }
        let width = |column: usize| {
            let cells = table.rows.iter().map(|row| row.cells[column].chars().count());
            cells.chain([table.head[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
        let others: usize = widths[1..].iter().map(|width| width + GAP).sum();
        let first = widths[0].min(COLUMNS.saturating_sub(others).max(FIRST_MIN));
        let line = |cells: &[String], indent: &str| {
            let name = fit(&format!("{indent}{}", cells[0]), first);
            let figures = cells[1..].iter().zip(&widths[1..]);
            let pad = |(cell, width): (&String, &usize)| {
                " ".repeat(width + GAP - cell.chars().count()) + cell
            };
            name + &figures.map(pad).collect::<String>()
        };
        self.raw(&line(&table.head, ""));
        for row in &table.rows {
            self.raw(&line(&row.cells, if row.minor { "  " } else { "" }));
        }
    }

    fn words_table(&mut self, table: &Table) {
        let last = table.head.len() - 1;
        let width = |column: usize| {
            table.rows.iter().map(|row| row.cells[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..last).map(width).collect();
        let indent: usize = widths.iter().map(|width| width + GAP).sum();
        for row in &table.rows {
            let pad = |(cell, width): (&String, &usize)| fit(cell, width + GAP);
            let mut line: String = row.cells.iter().zip(&widths).map(pad).collect();
            for word in row.cells[last].split_whitespace() {
                if line.chars().count() + word.chars().count() > COLUMNS {
                    self.raw(&line);
                    line = " ".repeat(indent);
                }
                line = line + word + " ";
            }
            self.raw(&line);
        }
    }

    /// Words, wrapped at spaces; further lines are indented.
    pub(crate) fn line(&mut self, words: &str) {
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
    pub(crate) fn raw(&mut self, line: &str) {
        let line = line.trim_end();
        if line.chars().count() > COLUMNS {
            self.0.extend(line.chars().take(COLUMNS - 1));
            self.0.push('…');
        } else {
            self.0.push_str(line);
        }
        self.0.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.0.push('\n');
    }

    /// Facts behind a label, wrapped between facts.
    fn facts(&mut self, label: &str, facts: &[String]) {
        const INDENT: usize = 14;
        let mut line = format!("{:<INDENT$}", format!("  {label}"));
        for (i, fact) in facts.iter().enumerate() {
            let last = i + 1 == facts.len();
            let piece = if last { fact.clone() } else { format!("{fact} · ") };
            if line.chars().count() + piece.trim_end().chars().count() > COLUMNS {
                self.raw(&line);
                line = " ".repeat(INDENT);
            }
            line += &piece;
        }
        self.raw(&line);
    }

    /// A heading with a rule to the edge.
    pub(crate) fn head(&mut self, words: &str) {
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
    text.rule();
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
    let (p, l) = (&s.people, &s.ledger);
    text.facts(
        "people",
        &[
            format!("{} asked", count(p.asked)),
            format!("{} set out", count(p.arrived)),
            format!("{} in", count(p.entered)),
            format!("{} finished", count(p.finished)),
            format!("{} gave up", count(p.gave_up)),
        ],
    );
    text.facts(
        "messages",
        &[
            format!("{} due", count(s.sends.due)),
            format!("{} sent", count(s.sends.sent)),
            format!("{} late", count(s.sends.late)),
        ],
    );
    text.facts(
        "deliveries",
        &[
            format!("{} received", count(l.received)),
            format!("at most {}/s", count(s.rates.deliveries_per_s_max)),
            format!("at most {} people online", count(p.online_max)),
        ],
    );
    text.facts(
        "ledger",
        &[
            format!("{} owed", count(l.owed)),
            format!("{} lost", count(l.lost)),
            format!("{} duplicate", count(l.duplicate)),
            format!("{} late", count(l.late)),
            format!("{} of {} out of order", count(l.misordered), count(l.audited)),
            format!("{} unexpected", count(l.unexpected)),
        ],
    );
    if l.announcements_owed > 0 || l.announcements_received > 0 {
        text.facts(
            "announced",
            &[
                format!("{} owed", count(l.announcements_owed)),
                format!("{} received", count(l.announcements_received)),
                format!("{} lost", count(l.announcements_lost)),
                format!("{} duplicate", count(l.announcements_duplicate)),
            ],
        );
    }
    if l.presences > 0 || l.presences_max > 0 {
        text.facts(
            "presences",
            &[
                format!("{} received", count(l.presences)),
                format!("{} to {} expected", count(l.presences_min), count(l.presences_max)),
            ],
        );
    }
}

fn measures(text: &mut Text, s: &Summary) {
    if s.measures.is_empty() {
        return;
    }
    let mut row = |cells: [String; 7]| {
        let [name, done, failed, p50, p90, p99, max] = cells;
        text.raw(&format!("{name:<15}{done:>11}{failed:>10}{p50:>11}{p90:>11}{p99:>11}{max:>11}"));
    };
    row([""; 7].map(str::to_owned));
    row(["measure", "done", "failed", "p50", "p90", "p99", "max"].map(str::to_owned));
    row([
        "─".repeat(15),
        "─".repeat(11),
        "─".repeat(10),
        "─".repeat(11),
        "─".repeat(11),
        "─".repeat(11),
        "─".repeat(11),
    ]);
    for measure in &s.measures {
        let l = &measure.latency;
        let cell = |ms: f64| if l.count > 0 { duration(ms) } else { "–".to_owned() };
        row([
            format!("  {}", measure.name),
            count(measure.done),
            count(measure.failed),
            cell(l.p50_ms),
            cell(l.p90_ms),
            cell(l.p99_ms),
            cell(l.max_ms),
        ]);
    }
}

fn target(text: &mut Text, s: &Summary) {
    let Some(whole) = &s.target_usage else { return };
    text.blank();
    let mut row = |cells: [&str; 6]| {
        let [name, mean, max, time, waited, memory] = cells;
        let name = fit(name, 30);
        text.raw(&format!("{name}{mean:>10}{max:>10}{time:>10}{waited:>10}{memory:>10}"));
    };
    row(["target, CPU of one core", "mean", "max", "time", "waited", "memory"]);
    let rule = "─".repeat(10);
    row([&"─".repeat(30), &rule, &rule, &rule, &rule, &rule]);
    let mut usage_row = |name: &str, usage: &Usage| {
        row([
            name,
            &percent(usage.cpu_mean_percent),
            &percent(usage.cpu_max_percent),
            &format!("{} s", short(usage.cpu_s)),
            &format!("{} s", short(usage.run_queue_s)),
            &bytes(usage.rss_peak_bytes),
        ]);
    };
    usage_row("  whole run", whole);
    for phase in &s.phases {
        if let Some(usage) = &phase.target {
            usage_row(&format!("  {}", phase.name), usage);
        }
        for stage in &phase.stages {
            if let Some(usage) = &stage.target {
                usage_row(&format!("    {} {}", stage.mark, stage.name), usage);
            }
        }
    }
    let space = format!("{} of address space at most", bytes(whole.virtual_peak_bytes));
    text.facts("virtual", &[space]);
    if let Some(each) = &s.memory_per_person {
        let steady = each.steady_bytes.map(|steady| format!("{} steady", bytes(steady)));
        let facts = [format!("{} at the peak", bytes(each.peak_bytes))].into_iter().chain(steady);
        let rest = format!("above {} before anybody came", bytes(each.rest_bytes));
        text.facts("per person", &facts.chain([rest]).collect::<Vec<_>>());
    }
}

fn profiles(text: &mut Text, s: &Summary) {
    /// Profiles shown, and functions of each; the report has all.
    const SHOWN: (usize, usize) = (4, 5);
    for row in s.profiles.iter().take(SHOWN.0) {
        text.head(&plain(&format!("hottest in {}, {}", row.phase, row.profiler)));
        for hot in row.hottest.iter().take(SHOWN.1) {
            text.raw(&format!("  {:>7}  {}", percent(hot.self_percent), plain(&hot.function)));
        }
    }
    if s.profiles.len() > SHOWN.0 {
        text.line(&format!("  and {} other profiles, see the report", s.profiles.len() - SHOWN.0));
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
    let mut facts = vec![format!("{} p99, {} max", duration(lag.p99_ms), duration(lag.max_ms))];
    if let Some(usage) = &s.generator_usage {
        let (mean, max) = (percent(usage.cpu_mean_percent), percent(usage.cpu_max_percent));
        facts.push(format!("CPU {mean} mean, {max} max"));
        facts.push(format!("waited {} s", short(usage.run_queue_s)));
    }
    text.facts("timers late", &facts);
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
            "  {sign} {} {:>14}  {}",
            fit(&judged.text, 46),
            judged_value(judged),
            outcome(judged)
        ));
    }
}
