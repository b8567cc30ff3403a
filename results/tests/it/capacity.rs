//! How a capacity is told and drawn.

use crate::golden::golden;
use results::capacity::continuous::{Act, Governor, Settings, Sight};
use results::capacity::{About, Capacity, Level, Next, Question, next};
use results::summary::{Judged, Outcome};

fn judged(text: &str, unit: &str, value: f64, bound: f64) -> Judged {
    let outcome = if value <= bound { Outcome::Kept } else { Outcome::Broken };
    Judged { text: text.into(), value: Some(value), bound, unit: unit.into(), outcome }
}

/// A target whose latency rises as queues do, and which begins to lose messages.
fn criteria(people: u32, trial: usize) -> Vec<Judged> {
    // Trials differ by some percent, in turn.
    let noise = [1.0, 0.97, 1.04, 0.99, 1.02][trial % 5];
    let load = f64::from(people) / 1_100.0 * noise;
    let waiting = if load < 0.98 { 8.0 / (1.0 - load) } else { 400.0 * load * load * load };
    vec![
        judged("delivery p99: < 200ms", "ms", waiting, 200.0),
        judged("target cpu: < 95%", "%", (load * 92.0).min(100.0), 95.0),
        judged("lost: 0", "", if load > 1.3 { (load * 400.0).round() } else { 0.0 }, 0.0),
        judged("say errors: < 1%", "%", (load - 1.5).max(0.0), 1.0),
    ]
}

fn search(question: &Question, level: impl Fn(u32, usize) -> Level) -> Capacity {
    let mut done: Vec<Level> = Vec::new();
    loop {
        match next(question, &done) {
            Next::Answer(found) => return *found,
            Next::Try { people, is_hold, .. } => {
                let seconds = if is_hold { 180.0 } else { 60.0 };
                done.push(Level { is_hold, seconds, ..level(people, done.len()) });
            }
        }
    }
}

fn level(people: u32, trial: usize) -> Level {
    Level { people, criteria: criteria(people, trial), ..Level::default() }
}

#[test]
fn an_answer_is_drawn_as_it_was() {
    let found = search(&Question::about(10, 20_000), level);
    let drawn = found.draw(&About::default()).unwrap();
    let text = drawn.text(None);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    golden("capacity.txt", &text);
    golden("capacity.md", &drawn.markdown);
    let (charts, pages): (Vec<_>, Vec<_>) =
        drawn.files.iter().partition(|(name, _)| name.ends_with(".svg"));
    assert_eq!(charts.len(), 4);
    golden("capacity.svg", &charts[0].1);
    let page = pages.iter().find(|(name, _)| name == "report.html").unwrap();
    assert!(charts.iter().all(|(_, svg)| page.1.contains(svg.as_str())));
    let again = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Capacity>(&again).unwrap(), found, "it can be kept");
}

/// Every kind of answer has its sentence.
#[test]
fn sentences_say_what_is_true() {
    let sentence = |question: &Question, level: &dyn Fn(u32, usize) -> Level| {
        search(question, level).draw(&About::default()).unwrap().sentence()
    };
    let steady = |bound: u32| {
        move |people: u32, _: usize| {
            let value = f64::from(people) / f64::from(bound) * 100.0;
            Level {
                people,
                criteria: vec![judged("lag: < 100ms", "ms", value, 100.0)],
                ..Level::default()
            }
        }
    };
    let question = Question::about(10, 1_000);
    let check = |question: &Question, level: &dyn Fn(u32, usize) -> Level, want: &str| {
        assert_eq!(sentence(question, level), want);
    };
    check(&question, &steady(500), "494 people hold, 516 do not: “lag: < 100ms” is broken.");
    check(
        &question,
        &steady(5),
        "Not even 10 people hold: “lag: < 100ms” is broken. Ask for fewer.",
    );
    check(
        &question,
        &steady(5_000),
        "At least 1,000 people, the most that were asked for. Ask for more.",
    );
    let weak = |people: u32, _: usize| Level {
        generator_limit: (people > 300).then(|| "out of CPU".to_owned()),
        people,
        ..Level::default()
    };
    check(
        &question,
        &weak,
        "At least 293 people: beyond that throng itself, or its machine, was the limit (out of CPU).",
    );
    let fragile = |people: u32, _: usize| Level {
        collapse: (people > 300).then(|| "killed by signal 9".to_owned()),
        people,
        ..Level::default()
    };
    check(
        &question,
        &fragile,
        "293 people hold, 306 do not: the target collapses (killed by signal 9).",
    );
    let short = Question { trials_max: 5, ..question.clone() };
    check(
        &short,
        &steady(500),
        "No answer: 160 people were kept, but there was no trial left to hold them.",
    );
    let short = Question { seconds_max: 0.0, ..question };
    check(&short, &steady(500), "No answer: nothing was tried.");
}

#[test]
fn a_settled_population_is_drawn_as_it_was() {
    let mut governor = Governor::new(Settings::brisk(0, 500));
    let mut people = 0;
    for second in 0..900 {
        let see = || Sight {
            present: u64::from(people),
            criteria: criteria(people * 4, second),
            generator_limit: None,
        };
        match governor.decide(second as f64, see) {
            Act::People(wanted) => people = wanted,
            Act::Done => break,
        }
    }
    let settled = governor.settled();
    let drawn = settled.draw(&About::default()).unwrap();
    let text = drawn.text(None);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    golden("settled.txt", &text);
    assert_eq!(drawn.markdown.matches("](charts/capacity-").count(), 4);
}

/// Words of targets and scenarios mean nothing where they are shown.
#[test]
fn foreign_words_are_harmless() {
    let hostile = "</svg><script>|*x*\u{1b}[31m\n";
    let level = |people: u32, _: usize| Level {
        people,
        criteria: vec![judged(hostile, hostile, 2.0, f64::from(people < 50))],
        collapse: (people > 100).then(|| hostile.to_owned()),
        ..Level::default()
    };
    let found = search(&Question::about(10, 1_000), level);
    let drawn = found.draw(&About::default()).unwrap();
    let page = &drawn.files.iter().find(|(name, _)| name == "report.html").unwrap().1;
    assert!(!drawn.text(None).contains('\u{1b}') && !page.contains("<script>|"));
    assert!(!drawn.markdown.contains("<script>"));
}
