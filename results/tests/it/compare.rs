//! Comparisons of runs that are there: what is said of a side beside its figures.

use crate::fixture;
use crate::folder::Folder;
use results::compare::{Question, compare};
use results::experiment::Trial;
use results::summary::Usage;

#[test]
fn a_side_whose_target_was_starved_is_told() {
    let folder = Folder::new("starved");
    let summary = fixture::write(folder.path()).unwrap().summary;
    let trial = |waited_s| {
        let usage = summary.target_usage.clone().unwrap();
        let target_usage = Some(Usage { run_queue_s: waited_s, ..usage });
        let summary = results::Summary { target_usage, ..summary.clone() };
        Trial { dir: folder.path().to_owned(), summary, ..Trial::default() }
    };
    let question = Question { base: "old".into(), candidate: "new".into(), ..Question::default() };
    let (fed, starved) = ([trial(1.0)], [trial(1.0), trial(54.7)]);
    let (comparison, drawn) = compare(&question, &fed, &starved).unwrap();
    assert!(comparison.base.starved.is_empty());
    let told = &comparison.candidate.starved;
    assert_eq!(told.len(), 1, "{told:?}");
    let words = "the target was starved: it waited 54.7 s for a processor for 54.7 s it ran";
    assert!(told[0].ends_with(words), "{told:?}");
    assert_eq!(comparison.candidate.runs, 2, "it is told, and used");
    let line = drawn.markdown.lines().find(|line| line.contains(words));
    assert!(line.is_some_and(|line| line.contains("new: ")), "{}", drawn.markdown);
}
