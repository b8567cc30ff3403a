//! A plan in words: what `throng plan` prints, at most 80 columns wide where words allow it.

use super::estimate::{self, Estimate, Flow};
use super::words;
use crate::{Crowd, Limits, MetricsAt, PhaseKind, Plan, Probes, RunPhase, Until};
use std::fmt::Write;

const COLUMNS: usize = 80;
/// Rooms named one by one.
const ROOMS_SHOWN: usize = 8;

/// What `throng plan` prints: everything resolved, and what to expect of it.
pub fn describe(plan: &Plan) -> String {
    let estimate = estimate::estimate(plan);
    let mut out = String::new();
    head(&mut out, plan);
    out.push_str("\nCrowds\n");
    for (i, crowd) in plan.crowds.iter().enumerate() {
        let runs = plan.runs().filter(|run| run.crowd as usize == i).count();
        describe_crowd(&mut out, plan, crowd, runs);
    }
    timeline(&mut out, plan, &estimate);
    load(&mut out, plan, &estimate);
    if !plan.thresholds.is_empty() {
        out.push_str("\nThresholds\n");
        for threshold in &plan.thresholds {
            wrap(&mut out, "  ", &threshold.text);
        }
    }
    probes(&mut out, &plan.probes);
    out.push_str("\nLimits\n");
    wrap(&mut out, "  ", &limits(&plan.limits));
    out
}

fn probes(out: &mut String, probes: &Probes) {
    if !probes.prometheus.is_empty() || !probes.promql.is_empty() {
        out.push_str("\nProbes\n");
    }
    for server in &probes.prometheus {
        let at = match &server.at {
            MetricsAt::Target => "the target's metrics",
            MetricsAt::Url(url) => url,
        };
        let keep = match server.keep.is_empty() {
            true => "all".to_owned(),
            false => server.keep.join(", "),
        };
        wrap(out, "  ", &format!("{at}, every {}: {keep}", words::time(server.every_ns)));
    }
    for server in &probes.promql {
        wrap(out, "  ", &format!("{}, every {}:", server.url, words::time(server.every_ns)));
        for (name, query) in &server.queries {
            wrap(out, "    ", &format!("{name} = {query}"));
        }
    }
}

fn head(out: &mut String, plan: &Plan) {
    wrap(out, "", &plan.name);
    if !plan.about.is_empty() {
        wrap(out, "", &plan.about);
    }
    out.push('\n');
    wrap(out, "Target    ", &format!("{} ({})", plan.target.name, plan.protocol));
    for (name, value) in &plan.target.options {
        // A map that was written in the scenario is to be seen there.
        let shown = if value.starts_with('{') { "the map of the scenario" } else { value };
        wrap(out, "          ", &format!("{name} = {shown}"));
    }
    let (rooms, lists) = plan.rooms.split_at(plan.room_count() as usize);
    wrap(out, "Rooms     ", &some(rooms, "rooms"));
    if !lists.is_empty() {
        wrap(out, "Lists     ", &some(lists, "lists"));
    }
    let scale = match plan.scale {
        1.0 => String::new(),
        scale => format!(", sizes scaled by {}", words::trim(scale)),
    };
    wrap(out, "Seed      ", &format!("{}{scale}", plan.seed));
}

