//! Who may do what to whom in a room that has an owner: rules without state.
//!
//! Both who decides where things are kept (the store) and who decides otherwise (the core) look up
//! a [`Case`] and ask [`judge`], so that they cannot disagree.

use serde::{Deserialize, Serialize};

use crate::config::SLOW_TIME_MAX;

/// What somebody is in a room that has an owner. Who has no role is a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// May do everything.
    Owner,
    /// Keeps order among those below.
    Moderator,
    /// May enter though the room is private.
    Member,
    /// May enter and listen.
    Muted,
    /// May not enter.
    Banned,
}

/// The word for somebody without a role.
const NONE: &str = "none";

impl Role {
    pub(crate) const ALL: [Role; 5] =
        [Role::Owner, Role::Moderator, Role::Member, Role::Muted, Role::Banned];

    /// The word for it in requests, answers and the store.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Moderator => "moderator",
            Role::Member => "member",
            Role::Muted => "muted",
            Role::Banned => "banned",
        }
    }

    /// The role of a word.
    pub(crate) fn of_word(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.word() == word)
    }
}

/// The word for a role or for none.
pub(crate) fn word(role: Option<Role>) -> &'static str {
    role.map_or(NONE, Role::word)
}

/// The role of a word, `None` for `none`; or an error if it is no such word.
pub(crate) fn of_word(word: &str) -> Result<Option<Role>, Refusal> {
    match word {
        NONE => Ok(None),
        word => Role::of_word(word).map(Some).ok_or(Refusal::BadRole),
    }
}

/// Who has the higher one has more say.
fn rank(role: Option<Role>) -> u8 {
    match role {
        Some(Role::Owner) => 2,
        Some(Role::Moderator) => 1,
        Some(Role::Member | Role::Muted | Role::Banned) | None => 0,
    }
}

/// Something that somebody does by right, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Act {
    /// Makes the room.
    Create { private: bool, slow_ms: u32 },
    /// Changes what it is like.
    Configure { private: bool, slow_ms: u32 },
    /// Gives somebody a role, or takes it away.
    Grant { who: Box<str>, role: Option<Role> },
    /// Puts somebody out.
    Kick { who: Box<str> },
}

impl Act {
    /// Whom it is done to.
    pub(crate) fn who(&self) -> Option<&str> {
        match self {
            Act::Grant { who, .. } | Act::Kick { who } => Some(who),
            Act::Create { .. } | Act::Configure { .. } => None,
        }
    }
}

/// What there is under the name of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing.
    Missing,
    /// A room without owner: nobody has rights in it.
    Open,
    /// A room with an owner.
    Owned { private: bool },
}

/// Whom something is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// Whether there is an account of that name.
    pub(crate) is_known: bool,
    pub(crate) role: Option<Role>,
    /// Whether it is who acts.
    pub(crate) is_self: bool,
    /// Whether the room would have no owner without them.
    pub(crate) is_last_owner: bool,
}

/// All that a judgment takes into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) standing: Standing,
    /// The role of who acts.
    pub(crate) asker: Option<Role>,
    /// `None` if the act has no target.
    pub(crate) target: Option<Target>,
}

/// Why something must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    RoomExists,
    NoRoom,
    OpenRoom,
    NotAllowed,
    Banned,
    Muted,
    /// For so many milliseconds.
    SlowDown(u64),
    UnknownName,
    BadRole,
    LastOwner,
    TooSlow,
}

