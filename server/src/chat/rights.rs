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
#[serde(deny_unknown_fields)]
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

/// Whether somebody may delete a message of somebody else.
pub(crate) fn may_delete(asker: Option<Role>, sender: Option<Role>) -> bool {
    asker == Some(Role::Owner) || rank(asker) > rank(sender)
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
    may_delete(asker, target.role)
}

fn allow(is_allowed: bool) -> Result<(), Refusal> {
    if is_allowed { Ok(()) } else { Err(Refusal::NotAllowed) }
}

fn allow_known(target: Target) -> Result<(), Refusal> {
    if target.is_known { Ok(()) } else { Err(Refusal::UnknownName) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything somebody can be.
    const ALL: [Option<Role>; 6] = [
        Some(Role::Owner),
        Some(Role::Moderator),
        Some(Role::Member),
        Some(Role::Muted),
        Some(Role::Banned),
        None,
    ];

    /// What each may do to others. Columns: kick; grant owner, moderator, member, muted, banned,
    /// none; in each a letter for a target who is owner, moderator, member, muted, banned, guest.
    /// `+` may, `-` not_allowed, `B` banned, `N` no_room.
    const UPON_OTHERS: &str = "
        public  owner     ++++++ ++++++ ++++++ ++++++ ++++++ ++++++ ++++++
        public  moderator --++++ ------ ------ --++++ --++++ --++++ --++++
        public  member    ------ ------ ------ ------ ------ ------ ------
        public  muted     ------ ------ ------ ------ ------ ------ ------
        public  banned    BBBBBB BBBBBB BBBBBB BBBBBB BBBBBB BBBBBB BBBBBB
        public  none      ------ ------ ------ ------ ------ ------ ------
        private owner     ++++++ ++++++ ++++++ ++++++ ++++++ ++++++ ++++++
        private moderator --++++ ------ ------ --++++ --++++ --++++ --++++
        private member    ------ ------ ------ ------ ------ ------ ------
        private muted     ------ ------ ------ ------ ------ ------ ------
        private banned    NNNNNN NNNNNN NNNNNN NNNNNN NNNNNN NNNNNN NNNNNN
        private none      NNNNNN NNNNNN NNNNNN NNNNNN NNNNNN NNNNNN NNNNNN
    ";

    /// The same of each upon themselves; then whether they may configure all, and slow mode only.
    const UPON_THEMSELVES: &str = "
        public  owner     + + + + + + + ++
        public  moderator - - - - - - + -+
        public  member    - - - - - - + --
        public  muted     - - - - - - - --
        public  banned    B B B B B B B BB
        public  none      - - - - - - + --
        private owner     + + + + + + + ++
        private moderator - - - - - - + -+
        private member    - - - - - - + --
        private muted     - - - - - - - --
        private banned    N N N N N N N NN
        private none      N N N N N N N NN
    ";

    fn letter(judgment: Result<(), Refusal>) -> char {
        match judgment {
            Ok(()) => '+',
            Err(Refusal::NotAllowed) => '-',
            Err(Refusal::Banned) => 'B',
            Err(Refusal::NoRoom) => 'N',
            Err(other) => panic!("{other:?}"),
        }
    }

    fn target(role: Option<Role>, is_self: bool) -> Target {
        Target { is_known: true, role, is_self, is_last_owner: false }
    }

    /// What can be done to somebody.
    fn acts() -> Vec<(&'static str, Act)> {
        let grants = ALL.map(|role| (word(role), Act::Grant { who: "x".into(), role }));
        [("kick", Act::Kick { who: "x".into() })].into_iter().chain(grants).collect()
    }

    fn lines(table: &str) -> Vec<String> {
        let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn who_may_do_what_to_whom() {
        let (mut others, mut themselves) = (Vec::new(), Vec::new());
        for (kind, private) in [("public", false), ("private", true)] {
            for asker in ALL {
                let standing = Standing::Owned { private };
                let judge_upon = |act: &Act, target| {
                    letter(judge(act, &Case { standing, asker, target: Some(target) }))
                };
                let mut line = format!("{kind} {}", word(asker));
                let mut own = line.clone();
                for (_, act) in acts() {
                    let upon = ALL.map(|role| judge_upon(&act, target(role, false)));
                    line += &format!(" {}", String::from_iter(upon));
                    own += &format!(" {}", judge_upon(&act, target(asker, true)));
                }
                let configure = [!private, private].map(|private| {
                    let act = Act::Configure { private, slow_ms: 1 };
                    letter(judge(&act, &Case { standing, asker, target: None }))
                });
                own += &format!(" {}", String::from_iter(configure));
                others.push(line);
                themselves.push(own);
            }
        }
        assert_eq!(others, lines(UPON_OTHERS));
        assert_eq!(themselves, lines(UPON_THEMSELVES));
    }

    #[test]
    fn what_is_no_question_of_rank() {
        let create = Act::Create { private: true, slow_ms: 0 };
        let owned = Standing::Owned { private: true };
        for asker in ALL {
            let judge = |act: &Act, standing, target| judge(act, &Case { standing, asker, target });
            for standing in [Standing::Open, owned] {
                assert_eq!(judge(&create, standing, None), Err(Refusal::RoomExists));
            }
            assert_eq!(judge(&create, Standing::Missing, None), Ok(()));
            for (_, act) in acts() {
                let somebody = Some(target(None, false));
                assert_eq!(judge(&act, Standing::Missing, somebody), Err(Refusal::NoRoom));
                assert_eq!(judge(&act, Standing::Open, somebody), Err(Refusal::OpenRoom));
                let nobody = Some(Target { is_known: false, ..target(None, false) });
                // A name is looked at last: only who may act at all learns that nobody has it.
                let expect = match (asker, &act) {
                    (Some(Role::Owner | Role::Moderator), _) => Refusal::UnknownName,
                    (Some(Role::Member | Role::Muted), _) => Refusal::NotAllowed,
                    (Some(Role::Banned) | None, _) => Refusal::NoRoom,
                };
                assert_eq!(judge(&act, owned, nobody), Err(expect), "{asker:?} {act:?}");
            }
        }
    }

    #[test]
    fn the_last_owner_stays_one() {
        for is_self in [true, false] {
            for (name, act) in acts() {
                let owner = Some(Role::Owner);
                let last = Target { is_last_owner: true, ..target(owner, is_self) };
                let standing = Standing::Owned { private: false };
                let judgment = judge(&act, &Case { standing, asker: owner, target: Some(last) });
                let stays = matches!(name, "kick" | "owner");
                let expect = if stays { Ok(()) } else { Err(Refusal::LastOwner) };
                assert_eq!(judgment, expect, "{name}");
            }
        }
    }

    #[test]
    fn who_may_enter_be_heard_and_speak_as_often_as_they_like() {
        let rows: [(_, _, _, _, bool); 6] = [
            (ALL[0], Ok(()), Ok(()), Ok(()), false),
            (ALL[1], Ok(()), Ok(()), Ok(()), false),
            (ALL[2], Ok(()), Ok(()), Ok(()), true),
            (ALL[3], Ok(()), Ok(()), Err(Refusal::Muted), true),
            (ALL[4], Err(Refusal::Banned), Err(Refusal::NoRoom), Err(Refusal::Banned), true),
            (ALL[5], Ok(()), Err(Refusal::NoRoom), Ok(()), true),
        ];
        for (role, public, private, heard, slowed) in rows {
            assert_eq!(entry(false, role), public, "{role:?}");
            assert_eq!(entry(true, role), private, "{role:?}");
            assert_eq!((voice(role), is_slowed(role)), (heard, slowed), "{role:?}");
        }
    }

    #[test]
    fn every_role_has_a_word_and_other_words_have_none() {
        for role in ALL {
            assert_eq!(of_word(word(role)), Ok(role));
        }
        for word in ["", "Owner", "admin", "none "] {
            assert_eq!(of_word(word), Err(Refusal::BadRole), "{word:?}");
        }
    }
}
