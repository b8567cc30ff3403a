//! Conversations about rights: every request, every notice, every refusal.

use super::talks::play;
use crate::{Config, Presence};

/// Without announcements of who came and went: what is looked at here are rights.
fn quiet() -> Config {
    Config { presence: Presence::Off, ..Config::default() }
}

/// Ann owns a room, and Bob has an account.
const OWNED: &str = r#"
    ann> {"id":1,"login":{"name":"ann"}}
    ann< {"answer":{"id":1,"welcome":{"name":"ann","token":"*","expiresMs":"1700086400000"}}}
    bob> {"id":1,"login":{"name":"bob"}}
    bob< {"answer":{"id":1,"welcome":{"name":"bob","token":"*","expiresMs":"1700086400000"}}}
    ann> {"id":2,"create":{"room":"den"}}
    ann< {"answer":{"id":2,"done":{}}}
    ann> {"id":3,"join":{"room":"den"}}
    ann< {"answer":{"id":3,"joined":{"role":"owner"}}}
"#;

const CYD_IN: &str = r#"
    cyd> {"id":1,"login":{"name":"cyd"}}
    cyd< {"answer":{"id":1,"welcome":{"name":"cyd","token":"*","expiresMs":"1700086400000"}}}
"#;

fn play_all(config: &Config, talks: &[&str]) {
    play(config, &talks.concat());
}

#[test]
fn an_owner_makes_a_room_and_others_come_and_get_roles() {
    let talk = r#"
    ann> {"id":4,"rights":{"room":"den"}}
    ann< {"answer":{"id":4,"rights":{"rights":[{"name":"ann","role":"owner"}]}}}
    bob> {"id":4,"join":{"room":"den"}}
    bob< {"answer":{"id":4,"joined":{"role":"none"}}}
    ann> {"id":5,"grant":{"room":"den","name":"bob","role":"moderator"}}
    ann< {"answer":{"id":5,"done":{}}}
    ann< {"notice":{"room":"den","what":"role","name":"bob","role":"moderator","by":"ann"}}
    bob< {"notice":{"room":"den","what":"role","name":"bob","role":"moderator","by":"ann"}}
    ann> {"id":6,"grant":{"room":"den","name":"bob","role":"moderator"}}
    ann< {"answer":{"id":6,"done":{}}}
    bob> {"id":7,"configure":{"room":"den","slowMs":2000}}
    bob< {"answer":{"id":7,"done":{}}}
    bob< {"notice":{"room":"den","what":"configured","by":"bob","slowMs":2000}}
    ann< {"notice":{"room":"den","what":"configured","by":"bob","slowMs":2000}}
    bob> {"id":8,"rights":{"room":"den"}}
    bob< {"answer":{"id":8,"rights":{"rights":[{"name":"ann","role":"owner"},{"name":"bob","role":"moderator"}],"slowMs":2000}}}
    bob> {"id":9,"grant":{"room":"den","name":"bob","role":"none"}}
    bob< {"answer":{"id":9,"done":{}}}
    bob< {"notice":{"room":"den","what":"role","name":"bob","role":"none","by":"bob"}}
    ann< {"notice":{"room":"den","what":"role","name":"bob","role":"none","by":"bob"}}
    bob> {"id":10,"configure":{"room":"den"}}
    bob< {"answer":{"id":10,"error":{"code":"not_allowed","text":"not allowed to do this in den"}}}
    "#;
    play_all(&quiet(), &[OWNED, talk]);
}

#[test]
fn who_is_kicked_is_out_and_may_come_back() {
    let talk = r#"
    bob> {"id":4,"join":{"room":"den","members":true}}
    bob< {"answer":{"id":4,"joined":{"people":[{"name":"ann"}],"role":"none"}}}
    ann< {"presence":{"room":"den","joined":[{"name":"bob"}]}}
    ann> {"id":5,"kick":{"room":"den","name":"bob"}}
    ann< {"answer":{"id":5,"done":{}}}
    ann< {"notice":{"room":"den","what":"kicked","name":"bob","by":"ann"}}
    ann< {"presence":{"room":"den","left":["bob"]}}
    bob< {"notice":{"room":"den","what":"kicked","name":"bob","by":"ann"}}
    bob> {"id":6,"say":{"room":"den","text":"x"}}
    bob< {"answer":{"id":6,"error":{"code":"not_in_room","text":"not in den"}}}
    bob> {"id":7,"join":{"room":"den"}}
    bob< {"answer":{"id":7,"joined":{"role":"none"}}}
    ann< {"presence":{"room":"den","joined":[{"name":"bob"}]}}
    bob> {"id":8,"kick":{"room":"den","name":"ann"}}
    bob< {"answer":{"id":8,"error":{"code":"not_allowed","text":"not allowed to do this in den"}}}
    ann> {"id":9,"kick":{"room":"den","name":"ann"}}
    ann< {"notice":{"room":"den","what":"kicked","name":"ann","by":"ann"}}
    ann< {"answer":{"id":9,"done":{}}}
    bob< {"notice":{"room":"den","what":"kicked","name":"ann","by":"ann"}}
    bob< {"presence":{"room":"den","left":["ann"]}}
    "#;
    play_all(&Config::default(), &[OWNED, talk]);
}