impl Refusal {
    /// The code for machines and the sentence for people.
    pub(crate) fn explain(self, room: &str) -> (&'static str, String) {
        match self {
            Refusal::RoomExists => ("room_exists", format!("there is a room {room:.64}")),
            Refusal::NoRoom => ("no_room", format!("there is no room {room:.64}")),
            Refusal::OpenRoom => {
                ("open_room", format!("{room:.64} has no owner: nobody has rights in it"))
            }
            Refusal::NotAllowed => ("not_allowed", format!("not allowed to do this in {room:.64}")),
            Refusal::Banned => ("banned", format!("banned from {room:.64}")),
            Refusal::Muted => ("muted", format!("muted in {room:.64}")),
            Refusal::SlowDown(ms) => ("slow_down", format!("{room:.64} is slow: wait {ms} ms")),
            Refusal::UnknownName => ("unknown_name", "there is nobody of that name".to_owned()),
            Refusal::BadRole => {
                let words = Role::ALL.map(Role::word).join(", ");
                ("bad_role", format!("a role is {words} or {NONE}"))
            }
            Refusal::LastOwner => {
                ("last_owner", format!("{room:.64} has no other owner: make somebody one first"))
            }
            Refusal::TooSlow => {
                ("too_long", format!("slow mode is up to {} ms", SLOW_TIME_MAX.as_millis()))
            }
        }
    }
}

/// Whether somebody may enter.
pub(crate) fn entry(private: bool, role: Option<Role>) -> Result<(), Refusal> {
    match (private, role) {
        // Who may not see a private room is not to learn that there is one.
        (true, None | Some(Role::Banned)) => Err(Refusal::NoRoom),
        (false, Some(Role::Banned)) => Err(Refusal::Banned),
        _ => Ok(()),
    }
}

/// Whether somebody who is in the room may be heard.
pub(crate) fn voice(role: Option<Role>) -> Result<(), Refusal> {
    match role {
        Some(Role::Muted) => Err(Refusal::Muted),
        Some(Role::Banned) => Err(Refusal::Banned),
        _ => Ok(()),
    }
}

/// Whether slow mode holds for somebody.
pub(crate) fn is_slowed(role: Option<Role>) -> bool {
    rank(role) < rank(Some(Role::Moderator))
}

/// Whether an act is allowed.
pub(crate) fn judge(act: &Act, case: &Case) -> Result<(), Refusal> {
    if let Act::Create { .. } = act {
        let is_new = case.standing == Standing::Missing;
        return if is_new { Ok(()) } else { Err(Refusal::RoomExists) };
    }
    let is_private = match case.standing {
        Standing::Missing => return Err(Refusal::NoRoom),
        Standing::Open => return Err(Refusal::OpenRoom),
        Standing::Owned { private } => private,
    };
    entry(is_private, case.asker)?;
    match (act, case.target) {
        (Act::Configure { private, .. }, _) => {
            let least = if *private == is_private { Role::Moderator } else { Role::Owner };
            allow(rank(case.asker) >= rank(Some(least)))
        }
        (Act::Grant { role, .. }, Some(target)) => judge_grant(*role, case.asker, target),
        (Act::Kick { .. }, Some(target)) => {
            allow(rank(case.asker) > 0)?;
            allow_known(target)?;
            allow(is_above(case.asker, target))
        }
        _ => Err(Refusal::NotAllowed), // no act of this program is without the target it needs
    }
}

fn judge_grant(role: Option<Role>, asker: Option<Role>, target: Target) -> Result<(), Refusal> {
    // To part with a room for good: whoever has a role may give it up. Who is muted may not, as
    // that would be a way to speak again.
    let parts = target.is_self && role.is_none() && asker != Some(Role::Muted);
    if !parts {
        allow(rank(asker) > 0)?;
        allow_known(target)?;
        allow(is_above(asker, target) && (asker == Some(Role::Owner) || rank(role) == 0))?;
    }
    let degrades = target.role == Some(Role::Owner) && role != Some(Role::Owner);
    if degrades && target.is_last_owner { Err(Refusal::LastOwner) } else { Ok(()) }
}

/// Nobody acts upon somebody of the same or a higher rank, but an owner on owners.
fn is_above(asker: Option<Role>, target: Target) -> bool {
    asker == Some(Role::Owner) || rank(asker) > rank(target.role)
}

fn allow(is_allowed: bool) -> Result<(), Refusal> {
    if is_allowed { Ok(()) } else { Err(Refusal::NotAllowed) }
}

fn allow_known(target: Target) -> Result<(), Refusal> {
    if target.is_known { Ok(()) } else { Err(Refusal::UnknownName) }
}
