//! Requests that wait for their answers.

use super::types::{AnswerWhat, RequestWhat};
use model::Token;

/// A request that waits for its answer; the token is its id.
pub(super) struct Pending {
    pub(super) token: Token,
    pub(super) wants: Wants,
    /// Answers to come: a message to a list is several requests of one id.
    pub(super) left: usize,
    /// What was sent, to be sent again if the connection is lost; only of people who come back.
    pub(super) again: Vec<Box<[u8]>>,
}

/// What a request is to be answered with, unless it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Welcome,
    Joined,
    Done,
    Said,
    /// As `Said`, but nobody waits for it; and those whom nobody knows are owed nothing.
    Told,
    /// As `Said`, but nobody waits for it.
    Multicast,
    /// As `Told` or `Multicast`, and the refusal is reported.
    Refused,
    History,
    Members,
    Pong,
    Avatar,
    Rights,
    Rooms,
}

impl Wants {
    pub(super) fn of(request: &RequestWhat<'_>) -> Wants {
        match request {
            RequestWhat::Login(_) => Wants::Welcome,
            RequestWhat::Join(_) => Wants::Joined,
            RequestWhat::Leave(_) | RequestWhat::Typing(_) | RequestWhat::Read(_) => Wants::Done,
            RequestWhat::Revoke(_) | RequestWhat::Edit(_) | RequestWhat::Delete(_) => Wants::Done,
            RequestWhat::React(_) | RequestWhat::Create(_) => Wants::Done,
            RequestWhat::Configure(_) | RequestWhat::Grant(_) | RequestWhat::Kick(_) => Wants::Done,
            RequestWhat::Say(_) | RequestWhat::Tell(_) => Wants::Said,
            RequestWhat::History(_) => Wants::History,
            RequestWhat::Members(_) => Wants::Members,
            RequestWhat::Ping(_) => Wants::Pong,
            RequestWhat::Avatar(_) => Wants::Avatar,
            RequestWhat::Rights(_) => Wants::Rights,
            RequestWhat::Rooms(_) => Wants::Rooms,
        }
    }

    /// Whether nobody waits for the answer, unless it is a refusal.
    pub(super) fn is_silent(self) -> bool {
        matches!(self, Wants::Told | Wants::Multicast | Wants::Refused)
    }

    pub(super) fn is(self, answer: &AnswerWhat<'_>) -> bool {
        let found = match answer {
            AnswerWhat::Welcome(_) => Wants::Welcome,
            AnswerWhat::Joined(_) => Wants::Joined,
            AnswerWhat::Done(_) => Wants::Done,
            AnswerWhat::Said(_) if self.is_silent() => self,
            AnswerWhat::Said(_) => Wants::Said,
            AnswerWhat::History(_) => Wants::History,
            AnswerWhat::Members(_) => Wants::Members,
            AnswerWhat::Pong(_) => Wants::Pong,
            AnswerWhat::Avatar(_) => Wants::Avatar,
            AnswerWhat::Rights(_) => Wants::Rights,
            AnswerWhat::Rooms(_) => Wants::Rooms,
            AnswerWhat::Error(_) => return false,
        };
        self == found
    }
}
