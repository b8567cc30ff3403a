//! A run whose population is governed: its last seconds are judged, and people are sent in or away.

use engine::{Holding, Wish};
use model::{Interval, MetricSample, ProbeSample, Threshold, Tick};
use results::capacity::Window;
use results::capacity::continuous::{Act, Governor, Settings, Settled, Sight};

/// A governor with what it looks at.
pub(crate) struct Governed {
    thresholds: Vec<Threshold>,
    window: Window,
    governor: Governor,
}

impl Governed {
    /// Keeps these thresholds as well as it can.
    pub(crate) fn new(thresholds: Vec<Threshold>, settings: Settings) -> Governed {
        let window = Window::new(settings.window_s);
        Governed { thresholds, window, governor: Governor::new(settings) }
    }

    /// A second is over.
    pub(crate) fn interval(&mut self, interval: &Interval) {
        self.window.push(interval);
    }

    /// Processes and machine were read.
    pub(crate) fn probe(&mut self, sample: &ProbeSample) {
        self.window.push_probe(sample);
    }

    /// Metrics were read.
    pub(crate) fn metrics(&mut self, samples: &[MetricSample]) {
        self.window.push_metrics(samples);
    }

    /// How many people should be there.
    pub(crate) fn govern(&mut self, now: Tick, holding: &Holding<'_>) -> Wish {
        let now_s = now.secs_f64() - holding.begun.secs_f64();
        let (window, thresholds) = (&self.window, &self.thresholds);
        let see = || Sight {
            present: holding.present,
            criteria: window.judge(thresholds),
            generator_limit: window.generator_limit(),
        };
        match self.governor.decide(now_s, see) {
            Act::People(people) => Wish::People(people),
            Act::Done => Wish::Enough,
        }
    }

    /// What was found out.
    pub(crate) fn settled(&self) -> Settled {
        self.governor.settled()
    }
}
