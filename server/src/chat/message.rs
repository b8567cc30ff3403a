//! What a message may have besides its text: what it replies to, edits, reactions, a client's key.
//!
//! Most messages have none of it, and then it takes no memory but that of an empty pointer.

use protocols::yardstick::{Message, Millis, Reaction};
use serde::{Deserialize, Serialize};

use crate::config::{PAGE_BYTES_MAX, REACTION_NAMES_MAX, REACTIONS_MAX};

/// Memory of a reaction or a name in a list besides its text, in bytes.
const ITEM_BYTES: usize = 40;
/// Memory of a key in its room's list besides its text, in bytes.
const KEY_BYTES: usize = 160;

/// What few messages have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extra {
    /// The number of the message it replies to; 0: none.
    pub(crate) reply_to: u32,
    pub(crate) deleted: bool,
    /// When it was last edited, Unix milliseconds; 0: never.
    pub(crate) edited_ms: u64,
    /// In byte order.
    pub(crate) reactions: Vec<Reacted>,
    /// Of the client's choice; empty where there is none or the store looks after it.
    pub(crate) key: Box<str>,
}

/// One reaction and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reacted {
    pub(crate) reaction: Box<str>,
    /// In byte order.
    pub(crate) names: Vec<Box<str>>,
}

impl Reacted {
    fn bytes(&self) -> usize {
        let names = self.names.iter().map(|name| name.len() + ITEM_BYTES);
        self.reaction.len() + ITEM_BYTES + names.sum::<usize>()
    }
}

/// What becomes of a reaction that is added or taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is not as it was.
    Changed,
    /// It was so already.
    Unchanged,
    /// There are as many as there may be.
    Full,
}

/// What becomes of somebody's reaction; `has` tells whether it is there, `names` how many have
/// reacted so, `kinds` how many reactions there are.
pub(crate) fn judge(
    remove: bool,
    has: bool,
    names: usize,
    kinds: impl FnOnce() -> usize,
) -> Verdict {
    if has != remove {
        return Verdict::Unchanged;
    }
    let is_full = match names {
        0 => !remove && kinds() >= REACTIONS_MAX,
        names => !remove && names >= REACTION_NAMES_MAX,
    };
    if is_full { Verdict::Full } else { Verdict::Changed }
}

impl Extra {
    /// Of a message that is said; `None` if there is nothing to keep.
    pub(crate) fn new(reply_to: u32, key: &str) -> Option<Box<Extra>> {
        if reply_to == 0 && key.is_empty() {
            return None;
        }
        Some(Box::new(Extra { reply_to, key: key.into(), ..Extra::default() }))
    }

    /// Memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let key = if self.key.is_empty() { 0 } else { KEY_BYTES + 2 * self.key.len() };
        size_of::<Extra>() + key + self.reactions.iter().map(Reacted::bytes).sum::<usize>()
    }

    /// Adds it to what an answer tells of a message.
    pub(crate) fn dress<'a>(&'a self, message: &mut Message<'a>) {
        let reaction = |reacted: &'a Reacted| Reaction {
            reaction: (&*reacted.reaction).into(),
            names: reacted.names.iter().map(|name| (&**name).into()).collect(),
        };
        message.reply_to = self.reply_to;
        message.edited_ms = Millis(self.edited_ms);
        message.deleted = self.deleted;
        message.reactions = self.reactions.iter().map(reaction).collect();
    }

    /// What becomes of a reaction of somebody.
    pub(crate) fn judge(&self, reaction: &str, name: &str, remove: bool) -> Verdict {
        let found = self.reactions.iter().find(|reacted| &*reacted.reaction == reaction);
        let names = found.map_or(&[][..], |reacted| &reacted.names);
        let has = names.binary_search_by(|other| (**other).cmp(name)).is_ok();
        judge(remove, has, names.len(), || self.reactions.len())
    }

    /// Adds a reaction of somebody, or takes it away.
    pub(crate) fn react(&mut self, reaction: &str, name: &str, remove: bool) {
        let place = self.reactions.binary_search_by(|reacted| (*reacted.reaction).cmp(reaction));
        let at = match place {
            Ok(at) => at,
            Err(_) if remove => return,
            Err(at) => {
                let reaction = reaction.into();
                self.reactions.insert(at, Reacted { reaction, names: Vec::new() });
                at
            }
        };
        let names = &mut self.reactions[at].names;
        match names.binary_search_by(|other| (**other).cmp(name)) {
            Ok(place) if remove => _ = names.remove(place),
            Err(place) if !remove => names.insert(place, name.into()),
            _ => {}
        }
        if names.is_empty() {
            self.reactions.remove(at);
        }
    }
}

