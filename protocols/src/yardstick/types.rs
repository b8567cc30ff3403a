//! The messages of `yardstick.proto`, once, for both encodings.
//!
//! `message!` makes a struct: `number "jsonName" field: Type`. `choice!` makes the `oneof` of a
//! message, whose fields stand beside those of the message. Field meanings: see `yardstick.proto`.

use serde::de::MapAccess;

use super::field::{Bytes, Field, Fields, Millis, Text, choice, message};
use super::{DecodeError, json, proto};

message! {
    /// From the client; gets exactly one [`Answer`] with the same id.
    Request<'a> {
        1 "id" id: u32,
        oneof what: RequestWhat<'a>,
    }
}

choice! {
    /// What a client wants.
    RequestWhat<'a> {
        2 "login" Login(Login<'a>),
        3 "join" Join(Join<'a>),
        4 "leave" Leave(Leave<'a>),
        5 "say" Say(Say<'a>),
        6 "history" History(GetHistory<'a>),
        7 "members" Members(GetMembers<'a>),
        8 "typing" Typing(Typing<'a>),
        9 "read" Read(Read<'a>),
        10 "ping" Ping(Ping),
        11 "avatar" Avatar(GetAvatar<'a>),
        12 "revoke" Revoke(Revoke<'a>),
        13 "tell" Tell(Tell<'a>),
        14 "edit" Edit(Edit<'a>),
        15 "delete" Delete(Delete<'a>),
        16 "react" React(React<'a>),
        17 "create" Create(Create<'a>),
        18 "configure" Configure(Configure<'a>),
        19 "grant" Grant(Grant<'a>),
        20 "kick" Kick(Kick<'a>),
        21 "rights" Rights(GetRights<'a>),
        22 "rooms" Rooms(GetRooms<'a>),
    }
}

message! {
    /// Name and password, or a token.
    Login<'a> {
        1 "name" name: Text<'a>,
        2 "password" password: Text<'a>,
        3 "token" token: Text<'a>,
    }
}

message! {
    /// Enter a room.
    Join<'a> {
        1 "room" room: Text<'a>,
        2 "status" status: Text<'a>,
        3 "history" history: u32,
        4 "members" members: bool,
        5 "avatars" avatars: bool,
        6 "after" after: u32,
        7 "reads" reads: bool,
    }
}

message! {
    /// Leave a room.
    Leave<'a> {
        1 "room" room: Text<'a>,
    }
}

message! {
    /// Say something to everybody in a room.
    Say<'a> {
        1 "room" room: Text<'a>,
        2 "text" text: Text<'a>,
        3 "replyTo" reply_to: u32,
        4 "key" key: Text<'a>,
    }
}

message! {
    /// Say something to people, wherever they are.
    Tell<'a> {
        1 "to" to: Vec<Text<'a>>,
        2 "text" text: Text<'a>,
        3 "key" key: Text<'a>,
    }
}

message! {
    /// Another text for a message.
    Edit<'a> {
        1 "room" room: Text<'a>,
        2 "number" number: u32,
        3 "text" text: Text<'a>,
    }
}

message! {
    /// Take a message back.
    Delete<'a> {
        1 "room" room: Text<'a>,
        2 "number" number: u32,
    }
}

message! {
    /// React to a message, or no longer.
    React<'a> {
        1 "room" room: Text<'a>,
        2 "number" number: u32,
        3 "reaction" reaction: Text<'a>,
        4 "remove" remove: bool,
    }
}

message! {
    /// Make a room of one's own.
    Create<'a> {
        1 "room" room: Text<'a>,
        2 "private" private: bool,
        3 "slowMs" slow_ms: u32,
    }
}

message! {
    /// Change what a room is like.
    Configure<'a> {
        1 "room" room: Text<'a>,
        2 "private" private: bool,
        3 "slowMs" slow_ms: u32,
    }
}

message! {
    /// Give somebody a role, or take it away.
    Grant<'a> {
        1 "room" room: Text<'a>,
        2 "name" name: Text<'a>,
        3 "role" role: Text<'a>,
    }
}

message! {
    /// Put somebody out of a room.
    Kick<'a> {
        1 "room" room: Text<'a>,
        2 "name" name: Text<'a>,
    }
}

message! {
    /// Ask who has which role.
    GetRights<'a> {
        1 "room" room: Text<'a>,
    }
}

message! {
    /// Ask for the rooms.
    GetRooms<'a> {
        1 "after" after: Text<'a>,
        2 "limit" limit: u32,
    }
}

message! {
    /// Ask for a picture.
    GetAvatar<'a> {
        1 "hash" hash: Text<'a>,
    }
}

message! {
    /// A token of one's own is good no longer.
    Revoke<'a> {
        1 "token" token: Text<'a>,
    }
}

message! {
    /// Ask for a page of the past.
    GetHistory<'a> {
        1 "room" room: Text<'a>,
        2 "before" before: u32,
        3 "limit" limit: u32,
    }
}

message! {
    /// Ask who is in a room.
    GetMembers<'a> {
        1 "room" room: Text<'a>,
    }
}

message! {
    /// Somebody is typing.
    Typing<'a> {
        1 "room" room: Text<'a>,
        2 "name" name: Text<'a>,
    }
}

message! {
    /// Somebody has read up to a message.
    Read<'a> {
        1 "room" room: Text<'a>,
        2 "number" number: u32,
        3 "name" name: Text<'a>,
    }
}

message! {
    /// Are you there?
    Ping {}
}

message! {
    /// From the server.
    Frame<'a> {
        oneof what: FrameWhat<'a>,
    }
}

