//! How a command fails: words for the user and an exit code.

/// The command line or the scenario is wrong.
pub(crate) const USAGE: u8 = 2;
/// It could not be measured.
pub(crate) const UNMEASURED: u8 = 3;

/// A failure, in the words the user sees.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    /// The command line or the scenario is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { code: USAGE, message: format!("throng: {}", message.into()) }
    }

    /// The machine, the target or the generator does not allow a measurement.
    pub(crate) fn unmeasured(message: impl Into<String>) -> Failure {
        Failure { code: UNMEASURED, message: format!("throng: {}", message.into()) }
    }

    /// Mistakes in a scenario, which tell their own place.
    pub(crate) fn mistakes(mistakes: &[model::scenario::Mistake]) -> Failure {
        let drawn: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        Failure { code: USAGE, message: drawn.join("\n") }
    }
}

/// What a command gives back: its exit code.
pub(crate) type Ending = Result<u8, Failure>;
