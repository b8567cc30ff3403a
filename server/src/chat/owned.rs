//! What a room with an owner has beside what every room has: roles, and slow mode.

use std::collections::HashMap;
use std::rc::Rc;

use crate::chat::rights::{self, Refusal, Role};
use crate::config::SPEAKERS_MAX;

/// Speakers that are remembered before those are looked for who need no longer be.
const SPEAKERS_LEAST: usize = 64;

/// The rights in one room.
#[derive(Debug, Default)]
pub(crate) struct Owned {
    /// Whether only those may enter and see it who have a role.
    pub(crate) private: bool,
    /// Between two messages of somebody slow mode holds for, in milliseconds; 0: off.
    pub(crate) slow_ms: u32,
    pub(crate) roles: HashMap<Rc<str>, Role>,
    /// When those for whom slow mode holds last spoke, in Unix milliseconds.
    speakers: HashMap<Rc<str>, u64>,
    /// So many speakers are too many.
    speakers_max: usize,
}

impl Owned {
    /// Changes what the room is like.
    pub(crate) fn configure(&mut self, private: bool, slow_ms: u32) {
        (self.private, self.slow_ms) = (private, slow_ms);
        if slow_ms == 0 {
            self.speakers = HashMap::new();
        }
    }

    pub(crate) fn role(&self, name: &str) -> Option<Role> {
        self.roles.get(name).copied()
    }

    /// Whether a person may enter.
    pub(crate) fn entry(&self, name: &str) -> Result<(), Refusal> {
        rights::entry(self.private, self.role(name))
    }

    /// Whether a person sees the room in a list.
    pub(crate) fn is_visible(&self, name: &str) -> bool {
        self.entry(name) != Err(Refusal::NoRoom)
    }

    /// Whether `name` is an owner, and the only one.
    pub(crate) fn is_last_owner(&self, name: &str) -> bool {
        let others = || self.roles.iter().filter(|(other, _)| &***other != name);
        self.role(name) == Some(Role::Owner) && others().all(|(_, role)| *role != Role::Owner)
    }

    /// Whether a person may say something now.
    pub(crate) fn may_say(&self, name: &str, now_ms: u64) -> Result<(), Refusal> {
        let role = self.role(name);
        rights::voice(role)?;
        let slow_ms = u64::from(self.slow_ms);
        if slow_ms == 0 || !rights::is_slowed(role) {
            return Ok(());
        }
        // Without a time, or with one ahead of a clock that was put back, nobody is kept waiting.
        let spoke_ms = self.speakers.get(name);
        let passed_ms = spoke_ms.and_then(|spoke_ms| now_ms.checked_sub(*spoke_ms));
        match passed_ms.map_or(0, |passed_ms| slow_ms.saturating_sub(passed_ms)) {
            0 => Ok(()),
            left_ms => Err(Refusal::SlowDown(left_ms)),
        }
    }

    /// A person has said something.
    pub(crate) fn spoke(&mut self, name: &Rc<str>, at_ms: u64) {
        if self.slow_ms == 0 || !rights::is_slowed(self.role(name)) {
            return;
        }
        // Not the latest call: where things are kept there is one at the request and one later.
        let latest_ms = self.speakers.entry(name.clone()).or_default();
        *latest_ms = at_ms.max(*latest_ms);
        if self.speakers.len() > self.speakers_max.max(SPEAKERS_LEAST) {
            self.forget_speakers(at_ms);
        }
    }

    /// What a person was about to say was not said: they need not wait for the next.
    pub(crate) fn not_spoke(&mut self, name: &str) {
        self.speakers.remove(name);
    }

    /// Forgets who need not wait, and those who spoke earliest if too many are left.
    fn forget_speakers(&mut self, now_ms: u64) {
        let slow_ms = u64::from(self.slow_ms);
        self.speakers.retain(|_, spoke_ms| now_ms.saturating_sub(*spoke_ms) < slow_ms);
        if self.speakers.len() > SPEAKERS_MAX / 2 {
            let mut times: Vec<u64> = self.speakers.values().copied().collect();
            let middle = times.len() / 2;
            let (_, middle_ms, _) = times.select_nth_unstable(middle);
            let middle_ms = *middle_ms;
            self.speakers.retain(|_, spoke_ms| *spoke_ms > middle_ms);
        }
        self.speakers_max = (2 * self.speakers.len()).min(SPEAKERS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(slow_ms: u32) -> Owned {
        let mut owned = Owned::default();
        owned.configure(false, slow_ms);
        owned.roles.insert("mo".into(), Role::Moderator);
        owned.roles.insert("mu".into(), Role::Muted);
        owned
    }

    #[test]
    fn slow_mode_holds_for_each_by_itself_and_not_for_moderators() {
        let mut owned = slow(1000);
        for name in ["ann", "mo"] {
            assert_eq!(owned.may_say(name, 5000), Ok(()), "{name} has said nothing yet");
            owned.spoke(&name.into(), 5000);
            owned.spoke(&name.into(), 4000); // what is told late makes nothing earlier
        }
        let rows = [
            ("ann", 5000, Err(Refusal::SlowDown(1000))),
            ("ann", 5999, Err(Refusal::SlowDown(1))),
            ("ann", 6000, Ok(())),
            ("ann", 4999, Ok(())), // the clock was put back
            ("bob", 5000, Ok(())),
            ("mo", 5000, Ok(())),
            ("mu", 9000, Err(Refusal::Muted)),
        ];
        for (name, now_ms, expect) in rows {
            assert_eq!(owned.may_say(name, now_ms), expect, "{name} {now_ms}");
        }
        owned.configure(false, 0);
        assert_eq!((owned.may_say("ann", 5000), owned.speakers.len()), (Ok(()), 0));
        owned.spoke(&"ann".into(), 6000);
        assert_eq!(owned.speakers.len(), 0, "without slow mode nobody is remembered");
    }

    #[test]
    fn speakers_are_forgotten_when_they_need_not_wait_and_the_earliest_when_they_are_too_many() {
        let mut owned = slow(1000);
        for n in 0..10_000_u64 {
            owned.spoke(&format!("p{n}").into(), n * 10);
            assert!(owned.speakers.len() <= 2 * 100 + 1, "about a hundred speak in a second");
            assert!(owned.may_say(&format!("p{n}"), n * 10).is_err(), "{n}");
        }
        let mut owned = slow(1000);
        let mut most = 0;
        for n in 0..3 * SPEAKERS_MAX as u64 {
            owned.spoke(&format!("p{n}").into(), 5000 + n / 100);
            most = most.max(owned.speakers.len());
            assert!(owned.may_say(&format!("p{n}"), 5000 + n / 100).is_err(), "{n}");
        }
        assert!((SPEAKERS_MAX / 2..=SPEAKERS_MAX + 1).contains(&most), "{most}");
        assert_eq!(owned.may_say("p0", 5200), Ok(()), "who spoke earliest is forgotten first");
    }
}