choice! {
    /// What a server tells.
    FrameWhat<'a> {
        1 "message" Message(Message<'a>),
        2 "presence" Presence(Presence<'a>),
        3 "answer" Answer(Answer<'a>),
        4 "typing" Typing(Typing<'a>),
        5 "read" Read(Read<'a>),
        6 "change" Change(Change<'a>),
        7 "notice" Notice(Notice<'a>),
    }
}

message! {
    /// Something somebody said; `at_ms` is Unix milliseconds.
    Message<'a> {
        1 "room" room: Text<'a>,
        2 "number" number: u32,
        3 "sender" sender: Text<'a>,
        4 "text" text: Text<'a>,
        5 "atMs" at_ms: Millis,
        6 "replyTo" reply_to: u32,
        7 "editedMs" edited_ms: Millis,
        8 "deleted" deleted: bool,
        9 "reactions" reactions: Vec<Reaction<'a>>,
    }
}

message! {
    /// One reaction and whose it is.
    Reaction<'a> {
        1 "reaction" reaction: Text<'a>,
        2 "names" names: Vec<Text<'a>>,
    }
}

message! {
    /// A message is not what it was; `at_ms` is Unix milliseconds.
    Change<'a> {
        1 "room" room: Text<'a>,
        2 "number" number: u32,
        3 "name" name: Text<'a>,
        4 "text" text: Text<'a>,
        5 "deleted" deleted: bool,
        6 "reaction" reaction: Text<'a>,
        7 "removed" removed: bool,
        8 "atMs" at_ms: Millis,
    }
}

message! {
    /// Somebody's rights, or a room, are not what they were.
    Notice<'a> {
        1 "room" room: Text<'a>,
        2 "what" what: Text<'a>,
        3 "name" name: Text<'a>,
        4 "role" role: Text<'a>,
        5 "by" by: Text<'a>,
        6 "private" private: bool,
        7 "slowMs" slow_ms: u32,
    }
}

message! {
    /// Who left, then who joined.
    Presence<'a> {
        1 "room" room: Text<'a>,
        2 "joined" joined: Vec<Person<'a>>,
        3 "left" left: Vec<Text<'a>>,
    }
}

message! {
    /// Somebody in a room.
    Person<'a> {
        1 "name" name: Text<'a>,
        2 "status" status: Text<'a>,
        3 "avatar" avatar: Bytes<'a>,
        4 "avatarHash" avatar_hash: Text<'a>,
    }
}

message! {
    /// The answer to the request with this id.
    Answer<'a> {
        1 "id" id: u32,
        oneof what: AnswerWhat<'a>,
    }
}

choice! {
    /// How a request ended.
    AnswerWhat<'a> {
        2 "error" Error(Error<'a>),
        3 "welcome" Welcome(Welcome<'a>),
        4 "joined" Joined(Joined<'a>),
        5 "done" Done(Done),
        6 "said" Said(Said),
        7 "history" History(History<'a>),
        8 "members" Members(Members<'a>),
        9 "pong" Pong(Pong),
        10 "avatar" Avatar(Avatar<'a>),
        11 "rights" Rights(Rights<'a>),
        12 "rooms" Rooms(Rooms<'a>),
    }
}

message! {
    /// The request failed.
    Error<'a> {
        1 "code" code: Text<'a>,
        2 "text" text: Text<'a>,
    }
}

message! {
    /// Logged in; the token is good until `expires_ms`, Unix milliseconds.
    Welcome<'a> {
        1 "name" name: Text<'a>,
        2 "token" token: Text<'a>,
        3 "expiresMs" expires_ms: Millis,
        4 "told" told: u32,
    }
}

message! {
    /// Entered a room.
    Joined<'a> {
        1 "number" number: u32,
        2 "messages" messages: Vec<Message<'a>>,
        3 "people" people: Vec<Person<'a>>,
        4 "reads" reads: Vec<Read<'a>>,
        5 "role" role: Text<'a>,
    }
}

message! {
    /// Done, nothing more to say.
    Done {}
}

message! {
    /// Taken and numbered; `at_ms` is Unix milliseconds.
    Said {
        1 "number" number: u32,
        2 "atMs" at_ms: Millis,
    }
}

message! {
    /// A page of the past, oldest first.
    History<'a> {
        1 "messages" messages: Vec<Message<'a>>,
    }
}

message! {
    /// Everybody in a room.
    Members<'a> {
        1 "people" people: Vec<Person<'a>>,
    }
}

message! {
    /// Who has which role in a room, and what the room is like.
    Rights<'a> {
        1 "rights" rights: Vec<Right<'a>>,
        2 "private" private: bool,
        3 "slowMs" slow_ms: u32,
    }
}

message! {
    /// Somebody's role.
    Right<'a> {
        1 "name" name: Text<'a>,
        2 "role" role: Text<'a>,
    }
}

message! {
    /// The rooms there are for the asker.
    Rooms<'a> {
        1 "rooms" rooms: Vec<Room<'a>>,
    }
}

message! {
    /// A room.
    Room<'a> {
        1 "name" name: Text<'a>,
        2 "number" number: u32,
        3 "people" people: u32,
        4 "read" read: u32,
        5 "private" private: bool,
        6 "role" role: Text<'a>,
    }
}

message! {
    /// A picture.
    Avatar<'a> {
        1 "picture" picture: Bytes<'a>,
    }
}

message! {
    /// Here; `at_ms` is Unix milliseconds.
    Pong {
        1 "atMs" at_ms: Millis,
    }
}