#[test]
fn who_is_banned_is_out_and_stays_out_until_it_is_taken_back() {
    let talk = r#"
    bob> {"id":4,"join":{"room":"den"}}
    bob< {"answer":{"id":4,"joined":{"role":"none"}}}
    ann> {"id":5,"say":{"room":"den","text":"bye"}}
    ann< {"answer":{"id":5,"said":{"number":1,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"den","number":1,"sender":"ann","text":"bye","atMs":"1700000000000"}}
    bob< {"message":{"room":"den","number":1,"sender":"ann","text":"bye","atMs":"1700000000000"}}
    ann> {"id":6,"grant":{"room":"den","name":"bob","role":"banned"}}
    ann< {"answer":{"id":6,"done":{}}}
    ann< {"notice":{"room":"den","what":"role","name":"bob","role":"banned","by":"ann"}}
    bob< {"notice":{"room":"den","what":"role","name":"bob","role":"banned","by":"ann"}}
    bob> {"id":7,"join":{"room":"den"}}
    bob< {"answer":{"id":7,"error":{"code":"banned","text":"banned from den"}}}
    bob> {"id":8,"rights":{"room":"den"}}
    bob< {"answer":{"id":8,"error":{"code":"banned","text":"banned from den"}}}
    bob> {"id":9,"rooms":{}}
    bob< {"answer":{"id":9,"rooms":{"rooms":[{"name":"den","number":1,"people":1,"role":"banned"}]}}}
    ann> {"id":10,"grant":{"room":"den","name":"bob","role":"none"}}
    ann< {"answer":{"id":10,"done":{}}}
    ann< {"notice":{"room":"den","what":"role","name":"bob","role":"none","by":"ann"}}
    bob< {"notice":{"room":"den","what":"role","name":"bob","role":"none","by":"ann"}}
    bob> {"id":11,"join":{"room":"den"}}
    bob< {"answer":{"id":11,"joined":{"number":1,"role":"none"}}}
    "#;
    play_all(&quiet(), &[OWNED, talk]);
}

#[test]
fn who_is_muted_listens() {
    let talk = r#"
    ann> {"id":4,"grant":{"room":"den","name":"bob","role":"muted"}}
    ann< {"answer":{"id":4,"done":{}}}
    ann< {"notice":{"room":"den","what":"role","name":"bob","role":"muted","by":"ann"}}
    bob< {"notice":{"room":"den","what":"role","name":"bob","role":"muted","by":"ann"}}
    bob> {"id":5,"join":{"room":"den"}}
    bob< {"answer":{"id":5,"joined":{"role":"muted"}}}
    bob> {"id":6,"say":{"room":"den","text":"x"}}
    bob< {"answer":{"id":6,"error":{"code":"muted","text":"muted in den"}}}
    bob> {"id":7,"typing":{"room":"den"}}
    bob< {"answer":{"id":7,"error":{"code":"muted","text":"muted in den"}}}
    bob> {"id":8,"grant":{"room":"den","name":"bob","role":"none"}}
    bob< {"answer":{"id":8,"error":{"code":"not_allowed","text":"not allowed to do this in den"}}}
    ann> {"id":9,"say":{"room":"den","text":"a"}}
    ann< {"answer":{"id":9,"said":{"number":1,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"den","number":1,"sender":"ann","text":"a","atMs":"1700000000000"}}
    bob< {"message":{"room":"den","number":1,"sender":"ann","text":"a","atMs":"1700000000000"}}
    bob> {"id":10,"read":{"room":"den","number":1}}
    bob< {"answer":{"id":10,"done":{}}}
    bob< {"read":{"room":"den","number":1,"name":"bob"}}
    ann< {"read":{"room":"den","number":1,"name":"bob"}}
    "#;
    play_all(&quiet(), &[OWNED, talk]);
}

#[test]
fn slow_mode_holds_for_all_but_owners_and_moderators() {
    let talk = r#"
    ann> {"id":4,"configure":{"room":"den","slowMs":5000}}
    ann< {"answer":{"id":4,"done":{}}}
    ann< {"notice":{"room":"den","what":"configured","by":"ann","slowMs":5000}}
    bob> {"id":5,"join":{"room":"den"}}
    bob< {"answer":{"id":5,"joined":{"role":"none"}}}
    bob> {"id":6,"say":{"room":"den","text":"x"}}
    bob< {"answer":{"id":6,"said":{"number":1,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"den","number":1,"sender":"bob","text":"x","atMs":"1700000000000"}}
    bob< {"message":{"room":"den","number":1,"sender":"bob","text":"x","atMs":"1700000000000"}}
    bob> {"id":7,"say":{"room":"den","text":"y"}}
    bob< {"answer":{"id":7,"error":{"code":"slow_down","text":"den is slow: wait 5000 ms"}}}
    ann> {"id":8,"say":{"room":"den","text":"a"}}
    ann< {"answer":{"id":8,"said":{"number":2,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"den","number":2,"sender":"ann","text":"a","atMs":"1700000000000"}}
    bob< {"message":{"room":"den","number":2,"sender":"ann","text":"a","atMs":"1700000000000"}}
    ann> {"id":9,"say":{"room":"den","text":"b"}}
    ann< {"answer":{"id":9,"said":{"number":3,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"den","number":3,"sender":"ann","text":"b","atMs":"1700000000000"}}
    bob< {"message":{"room":"den","number":3,"sender":"ann","text":"b","atMs":"1700000000000"}}
    ann> {"id":10,"create":{"room":"fen","slowMs":21600001}}
    ann< {"answer":{"id":10,"error":{"code":"too_long","text":"slow mode is up to 21600000 ms"}}}
    ann> {"id":11,"configure":{"room":"den","slowMs":21600001}}
    ann< {"answer":{"id":11,"error":{"code":"too_long","text":"slow mode is up to 21600000 ms"}}}
    "#;
    play_all(&quiet(), &[OWNED, talk]);
}

#[test]
fn a_private_room_is_for_those_with_a_role_and_unknown_to_others() {
    let talk = r#"
    ann> {"id":4,"create":{"room":"fen","private":true}}
    ann< {"answer":{"id":4,"done":{}}}
    ann> {"id":5,"join":{"room":"fen"}}
    ann< {"answer":{"id":5,"joined":{"role":"owner"}}}
    bob> {"id":5,"join":{"room":"fen"}}
    bob< {"answer":{"id":5,"error":{"code":"no_room","text":"there is no room fen"}}}
    bob> {"id":6,"rights":{"room":"fen"}}
    bob< {"answer":{"id":6,"error":{"code":"no_room","text":"there is no room fen"}}}
    bob> {"id":7,"kick":{"room":"fen","name":"ann"}}
    bob< {"answer":{"id":7,"error":{"code":"no_room","text":"there is no room fen"}}}
    bob> {"id":8,"configure":{"room":"fen"}}
    bob< {"answer":{"id":8,"error":{"code":"no_room","text":"there is no room fen"}}}
    bob> {"id":9,"grant":{"room":"fen","name":"bob","role":"member"}}
    bob< {"answer":{"id":9,"error":{"code":"no_room","text":"there is no room fen"}}}
    bob> {"id":10,"members":{"room":"fen"}}
    bob< {"answer":{"id":10,"error":{"code":"not_in_room","text":"not in fen"}}}
    bob> {"id":11,"rooms":{}}
    bob< {"answer":{"id":11,"rooms":{"rooms":[{"name":"den","people":1,"role":"none"}]}}}
    ann> {"id":12,"grant":{"room":"fen","name":"bob","role":"member"}}
    ann< {"answer":{"id":12,"done":{}}}
    ann< {"notice":{"room":"fen","what":"role","name":"bob","role":"member","by":"ann"}}
    bob< {"notice":{"room":"fen","what":"role","name":"bob","role":"member","by":"ann"}}
    bob> {"id":13,"join":{"room":"fen"}}
    bob< {"answer":{"id":13,"joined":{"role":"member"}}}
    bob> {"id":14,"rooms":{}}
    bob< {"answer":{"id":14,"rooms":{"rooms":[{"name":"den","people":1,"role":"none"},{"name":"fen","people":2,"private":true,"role":"member"}]}}}
    bob> {"id":15,"rights":{"room":"fen"}}
    bob< {"answer":{"id":15,"rights":{"rights":[{"name":"ann","role":"owner"},{"name":"bob","role":"member"}],"private":true}}}
    bob> {"id":16,"grant":{"room":"fen","name":"bob","role":"none"}}
    bob< {"notice":{"room":"fen","what":"role","name":"bob","role":"none","by":"bob"}}
    bob< {"answer":{"id":16,"done":{}}}
    ann< {"notice":{"room":"fen","what":"role","name":"bob","role":"none","by":"bob"}}
    bob> {"id":17,"say":{"room":"fen","text":"x"}}
    bob< {"answer":{"id":17,"error":{"code":"not_in_room","text":"not in fen"}}}
    "#;
    play_all(&quiet(), &[OWNED, talk]);
}

#[test]
fn when_a_room_becomes_private_those_without_a_role_are_out() {
    let talk = r#"
    bob> {"id":4,"join":{"room":"den"}}
    bob< {"answer":{"id":4,"joined":{"role":"none"}}}
    cyd> {"id":4,"join":{"room":"den"}}
    cyd< {"answer":{"id":4,"joined":{"role":"none"}}}
    ann> {"id":5,"grant":{"room":"den","name":"bob","role":"moderator"}}
    ann< {"answer":{"id":5,"done":{}}}
    ann< {"notice":{"room":"den","what":"role","name":"bob","role":"moderator","by":"ann"}}
    bob< {"notice":{"room":"den","what":"role","name":"bob","role":"moderator","by":"ann"}}
    cyd< {"notice":{"room":"den","what":"role","name":"bob","role":"moderator","by":"ann"}}
    bob> {"id":6,"configure":{"room":"den","private":true}}
    bob< {"answer":{"id":6,"error":{"code":"not_allowed","text":"not allowed to do this in den"}}}
    ann> {"id":7,"configure":{"room":"den","private":true,"slowMs":10}}
    ann< {"answer":{"id":7,"done":{}}}
    ann< {"notice":{"room":"den","what":"configured","by":"ann","private":true,"slowMs":10}}
    bob< {"notice":{"room":"den","what":"configured","by":"ann","private":true,"slowMs":10}}
    cyd< {"notice":{"room":"den","what":"configured","by":"ann","private":true,"slowMs":10}}
    cyd> {"id":8,"say":{"room":"den","text":"x"}}
    cyd< {"answer":{"id":8,"error":{"code":"not_in_room","text":"not in den"}}}
    bob> {"id":9,"configure":{"room":"den","private":true}}
    bob< {"answer":{"id":9,"done":{}}}
    bob< {"notice":{"room":"den","what":"configured","by":"bob","private":true}}
    ann< {"notice":{"room":"den","what":"configured","by":"bob","private":true}}
    "#;
    play_all(&quiet(), &[OWNED, CYD_IN, talk]);
}

#[test]
fn what_goes_wrong_is_answered() {
    let talk = r#"
    bob> {"id":4,"create":{"room":"den","private":true}}
    bob< {"answer":{"id":4,"error":{"code":"room_exists","text":"there is a room den"}}}
    bob> {"id":5,"create":{}}
    bob< {"answer":{"id":5,"error":{"code":"bad_room","text":"a room's name has 1 to 64 bytes, none of control"}}}
    bob> {"id":6,"join":{"room":"live"}}
    bob< {"answer":{"id":6,"joined":{}}}
    bob> {"id":7,"create":{"room":"live"}}
    bob< {"answer":{"id":7,"error":{"code":"room_exists","text":"there is a room live"}}}
    bob> {"id":8,"rights":{"room":"live"}}
    bob< {"answer":{"id":8,"error":{"code":"open_room","text":"live has no owner: nobody has rights in it"}}}
    bob> {"id":9,"kick":{"room":"live","name":"ann"}}
    bob< {"answer":{"id":9,"error":{"code":"open_room","text":"live has no owner: nobody has rights in it"}}}
    bob> {"id":10,"rights":{"room":"no"}}
    bob< {"answer":{"id":10,"error":{"code":"no_room","text":"there is no room no"}}}
    bob> {"id":11,"grant":{"room":"no","name":"ann","role":"owner"}}
    bob< {"answer":{"id":11,"error":{"code":"no_room","text":"there is no room no"}}}
    ann> {"id":12,"grant":{"room":"den","name":"bob","role":"boss"}}
    ann< {"answer":{"id":12,"error":{"code":"bad_role","text":"a role is owner, moderator, member, muted, banned or none"}}}
    ann> {"id":13,"grant":{"room":"den","name":"nobody","role":"member"}}
    ann< {"answer":{"id":13,"error":{"code":"unknown_name","text":"there is nobody of that name"}}}
    ann> {"id":14,"kick":{"room":"den","name":"nobody"}}
    ann< {"answer":{"id":14,"error":{"code":"unknown_name","text":"there is nobody of that name"}}}
    ann> {"id":15,"grant":{"room":"den","name":"ann","role":"member"}}
    ann< {"answer":{"id":15,"error":{"code":"last_owner","text":"den has no other owner: make somebody one first"}}}
    ann> {"id":16,"grant":{"room":"den","name":"ann"}}
    ann< {"answer":{"id":16,"error":{"code":"bad_role","text":"a role is owner, moderator, member, muted, banned or none"}}}
    cyd> {"id":1,"create":{"room":"fen"}}
    cyd< {"answer":{"id":1,"error":{"code":"login_first","text":"log in first"}}}
    "#;
    play_all(&quiet(), &[OWNED, talk]);
}

#[test]
fn rooms_are_listed_by_name_in_pages() {
    let talk = r#"
    bob> {"id":4,"join":{"room":"zoo"}}
    bob< {"answer":{"id":4,"joined":{}}}
    bob> {"id":5,"say":{"room":"zoo","text":"x"}}
    bob< {"answer":{"id":5,"said":{"number":1,"atMs":"1700000000000"}}}
    bob< {"message":{"room":"zoo","number":1,"sender":"bob","text":"x","atMs":"1700000000000"}}
    ann> {"id":6,"create":{"room":"fen","private":true}}
    ann< {"answer":{"id":6,"done":{}}}
    bob> {"id":7,"join":{"room":"bar"}}
    bob< {"answer":{"id":7,"joined":{}}}
    bob> {"id":8,"rooms":{"limit":2}}
    bob< {"answer":{"id":8,"rooms":{"rooms":[{"name":"bar","people":1},{"name":"den","people":1,"role":"none"}]}}}
    bob> {"id":9,"rooms":{"after":"den","limit":2}}
    bob< {"answer":{"id":9,"rooms":{"rooms":[{"name":"zoo","number":1,"people":1}]}}}
    bob> {"id":10,"rooms":{"after":"zoo"}}
    bob< {"answer":{"id":10,"rooms":{}}}
    ann> {"id":11,"rooms":{"after":"c"}}
    ann< {"answer":{"id":11,"rooms":{"rooms":[{"name":"den","people":1,"role":"owner"},{"name":"fen","private":true,"role":"owner"},{"name":"zoo","number":1,"people":1}]}}}
    "#;
    play_all(&quiet(), &[OWNED, talk]);
}

#[test]
fn presence_goes_its_way_whichever_it_is() {
    // Announced at once: the departure comes before the notice.
    let eager = r#"
    bob> {"id":4,"join":{"room":"den"}}
    bob< {"answer":{"id":4,"joined":{"role":"none"}}}
    ann< {"presence":{"room":"den","joined":[{"name":"bob"}]}}
    ann> {"id":5,"grant":{"room":"den","name":"bob","role":"banned"}}
    ann< {"answer":{"id":5,"done":{}}}
    ann< {"presence":{"room":"den","left":["bob"]}}
    ann< {"notice":{"room":"den","what":"role","name":"bob","role":"banned","by":"ann"}}
    bob< {"notice":{"room":"den","what":"role","name":"bob","role":"banned","by":"ann"}}
    "#;
    let config = Config { presence: Presence::Eager, ..Config::default() };
    play_all(&config, &[OWNED, eager]);
}

#[test]
fn who_is_muted_changes_nothing_and_moderators_delete_what_those_below_have_said() {
    let talk = r#"
    bob> {"id":4,"join":{"room":"den"}}
    bob< {"answer":{"id":4,"joined":{"role":"none"}}}
    bob> {"id":5,"say":{"room":"den","text":"x"}}
    bob< {"answer":{"id":5,"said":{"number":1,"atMs":"1700000000000"}}}
    bob< {"message":{"room":"den","number":1,"sender":"bob","text":"x","atMs":"1700000000000"}}
    ann< {"message":{"room":"den","number":1,"sender":"bob","text":"x","atMs":"1700000000000"}}
    ann> {"id":6,"grant":{"room":"den","name":"bob","role":"muted"}}
    ann< {"answer":{"id":6,"done":{}}}
    ann< {"notice":{"room":"den","what":"role","name":"bob","role":"muted","by":"ann"}}
    bob< {"notice":{"room":"den","what":"role","name":"bob","role":"muted","by":"ann"}}
    bob> {"id":7,"edit":{"room":"den","number":1,"text":"y"}}
    bob< {"answer":{"id":7,"error":{"code":"muted","text":"muted in den"}}}
    bob> {"id":8,"react":{"room":"den","number":1,"reaction":"+1"}}
    bob< {"answer":{"id":8,"error":{"code":"muted","text":"muted in den"}}}
    ann> {"id":9,"delete":{"room":"den","number":1}}
    ann< {"answer":{"id":9,"done":{}}}
    ann< {"change":{"room":"den","number":1,"name":"ann","deleted":true,"atMs":"1700000000000"}}
    bob< {"change":{"room":"den","number":1,"name":"ann","deleted":true,"atMs":"1700000000000"}}
    ann> {"id":10,"say":{"room":"den","text":"a"}}
    ann< {"answer":{"id":10,"said":{"number":2,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"den","number":2,"sender":"ann","text":"a","atMs":"1700000000000"}}
    bob< {"message":{"room":"den","number":2,"sender":"ann","text":"a","atMs":"1700000000000"}}
    ann> {"id":11,"grant":{"room":"den","name":"bob","role":"moderator"}}
    ann< {"answer":{"id":11,"done":{}}}
    ann< {"notice":{"room":"den","what":"role","name":"bob","role":"moderator","by":"ann"}}
    bob< {"notice":{"room":"den","what":"role","name":"bob","role":"moderator","by":"ann"}}
    bob> {"id":12,"delete":{"room":"den","number":2}}
    bob< {"answer":{"id":12,"error":{"code":"not_yours","text":"only who said it can change it"}}}
    ann> {"id":13,"edit":{"room":"den","number":1,"text":"b"}}
    ann< {"answer":{"id":13,"error":{"code":"no_message","text":"there is no message 1"}}}
    bob> {"id":14,"read":{"room":"den","number":2}}
    bob< {"answer":{"id":14,"done":{}}}
    bob< {"read":{"room":"den","number":2,"name":"bob"}}
    ann< {"read":{"room":"den","number":2,"name":"bob"}}
    bob> {"id":15,"rooms":{}}
    bob< {"answer":{"id":15,"rooms":{"rooms":[{"name":"den","number":2,"people":2,"read":2,"role":"moderator"}]}}}
    "#;
    play_all(&quiet(), &[OWNED, talk]);
}

#[test]
fn slow_mode_does_not_count_what_was_said_before_with_the_same_key() {
    let talk = r#"
    ann> {"id":4,"configure":{"room":"den","slowMs":5000}}
    ann< {"answer":{"id":4,"done":{}}}
    ann< {"notice":{"room":"den","what":"configured","by":"ann","slowMs":5000}}
    bob> {"id":5,"join":{"room":"den"}}
    bob< {"answer":{"id":5,"joined":{"role":"none"}}}
    bob> {"id":6,"say":{"room":"den","text":"x","replyTo":7}}
    bob< {"answer":{"id":6,"error":{"code":"no_message","text":"there is no message 7"}}}
    bob> {"id":7,"say":{"room":"den","text":"x","key":"k"}}
    bob< {"answer":{"id":7,"said":{"number":1,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"den","number":1,"sender":"bob","text":"x","atMs":"1700000000000"}}
    bob< {"message":{"room":"den","number":1,"sender":"bob","text":"x","atMs":"1700000000000"}}
    bob> {"id":8,"say":{"room":"den","text":"y"}}
    bob< {"answer":{"id":8,"error":{"code":"slow_down","text":"den is slow: wait 5000 ms"}}}
    "#;
    play_all(&quiet(), &[OWNED, talk]);
}