/// A message of the past: its number, who said it, its text and when, and what else it has.
pub(crate) fn of<'a>(
    number: u32,
    (sender, text, at_ms): (&'a str, &'a str, u64),
    extra: Option<&'a Extra>,
) -> Message<'a> {
    let (sender, text, at_ms) = (sender.into(), text.into(), Millis(at_ms));
    let mut message = Message { number, sender, text, at_ms, ..Message::default() };
    if let Some(extra) = extra {
        extra.dress(&mut message);
    }
    message
}

/// Numbers of the `limit` latest messages before number `before` (0: the very latest), of those up
/// to `latest`: the first, and one more than the last.
pub(crate) fn page_span(latest: u32, before: u32, limit: usize) -> (u64, u64) {
    let end = match before {
        0 => u64::from(latest) + 1,
        _ => u64::from(before).min(u64::from(latest) + 1),
    };
    (end.saturating_sub(limit as u64).max(1), end)
}

/// How much fits into a page: [`PAGE_BYTES_MAX`], and one message in any case.
#[derive(Debug, Default)]
pub(crate) struct PageRoom {
    bytes: usize,
    messages: usize,
}

impl PageRoom {
    /// Whether one more message fits.
    pub(crate) fn takes(&mut self, text: &str, extra: Option<&Extra>) -> bool {
        let reactions = extra.map_or(&[][..], |extra| &extra.reactions);
        self.bytes += text.len() + reactions.iter().map(Reacted::bytes).sum::<usize>();
        self.messages += 1;
        self.messages == 1 || self.bytes <= PAGE_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reactions_are_in_order_and_bounded() {
        let mut extra = Extra::default();
        for (reaction, name) in [("b", "y"), ("a", "z"), ("b", "x"), ("b", "x")] {
            extra.react(reaction, name, false);
        }
        let told = |extra: &Extra| {
            let lists =
                extra.reactions.iter().map(|r| format!("{} {}", r.reaction, r.names.join("")));
            lists.collect::<Vec<_>>()
        };
        assert_eq!(told(&extra), ["a z", "b xy"]);
        extra.react("a", "x", true); // had not reacted so
        extra.react("c", "x", true);
        extra.react("a", "z", true);
        assert_eq!(told(&extra), ["b xy"]);
        for kind in 1..REACTIONS_MAX {
            extra.react(&format!("k{kind}"), "x", false);
        }
        for name in 2..REACTION_NAMES_MAX {
            extra.react("b", &format!("n{name}"), false);
        }
        let rows = [
            ("c", "x", false, Verdict::Full),
            ("b", "z", false, Verdict::Full),
            ("b", "x", false, Verdict::Unchanged),
            ("k1", "y", false, Verdict::Changed),
            ("b", "x", true, Verdict::Changed),
            ("b", "z", true, Verdict::Unchanged),
            ("c", "x", true, Verdict::Unchanged),
        ];
        for (reaction, name, remove, expect) in rows {
            assert_eq!(extra.judge(reaction, name, remove), expect, "{reaction} {name} {remove}");
        }
        // One message fits into a page, whatever its reactions.
        let most = REACTIONS_MAX * (40 + 32 + REACTION_NAMES_MAX * (40 + 64)) + 16 * 1024;
        assert!(most <= crate::config::PAGE_BYTES_MAX, "{most} bytes");
        assert!(size_of::<Option<Box<Extra>>>() == 8 && extra.bytes() < most);
    }
}
