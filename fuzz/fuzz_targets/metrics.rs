//! The text of metrics: no panic, bounded findings, and labels that are written as they were read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::metric::exposition::{read, read_labels};
use model::{Selector, Series};

fuzz_target!(|text: &str| {
    let mut found = 0;
    let understood = read(
        text,
        |_| true,
        |sample| {
            found += 1;
            assert!(sample.value.is_finite());
            let series = Series { labels: sample.labels, ..Series::default() };
            assert_eq!(read_labels(&series.labels_text()), Some(series.labels));
        },
    );
    assert!(found <= understood.samples);
    assert!(understood.samples + understood.wrong <= text.lines().count() as u64);
    if let Some(selector) = Selector::parse(text) {
        assert!(!selector.name.is_empty());
    }
});