/// The first names and the last one.
fn some(names: &[String], what: &str) -> String {
    let mut text = names.iter().take(ROOMS_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names {
        [] => text = "none".into(),
        [.., last] if names.len() > ROOMS_SHOWN => {
            let _ = write!(text, ", … {last} ({} {what})", words::count(names.len() as f64));
        }
        _ => {}
    }
    text
}

fn describe_crowd(out: &mut String, plan: &Plan, crowd: &Crowd, runs: usize) {
    let size = words::count(crowd.size.into());
    let times = match runs {
        0 => "; never runs".into(),
        1 => String::new(),
        runs => format!("; runs {runs} times"),
    };
    wrap(out, "  ", &format!("{}: {size} people{times}", crowd.name));
    if !crowd.features.is_empty() {
        wrap(out, "    features  ", &crowd.features.join(", "));
    }
    wrap(out, "    accounts  ", &words::accounts(&crowd.accounts));
    let stages = words::stages(&crowd.program, &plan.rooms);
    let width = stages.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(8);
    for (name, steps) in stages {
        wrap(out, &format!("    {name:<width$}  "), &steps);
    }
}

fn timeline(out: &mut String, plan: &Plan, estimate: &Estimate) {
    out.push_str("\nTimeline (as on a target that answers at once)\n");
    let names = plan.phases.iter().map(|phase| phase.name.chars().count());
    let width = names.max().unwrap_or(0).min(24);
    for (phase, (start, stages)) in plan.phases.iter().zip(&estimate.phases) {
        let label = format!("{:>9}  {:<width$}  ", seconds(*start), phase.name);
        let indent = " ".repeat(label.chars().count());
        match &phase.kind {
            PhaseKind::Rest { ns } => wrap(out, &label, &format!("rest {}", words::time(*ns))),
            PhaseKind::Mark => wrap(out, &label, "mark"),
            PhaseKind::Run(run) => {
                wrap(out, &label, &run_words(plan, run));
                let crowd = &plan.crowds[run.crowd as usize];
                let stages = crowd.program.stages.iter().zip(stages);
                let words: Vec<String> = stages
                    .filter_map(|(name, first)| {
                        let mark = run.marks.get(name).map(|mark| format!(" ({mark})"));
                        let at = seconds((*first)?);
                        Some(glued(&format!("{name}{} from {at}", mark.unwrap_or_default())))
                    })
                    .collect();
                wrap(out, &indent, &words.join(" · "));
            }
        }
        for profile in &phase.profiles {
            wrap(out, &indent, &words::profile(profile));
        }
    }
    let end = match estimate.ends_s {
        Some(end) => format!("{:>9}  everybody is done", seconds(end)),
        None if plan.crowds.iter().any(estimate::is_endless) => {
            format!("{:>9}  the run goes on until it is interrupted", "…")
        }
        None => format!("{:>9}  everybody is done: too far off to be worked out", "…"),
    };
    let _ = writeln!(out, "{end}");
}

fn run_words(plan: &Plan, run: &RunPhase) -> String {
    let crowd = &plan.crowds[run.crowd as usize];
    let left_out: Vec<&str> = crowd
        .features
        .iter()
        .filter(|feature| !run.features.contains(feature))
        .map(String::as_str)
        .collect();
    let without = match left_out.as_slice() {
        [] => String::new(),
        list => format!(" without {}", list.join(", ")),
    };
    if let Some(hold) = &run.hold {
        let step = |(people, ns): &(u32, u64)| {
            format!("{} for {}", words::count((*people).into()), words::time(*ns))
        };
        let steps: Vec<String> = hold.steps.iter().map(step).collect();
        let speed = words::pacer(&run.pacer);
        return format!(
            "hold {} {}{without}, at most {}; they come and go {speed}",
            crowd.name,
            steps.join(", then "),
            words::count(run.count.into()),
        );
    }
    let until = match run.until {
        Until::Arrived => "everybody has set out",
        Until::In => "everybody is in",
        Until::Done => "everybody is done",
    };
    format!(
        "{} {} {}{without}; until {until}, at most {} after the last",
        words::count(run.count.into()),
        crowd.name,
        words::pacer(&run.pacer),
        words::time(run.deadline_ns),
    )
}

fn load(out: &mut String, plan: &Plan, estimate: &Estimate) {
    let about = if estimate.is_rough { "about " } else { "" };
    let _ = writeln!(out, "\nLoad{}", if estimate.is_rough { " (roughly)" } else { "" });
    let people = words::count(plan.people().into());
    let online = words::count(estimate.online_max);
    wrap(out, "  people      ", &format!("{people}, at most {about}{online} at the same time"));
    let peak = plan.runs().map(|run| run.pacer.peak_rate()).fold(0.0, f64::max);
    let peak = match peak.is_finite() {
        true => format!("up to {}/s", words::trim(peak)),
        false => "a whole crowd at once".into(),
    };
    wrap(out, "  arrivals    ", &peak);
    let flow = |flow: &Flow| {
        let (peak, total) = (words::count(flow.peak), words::count(flow.total));
        match estimate.ends_s {
            _ if flow.total == 0.0 => "none".into(),
            Some(_) => format!("up to {about}{peak}/s, {about}{total} in all"),
            None => format!("up to {about}{peak}/s"),
        }
    };
    wrap(out, "  sends       ", &flow(&estimate.sends));
    wrap(
        out,
        "  deliveries  ",
        &format!("{}, to others than the sender", flow(&estimate.deliveries)),
    );
    let sightings = format!("{}, if the target announces joins", flow(&estimate.sightings));
    wrap(out, "  sightings   ", &sightings);
}

fn limits(limits: &Limits) -> String {
    let times = [
        ("connect", limits.connect_ns),
        ("handshake", limits.handshake_ns),
        ("login", limits.login_ns),
        ("request", limits.request_ns),
        ("late", limits.late_ns),
        ("settle", limits.settle_ns),
    ];
    let mut words: Vec<String> =
        times.iter().map(|(name, ns)| glued(&format!("{name} {}", words::time(*ns)))).collect();
    words.push(glued(&format!("frame {}", bytes(limits.frame_bytes_max))));
    words.push(glued(&format!("backlog {}", bytes(limits.backlog_bytes_max))));
    words.push(glued(&format!("audit 1 in {}", limits.audit_one_in)));
    words.join(" · ")
}

fn bytes(bytes: u64) -> String {
    match bytes {
        b if b.is_multiple_of(1 << 20) => format!("{}MiB", b >> 20),
        b if b.is_multiple_of(1 << 10) => format!("{}KiB", b >> 10),
        b => format!("{b}B"),
    }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.1} s")
}

/// A space that `wrap` does not break at and prints as a plain one.
const GLUE: char = '\u{a0}';

/// The text as one word, not to be broken.
fn glued(text: &str) -> String {
    text.replace(' ', &GLUE.to_string())
}

/// Writes prose behind a label, its further lines indented alike.
fn wrap(out: &mut String, label: &str, prose: &str) {
    let indent = label.chars().count();
    let mut line = label.to_owned();
    let mut column = indent;
    for (i, word) in prose.split([' ', '\n']).filter(|word| !word.is_empty()).enumerate() {
        let width = word.chars().count();
        if i > 0 && column + 1 + width > COLUMNS {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
            column = indent;
        } else if i > 0 {
            line.push(' ');
            column += 1;
        }
        line.extend(word.chars().map(|c| if c == GLUE { ' ' } else { c }));
        column += width;
    }
    let _ = writeln!(out, "{}", line.trim_end());
}
