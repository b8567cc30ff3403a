//! The vocabulary of a load test: plan, behavior, session, stamp, sample, interval, ledger,
//! threshold. No I/O, no clock, no threads: everything here is a value or a pure state machine.

mod endpoint;
mod histo;
mod interval;
mod journey;
mod ledger;
mod measure;
pub mod metric;
mod pacer;
mod plan;
mod probe;
pub mod profile;
mod record;
mod rng;
pub mod scenario;
pub mod script;
mod session;
mod span;
pub mod stamp;
mod threshold;
mod tick;

pub use endpoint::{Encryption, EncryptionStart, Endpoint};
pub use histo::{HIGHEST_NS, Histo, LOWEST_NS};
pub use interval::{Counters, Faults, Gauges, Interval, Stats};
pub use journey::{Deed, DeedVerb, Mind, Next, Op, Program, RoomChoice, Text};
pub use ledger::{GAPS_MAX, Receipt, Seat, Settlement};
pub use measure::{FaultClass, Measure};
pub use metric::{Fold, MetricKind, MetricSample, Selector, Series};
pub use pacer::Pacer;
pub use plan::{
    Accounts, Crowd, Hold, Limits, ListPlan, MetricsAt, Phase, PhaseKind, Plan, Probes, PromQl,
    Prometheus, RunPhase, Secret, TargetRef, Until,
};
pub use probe::{HostSample, ProbeSample, ProcessSample};
pub use profile::{ProfilePlan, Profiler, Subject};
pub use record::{Edge, Record, StageTally, Tally, What};
pub use rng::Rng;
pub use session::{
    Ack, Effects, Event, Facts, Fault, Features, List, Manners, Options, Outcome, Protocol,
    Request, RoomName, Session, Shared, Token,
};
pub use span::Span;
pub use stamp::{PersonId, RoomId, SourceId, Stamp};
pub use threshold::{Comparison, Figure, Quantity, Role, Threshold, Unit};
pub use tick::Tick;
