//! A capacity in sentences.

use crate::capacity::continuous::{End, Settled};
use crate::capacity::{Capacity, Ended, Limit};
use crate::report::format::{count, duration, percent};

/// A time as people say it: `30 min` rather than `30.0 min`.
fn time(seconds: f64) -> String {
    whole(duration(seconds * 1e3))
}

/// Without zeros behind the point.
fn whole(text: String) -> String {
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// The answer in one sentence or two.
pub(super) fn sentence(capacity: &Capacity) -> String {
    let why = limit_words(&capacity.limit);
    let low = people(capacity.question.people.0);
    match (capacity.people, capacity.failed) {
        (Some(n), Some(failed)) => match &capacity.limit {
            Limit::Generator(_) => format!("At least {}: {why}.", people(n)),
            _ => format!("{} hold, {} do not: {why}.", people(n), count(failed.into())),
        },
        (Some(n), None) => match capacity.kept {
            Some(more) => format!(
                "At least {}; {} were kept too, but there was no {} to hold them.",
                people(n),
                count(more.into()),
                what_ran_out(capacity.ended)
            ),
            None if n >= capacity.question.people.1 => {
                format!("At least {}, the most that were asked for. Ask for more.", people(n))
            }
            None => format!("At least {}: {why}.", people(n)),
        },
        (None, _) if capacity.kept.is_some() => {
            let kept = people(capacity.kept.unwrap_or(0));
            let what = what_ran_out(capacity.ended);
            format!("No answer: {kept} were kept, but there was no {what} to hold them.")
        }
        (None, _) if capacity.trials == 0 => "No answer: nothing was tried.".to_owned(),
        (None, Some(failed)) if failed <= capacity.question.people.0 => match &capacity.limit {
            Limit::Generator(_) => format!("Not even {low} could be measured: {why}."),
            _ => format!("Not even {low} hold: {why}. Ask for fewer."),
        },
        (None, _) => format!("No number of people held every time it was tried: {why}."),
    }
}

/// So many people, in words.
pub(super) fn people(n: u32) -> String {
    match n {
        1 => "1 person".to_owned(),
        n => format!("{} people", count(n.into())),
    }
}

fn what_ran_out(ended: Ended) -> &'static str {
    match ended {
        Ended::Time => "time left",
        _ => "trial left",
    }
}

fn limit_words(limit: &Limit) -> String {
    match limit {
        Limit::Criterion(texts) => match texts.as_slice() {
            [] => "a criterion is broken".to_owned(),
            [text] => format!("“{text}” is broken"),
            [text, others @ ..] => format!("“{text}” is broken, and {} more", others.len()),
        },
        Limit::Collapse(words) => format!("the target collapses ({words})"),
        Limit::Generator(words) => {
            format!("beyond that throng itself, or its machine, was the limit ({words})")
        }
        Limit::Range => "nothing was ever broken".to_owned(),
    }
}

/// Facts beside the sentence, each with its label.
pub(super) fn facts(capacity: &Capacity) -> Vec<(&'static str, String)> {
    let question = &capacity.question;
    let mut facts = Vec::new();
    if let (Some(n), Some(failed)) = (capacity.people, capacity.failed) {
        let wide = f64::from(failed - n) / f64::from(n.max(1)) * 100.0;
        let held = times(capacity.held);
        facts.push((
            "interval",
            format!(
                "between {} (held {held}) and {} (never kept): {} wide",
                count(n.into()),
                count(failed.into()),
                percent(wide)
            ),
        ));
    }
    if let Limit::Criterion(texts) = &capacity.limit {
        facts.push(("limit", texts.join("; ")));
    }
    if !capacity.mixed.is_empty() {
        let levels: Vec<String> = capacity.mixed.iter().map(|&n| count(n.into())).collect();
        let words = "kept in one trial and not in another: part of the limit is chance";
        facts.push(("mixed", format!("{} – {words}", levels.join(", "))));
    }
    if capacity.does_not_recover {
        let words = "levels that were kept before an overload were not kept after it: the target \
                     does not recover, or is not reset between trials";
        facts.push(("warning", words.to_owned()));
    }
    let (low, high) = question.people;
    let trials = match capacity.trials {
        1 => "1 trial".to_owned(),
        n => format!("{n} trials"),
    };
    facts.push((
        "found in",
        format!(
            "{trials} and {}, between {} and {} people, to {}{}",
            time(capacity.seconds),
            count(low.into()),
            count(high.into()),
            whole(percent(question.resolution * 100.0)),
            match capacity.ended {
                Ended::Answered => "",
                Ended::Trials => "; cut short: no more trials were allowed",
                Ended::Time => "; cut short: no more time was allowed",
            }
        ),
    ));
    facts
}

fn times(n: u32) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// What a moving population found out, in a sentence or two.
pub(super) fn settled(settled: &Settled) -> String {
    let minutes = time(settled.settings.steady_s);
    let supported = people(settled.supported.unwrap_or(0));
    match (settled.ended, settled.supported) {
        (End::Steady, Some(_)) if settled.is_generator_limited() => {
            format!("At least {supported}: throng itself, or its machine, was the limit.")
        }
        (End::Steady, Some(_)) => {
            format!("About {supported}: the mean of the last {minutes}, not a level that held.")
        }
        (End::Steady, None) if settled.range.0 > settled.settings.people.0 => {
            "No answer: the number settled while something was broken all the time.".to_owned()
        }
        (End::Steady, None) => {
            let low = people(settled.settings.people.0);
            format!("Not even {low} hold: something was broken all the time.")
        }
        (End::Most, _) => {
            format!("At least {supported}, the most that were asked for. Ask for more.")
        }
        (End::Time, _) => "No answer: the number of people did not settle in time.".to_owned(),
        (End::Interrupted, _) => "No answer: the run ended before the number settled.".to_owned(),
    }
}

/// Facts beside that sentence.
pub(super) fn settled_facts(settled: &Settled) -> Vec<(&'static str, String)> {
    let (low, high) = settled.range;
    let mut facts = vec![(
        "range",
        format!(
            "{} to {} people; something was broken {} of that time",
            count(low.into()),
            count(high.into()),
            percent(settled.broken_share * 100.0)
        ),
    )];
    if !settled.alerts.is_empty() {
        let alerts = settled.alerts.iter();
        let words: Vec<String> =
            alerts.map(|(text, times)| format!("{text} ({})", count((*times).into()))).collect();
        facts.push(("limit", words.join("; ")));
    }
    let settings = &settled.settings;
    facts.push((
        "found in",
        format!(
            "{}: {} people more or {} fewer every {}, after an alert not before {}",
            time(settled.seconds),
            settings.increase,
            settings.decrease,
            time(settings.every_s),
            time(settings.rest_s),
        ),
    ));
    facts
}
