//! Every request and frame in both encodings: the value, canonical JSON, and protobuf in
//! hexadecimal digits; spaces in these are for the eye.
use super::*;

pub(super) fn ask(id: u32, what: RequestWhat<'static>) -> Request<'static> {
    Request { id, what: Some(what) }
}

fn tell(what: FrameWhat<'static>) -> Frame<'static> {
    Frame { what: Some(what) }
}

pub(super) fn answer(id: u32, what: AnswerWhat<'static>) -> Frame<'static> {
    tell(FrameWhat::Answer(Answer { id, what: Some(what) }))
}

fn person(name: &'static str, status: &'static str) -> Person<'static> {
    Person { name: name.into(), status: status.into(), ..Person::default() }
}

fn picture() -> Bytes<'static> {
    Bytes(vec![1, 2, 255].into())
}

pub(super) fn message(number: u32, text: &'static str) -> Message<'static> {
    let (room, sender) = ("live".into(), "ann".into());
    let at_ms = Millis(1_700_000_000_000);
    Message { room, number, sender, text: text.into(), at_ms, ..Message::default() }
}

pub(super) fn requests() -> Vec<(Request<'static>, &'static str, &'static str)> {
    conversation().into_iter().chain(deeds()).collect()
}

fn conversation() -> Vec<(Request<'static>, &'static str, &'static str)> {
    use RequestWhat as W;
    let room = || Text::from("live");
    let redeem = W::Login(Login { token: "a.1.x".into(), ..Login::default() });
    let revoke = W::Revoke(Revoke { token: "a.1.x".into() });
    vec![
        (
            ask(
                1,
                W::Login(Login { name: "ann".into(), password: "pw".into(), ..Login::default() }),
            ),
            r#"{"id":1,"login":{"name":"ann","password":"pw"}}"#,
            "080112090a03616e6e12027077",
        ),
        (ask(1, redeem), r#"{"id":1,"login":{"token":"a.1.x"}}"#, "080112071a05612e312e78"),
        (
            ask(1, W::Join(Join { room: room(), ..Join::default() })),
            r#"{"id":1,"join":{"room":"live"}}"#,
            "08011a060a046c697665",
        ),
        (
            ask(1, W::Join(Join { room: room(), avatars: true, ..Join::default() })),
            r#"{"id":1,"join":{"room":"live","avatars":true}}"#,
            "08011a080a046c6976652801",
        ),
        (
            ask(
                300,
                W::Join(Join {
                    room: room(),
                    status: "s".into(),
                    history: 100,
                    members: true,
                    ..Join::default()
                }),
            ),
            r#"{"id":300,"join":{"room":"live","status":"s","history":100,"members":true}}"#,
            "08ac021a0d0a046c69766512017318642001",
        ),
        (
            ask(2, W::Leave(Leave { room: room() })),
            r#"{"id":2,"leave":{"room":"live"}}"#,
            "080222060a046c697665",
        ),
        (
            ask(3, W::Say(Say { room: room(), text: "a\"\\\n\u{1}é".into(), ..Say::default() })),
            r#"{"id":3,"say":{"room":"live","text":"a\"\\\n\u0001é"}}"#,
            "08032a0f0a046c697665120761225c0a01c3a9",
        ),
        (
            ask(4, W::History(GetHistory { room: room(), before: 9, limit: 5 })),
            r#"{"id":4,"history":{"room":"live","before":9,"limit":5}}"#,
            "0804320a0a046c69766510091805",
        ),
        (
            ask(5, W::Members(GetMembers { room: room() })),
            r#"{"id":5,"members":{"room":"live"}}"#,
            "08053a060a046c697665",
        ),
        (
            ask(6, W::Typing(Typing { room: room(), ..Typing::default() })),
            r#"{"id":6,"typing":{"room":"live"}}"#,
            "080642060a046c697665",
        ),
        (
            ask(7, W::Read(Read { room: room(), number: 9, ..Read::default() })),
            r#"{"id":7,"read":{"room":"live","number":9}}"#,
            "08074a080a046c6976651009",
        ),
        (ask(8, W::Ping(Ping {})), r#"{"id":8,"ping":{}}"#, "08085200"),
        (
            ask(9, W::Avatar(GetAvatar { hash: "00ff".into() })),
            r#"{"id":9,"avatar":{"hash":"00ff"}}"#,
            "08095a060a0430306666",
        ),
        (ask(10, revoke), r#"{"id":10,"revoke":{"token":"a.1.x"}}"#, "080a62070a05612e312e78"),
        (Request::default(), "{}", ""),
    ]
}

/// Requests of people, their messages and their rooms.
fn deeds() -> Vec<(Request<'static>, &'static str, &'static str)> {
    use RequestWhat as W;
    let (room, text, name) = (|| Text::from("r"), || Text::from("t"), || Text::from("n"));
    let join = Join { room: room(), after: 9, reads: true, ..Join::default() };
    let say = Say { room: room(), text: text(), reply_to: 7, key: "k".into() };
    let to = vec!["ann".into(), "bob".into()];
    vec![
        (
            ask(1, W::Join(join)),
            r#"{"id":1,"join":{"room":"r","after":9,"reads":true}}"#,
            "08011a070a017230093801",
        ),
        (
            ask(2, W::Say(say)),
            r#"{"id":2,"say":{"room":"r","text":"t","replyTo":7,"key":"k"}}"#,
            "08022a0b0a017212017418072201 6b",
        ),
        (
            ask(3, W::Tell(Tell { to, text: text(), key: "k".into() })),
            r#"{"id":3,"tell":{"to":["ann","bob"],"text":"t","key":"k"}}"#,
            "08036a100a03616e6e0a03626f621201741a016b",
        ),
        (
            ask(4, W::Edit(Edit { room: room(), number: 5, text: text() })),
            r#"{"id":4,"edit":{"room":"r","number":5,"text":"t"}}"#,
            "080472080a017210051a0174",
        ),
        (
            ask(5, W::Delete(Delete { room: room(), number: 5 })),
            r#"{"id":5,"delete":{"room":"r","number":5}}"#,
            "08057a050a01721005",
        ),
        (
            ask(6, W::React(React { room: room(), number: 5, reaction: "+".into(), remove: true })),
            r#"{"id":6,"react":{"room":"r","number":5,"reaction":"+","remove":true}}"#,
            "08068201 0a0a017210051a012b2001",
        ),
        (
            ask(7, W::Create(Create { room: room(), private: true, slow_ms: 5 })),
            r#"{"id":7,"create":{"room":"r","private":true,"slowMs":5}}"#,
            "08078a01 070a017210011805",
        ),
        (
            ask(8, W::Configure(Configure { room: room(), private: true, slow_ms: 5 })),
            r#"{"id":8,"configure":{"room":"r","private":true,"slowMs":5}}"#,
            "08089201 070a017210011805",
        ),
        (
            ask(9, W::Grant(Grant { room: room(), name: name(), role: "muted".into() })),
            r#"{"id":9,"grant":{"room":"r","name":"n","role":"muted"}}"#,
            "08099a01 0d0a017212016e1a056d75746564",
        ),
        (
            ask(10, W::Kick(Kick { room: room(), name: name() })),
            r#"{"id":10,"kick":{"room":"r","name":"n"}}"#,
            "080aa201 060a017212016e",
        ),
        (
            ask(11, W::Rights(GetRights { room: room() })),
            r#"{"id":11,"rights":{"room":"r"}}"#,
            "080baa01 030a0172",
        ),
        (
            ask(12, W::Rooms(GetRooms { after: room(), limit: 3 })),
            r#"{"id":12,"rooms":{"after":"r","limit":3}}"#,
            "080cb201 050a01721003",
        ),
    ]
}

pub(super) fn frames() -> Vec<(Frame<'static>, &'static str, &'static str)> {
    talk().into_iter().chain(news()).collect()
}

fn talk() -> Vec<(Frame<'static>, &'static str, &'static str)> {
    vec![
        (
            tell(FrameWhat::Message(message(7, "hi"))),
            r#"{"message":{"room":"live","number":7,"sender":"ann","text":"hi","atMs":"1700000000000"}}"#,
            "0a180a046c69766510071a03616e6e2202686928 80d095ffbc31",
        ),
        (
            tell(FrameWhat::Presence(Presence {
                room: "live".into(),
                joined: vec![person("ann", "s"), person("bob", "")],
                left: vec!["cy".into()],
            })),
            r#"{"presence":{"room":"live","joined":[{"name":"ann","status":"s"},{"name":"bob"}],"left":["cy"]}}"#,
            "121b0a046c69766512080a03616e6e12017312050a03626f621a026379",
        ),
        (
            tell(FrameWhat::Presence(Presence {
                joined: vec![Person {
                    avatar: picture(),
                    avatar_hash: "ab".into(),
                    ..person("a", "")
                }],
                ..Presence::default()
            })),
            r#"{"presence":{"joined":[{"name":"a","avatar":"AQL/","avatarHash":"ab"}]}}"#,
            "120e120c0a01611a030102ff22026162",
        ),
        (
            tell(FrameWhat::Typing(Typing { room: "live".into(), name: "ann".into() })),
            r#"{"typing":{"room":"live","name":"ann"}}"#,
            "220b0a046c6976651203616e6e",
        ),
        (
            tell(FrameWhat::Read(Read { room: "live".into(), number: 9, name: "ann".into() })),
            r#"{"read":{"room":"live","number":9,"name":"ann"}}"#,
            "2a0d0a046c69766510091a03616e6e",
        ),
    ]
}

/// Frames about people and their messages.
fn news() -> Vec<(Frame<'static>, &'static str, &'static str)> {
    vec![
        (
            tell(FrameWhat::Message(Message { number: 3, ..direct("x") })),
            r#"{"message":{"number":3,"sender":"ann","text":"x","atMs":"5"}}"#,
            "0a0c10031a03616e6e2201782805",
        ),
        (
            tell(FrameWhat::Message(Message { reply_to: 7, ..direct("x") })),
            r#"{"message":{"sender":"ann","text":"x","atMs":"5","replyTo":7}}"#,
            "0a0c1a03616e6e22017828053007",
        ),
        (
            tell(FrameWhat::Change(Change { at_ms: Millis(5), ..changed("t", false) })),
            r#"{"change":{"room":"r","number":5,"name":"n","text":"t","atMs":"5"}}"#,
            "320d0a017210051a016e2201744005",
        ),
        (
            tell(FrameWhat::Change(changed("", true))),
            r#"{"change":{"room":"r","number":5,"name":"n","deleted":true}}"#,
            "320a0a017210051a016e2801",
        ),
        (
            tell(FrameWhat::Change(Change {
                reaction: "+".into(),
                removed: true,
                ..changed("", false)
            })),
            r#"{"change":{"room":"r","number":5,"name":"n","reaction":"+","removed":true}}"#,
            "320d0a017210051a016e32012b3801",
        ),
        (
            tell(FrameWhat::Notice(Notice {
                room: "r".into(),
                what: "role".into(),
                name: "n".into(),
                role: "owner".into(),
                by: "b".into(),
                private: true,
                slow_ms: 5,
            })),
            r#"{"notice":{"room":"r","what":"role","name":"n","role":"owner","by":"b","private":true,"slowMs":5}}"#,
            "3a1a0a01721204726f6c651a016e22056f776e65722a016230013805",
        ),
    ]
}

fn direct(text: &'static str) -> Message<'static> {
    Message { sender: "ann".into(), text: text.into(), at_ms: Millis(5), ..Message::default() }
}

fn changed(text: &'static str, deleted: bool) -> Change<'static> {
    let (room, name) = ("r".into(), "n".into());
    Change { room, number: 5, name, text: text.into(), deleted, ..Change::default() }
}

pub(super) fn answers() -> Vec<(Frame<'static>, &'static str, &'static str)> {
    plain_answers().into_iter().chain(details()).collect()
}

fn plain_answers() -> Vec<(Frame<'static>, &'static str, &'static str)> {
    use AnswerWhat as A;
    let at_ms = Millis(1_700_000_000_000);
    vec![
        (
            answer(1, A::Error(Error { code: "denied".into(), text: "no".into() })),
            r#"{"answer":{"id":1,"error":{"code":"denied","text":"no"}}}"#,
            "1a100801120c0a0664656e69656412026e6f",
        ),
        (
            answer(
                1,
                A::Welcome(Welcome {
                    name: "a".into(),
                    token: "t".into(),
                    expires_ms: Millis(5),
                    told: 0,
                }),
            ),
            r#"{"answer":{"id":1,"welcome":{"name":"a","token":"t","expiresMs":"5"}}}"#,
            "1a0c08011a080a01611201741805",
        ),
        (
            answer(
                2,
                A::Joined(Joined {
                    number: 1,
                    messages: vec![message(1, "x")],
                    people: vec![person("b", "")],
                    ..Joined::default()
                }),
            ),
            r#"{"answer":{"id":2,"joined":{"number":1,"messages":[{"room":"live","number":1,"sender":"ann","text":"x","atMs":"1700000000000"}],"people":[{"name":"b"}]}}}"#,
            "1a2408022220080112170a046c69766510011a03616e6e2201782880d095ffbc311a030a0162",
        ),
        (answer(3, A::Done(Done {})), r#"{"answer":{"id":3,"done":{}}}"#, "1a0408032a00"),
        (
            answer(4, A::Said(Said { number: 7, at_ms })),
            r#"{"answer":{"id":4,"said":{"number":7,"atMs":"1700000000000"}}}"#,
            "1a0d080432090807 1080d095ffbc31",
        ),
        (
            answer(5, A::History(History { messages: vec![Message::default()] })),
            r#"{"answer":{"id":5,"history":{"messages":[{}]}}}"#,
            "1a0608053a020a00",
        ),
        (
            answer(6, A::Members(Members { people: vec![person("b", "")] })),
            r#"{"answer":{"id":6,"members":{"people":[{"name":"b"}]}}}"#,
            "1a09080642050a030a0162",
        ),
        (
            answer(7, A::Pong(Pong { at_ms: Millis(1) })),
            r#"{"answer":{"id":7,"pong":{"atMs":"1"}}}"#,
            "1a0608074a020801",
        ),
        (
            answer(8, A::Avatar(Avatar { picture: picture() })),
            r#"{"answer":{"id":8,"avatar":{"picture":"AQL/"}}}"#,
            "1a09080852050a030102ff",
        ),
    ]
}

/// Answers about people, their messages and their rooms.
fn details() -> Vec<(Frame<'static>, &'static str, &'static str)> {
    use AnswerWhat as A;
    vec![
        (
            answer(1, A::Welcome(Welcome { told: 6, ..Welcome::default() })),
            r#"{"answer":{"id":1,"welcome":{"told":6}}}"#,
            "1a0608011a022006",
        ),
        (
            answer(
                2,
                A::Joined(Joined { reads: reads(), role: "owner".into(), ..Joined::default() }),
            ),
            r#"{"answer":{"id":2,"joined":{"reads":[{"number":9,"name":"n"}],"role":"owner"}}}"#,
            "1a120802220e220510091a016e2a056f776e6572",
        ),
        (
            answer(5, A::History(History { messages: vec![edited()] })),
            r#"{"answer":{"id":5,"history":{"messages":[{"number":1,"editedMs":"6","deleted":true,"reactions":[{"reaction":"+","names":["n"]}]}]}}}"#,
            "1a1408053a100a0e1001380640014a060a012b12016e",
        ),
        (
            answer(9, A::Rights(Rights { rights: vec![right()], private: true, slow_ms: 5 })),
            r#"{"answer":{"id":9,"rights":{"rights":[{"name":"n","role":"member"}],"private":true,"slowMs":5}}}"#,
            "1a1508095a110a0b0a016e12066d656d62657210011805",
        ),
        (
            answer(10, A::Rooms(Rooms { rooms: vec![a_room()] })),
            r#"{"answer":{"id":10,"rooms":{"rooms":[{"name":"r","number":1,"people":2,"read":3,"private":true,"role":"owner"}]}}}"#,
            "1a18080a62140a120a0172100118022003280132056f776e6572",
        ),
    ]
}

fn reads() -> Vec<Read<'static>> {
    vec![Read { number: 9, name: "n".into(), ..Read::default() }]
}

fn edited() -> Message<'static> {
    let reactions = vec![Reaction { reaction: "+".into(), names: vec!["n".into()] }];
    let edited_ms = Millis(6);
    Message { number: 1, edited_ms, deleted: true, reactions, ..Message::default() }
}

fn right() -> Right<'static> {
    Right { name: "n".into(), role: "member".into() }
}

fn a_room() -> Room<'static> {
    let (name, role) = ("r".into(), "owner".into());
    Room { name, number: 1, people: 2, read: 3, private: true, role }
}
