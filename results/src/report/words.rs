//! Sentences that every report says alike.

use super::format::count;
use crate::summary::{Level, Outcome, Summary, Verdict};

/// The verdict in a word or two.
pub(crate) fn verdict_word(summary: &Summary) -> &'static str {
    match summary.verdict {
        Verdict::Kept if summary.thresholds.is_empty() => "measured",
        Verdict::Kept => "kept",
        Verdict::Broken => "broken",
        Verdict::CouldNotMeasure => "could not measure",
    }
}

/// The verdict in a sentence, with its reason.
pub(crate) fn verdict_sentence(summary: &Summary) -> String {
    let of = |outcome| summary.thresholds.iter().filter(move |t| t.outcome == outcome);
    let all = summary.thresholds.len();
    let mut sentence = match summary.verdict {
        Verdict::Kept if all == 0 => "the run has no thresholds to keep.".to_owned(),
        Verdict::Kept => format!("all {all} thresholds were kept."),
        Verdict::Broken => {
            let texts: Vec<&str> = of(Outcome::Broken).map(|t| t.text.as_str()).collect();
            format!("{} of {all} thresholds broken: {}.", texts.len(), texts.join("; "))
        }
        Verdict::CouldNotMeasure if summary.health.level == Level::Invalid => {
            let worst = summary.health.findings.first();
            format!("{}.", worst.map_or("the generator was not fit", |f| f.what.as_str()))
        }
        Verdict::CouldNotMeasure => {
            let texts: Vec<&str> = of(Outcome::Unmeasured).map(|t| t.text.as_str()).collect();
            format!("nothing was measured for {}.", texts.join("; "))
        }
    };
    if summary.health.level == Level::Strained {
        sentence += " The generator was strained: see its findings before quoting a number.";
    }
    super::escape::plain(&sentence)
}

/// What was asked and achieved, in a sentence.
pub(crate) fn achieved_sentence(summary: &Summary) -> String {
    let (people, sends) = (&summary.people, &summary.sends);
    format!(
        "{} of {} people got in, {} of {} messages were sent, {} of {} owed deliveries arrived.",
        count(people.entered),
        count(people.asked),
        count(sends.sent),
        count(sends.due),
        count(summary.ledger.owed.saturating_sub(summary.ledger.lost)),
        count(summary.ledger.owed)
    )
}
