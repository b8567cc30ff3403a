//! Recording a good conversation, and playing it again: whole, torn, glued, and on a used session.

use super::rig::{OTHERS, Rig, Trace};
use super::{Peer, Row, rows};
use model::{Event, Request, Tick, Token};

/// One step of a conversation: the person does the next thing, or a message of the target arrives.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Deed(usize),
    Message(Vec<u8>),
}

/// A conversation with its outcome.
pub(super) struct Record {
    pub(super) steps: Vec<Step>,
    pub(super) trace: Trace,
}

/// Lets a session talk to a fair peer, and writes down what the peer said.
pub(super) fn converse(rig: &mut Rig<'_>, row: &Row) -> Vec<Step> {
    let mut peer: Box<dyn Peer> = (row.peer)();
    let mut steps = Vec::new();
    let mut from = rig.trace.written.len();
    for (place, &deed) in row.deeds.iter().enumerate() {
        rig.act(deed);
        steps.push(Step::Deed(place));
        loop {
            let written = rig.take_written(&mut from);
            if written.is_empty() {
                break;
            }
            for message in peer.receive(&written) {
                rig.feed(&message);
                steps.push(Step::Message(message));
            }
        }
    }
    steps
}

/// The good conversation of a row.
pub(super) fn record(row: &Row) -> Record {
    let mut rig = Rig::new(row);
    let steps = converse(&mut rig, row);
    Record { steps, trace: std::mem::take(&mut rig.trace) }
}

/// Plays a conversation; `alter` says in which pieces the message at a place arrives.
pub(super) fn replay<'r>(
    row: &'r Row,
    steps: &[Step],
    mut alter: impl FnMut(usize, &[u8]) -> Vec<Vec<u8>>,
) -> Rig<'r> {
    let mut rig = Rig::new(row);
    for (place, step) in steps.iter().enumerate() {
        match step {
            Step::Deed(deed) => rig.act(row.deeds[*deed]),
            Step::Message(bytes) => {
                alter(place, bytes).iter().for_each(|piece| rig.feed(piece));
            }
        }
        if !rig.is_open() {
            break;
        }
    }
    rig
}

/// Places of the messages among the steps.
pub(super) fn messages(steps: &[Step]) -> Vec<usize> {
    let is_message = |place: &usize| matches!(steps[*place], Step::Message(_));
    (0..steps.len()).filter(is_message).collect()
}

/// What happened, without the numbers and times that differ from one conversation to the next.
pub(super) fn shape(trace: &Trace) -> Vec<Event> {
    let mut events = trace.events.clone();
    for event in &mut events {
        match event {
            Event::Done(token, _) => *token = Token(0),
            Event::Answered { sent, .. } => *sent = Tick::ZERO,
            _ => {}
        }
    }
    events
}

/// The conversation on a session that has had another, which must not have left anything behind.
pub(super) fn begin_anew(rig: &mut Rig<'_>, row: &Row, good: &Record, what: &str) {
    rig.disconnected();
    converse(rig, row);
    assert_eq!(rig.trace.close, Some(Ok(())), "anew after {what}");
    assert_eq!(rig.owed(), [], "anew after {what}");
    let mut events = shape(&rig.trace);
    // What the old conversation owed fails by the time the new login is over.
    let is_over = |event: &Event| matches!(event, Event::Done(_, Ok(())));
    let mut over = events.iter().position(is_over).unwrap_or(events.len());
    while let Some(place) = events[..over].iter().position(|event| matches!(event, Event::Done(..)))
    {
        events.remove(place);
        over -= 1;
    }
    assert_eq!(events, shape(&good.trace), "anew after {what}");
}

fn check(row: &Row, expect: &Trace, rig: &Rig<'_>, how: &str) {
    let name = row.protocol.facts().name;
    assert_eq!(rig.trace.events, expect.events, "{name}: {how}");
    assert_eq!(rig.trace, *expect, "{name}: {how}");
}

#[test]
fn a_good_conversation_is_good() {
    for row in rows() {
        let mut rig = Rig::new(&row);
        let steps = converse(&mut rig, &row);
        assert_eq!(rig.trace.close, Some(Ok(())), "{:?}", rig.trace.events);
        assert_eq!(rig.owed(), [], "{:?}", rig.trace.events);
        assert!(messages(&steps).len() > 5, "the peer is too silent to be a test");
        let is_bad = |event: &&Event| {
            matches!(event, Event::Done(_, Err(_)))
                || matches!(event, Event::Answered { outcome: Err(_), .. })
        };
        assert_eq!(rig.trace.events.iter().find(is_bad), None);
        let is_delivery = |event: &&Event| matches!(event, Event::Delivery(_));
        let delivered = rig.trace.events.iter().filter(is_delivery).count();
        let echo = usize::from(row.protocol.manners(&row.target_options()).echo);
        let heard = |deed: &Request<'_>| match deed {
            Request::Say { .. } => echo,
            Request::Tell { .. } => OTHERS,
            Request::Multicast { .. } | Request::Presence { list: Some(_), .. } => 1,
            _ => 0,
        };
        let heard: usize = row.deeds.iter().map(heard).sum();
        assert_eq!(delivered, heard, "replays are no deliveries, echoes are");
        let expect = rig.trace;
        check(&row, &expect, &replay(&row, &steps, |_, bytes| vec![bytes.into()]), "again");
    }
}

#[test]
fn torn_bytes_make_no_difference() {
    for row in rows() {
        let good = record(&row);
        let bytewise = |_: usize, bytes: &[u8]| bytes.iter().map(|&byte| vec![byte]).collect();
        check(&row, &good.trace, &replay(&row, &good.steps, bytewise), "byte by byte");
        let longest = good.steps.iter().map(|step| match step {
            Step::Message(bytes) => bytes.len(),
            Step::Deed(_) => 0,
        });
        for cut in 1..longest.max().unwrap() {
            let split = |_: usize, bytes: &[u8]| {
                let (left, right) = bytes.split_at(cut.min(bytes.len()));
                vec![left.to_vec(), right.to_vec()]
            };
            check(&row, &good.trace, &replay(&row, &good.steps, split), &format!("cut at {cut}"));
        }
    }
}

#[test]
fn glued_messages_make_no_difference() {
    for row in rows() {
        let good = record(&row);
        let mut glued: Vec<Step> = Vec::new();
        for step in &good.steps {
            match (glued.last_mut(), step) {
                (Some(Step::Message(before)), Step::Message(bytes)) => before.extend(bytes),
                _ => glued.push(step.clone()),
            }
        }
        check(&row, &good.trace, &replay(&row, &glued, |_, bytes| vec![bytes.into()]), "glued");
    }
}

/// Closed at each byte: until a message is whole there is no fault, and whatever the session was
/// in the middle of, it can begin anew.
#[test]
fn a_conversation_may_end_anywhere_and_begin_anew() {
    for row in rows() {
        let good = record(&row);
        for place in messages(&good.steps) {
            let Step::Message(bytes) = &good.steps[place] else { unreachable!() };
            let before = &good.steps[..place];
            for is_told in [false, true] {
                let mut rig = replay(&row, before, |_, bytes| vec![bytes.into()]);
                for &byte in &bytes[..bytes.len() - 1] {
                    rig.feed(&[byte]);
                    assert_eq!(rig.fault(), None, "message {place}");
                }
                // Whoever keeps the conversation finds a target that does not.
                if is_told {
                    rig.lost();
                }
                begin_anew(&mut rig, &row, &good, &format!("message {place}"));
            }
        }
    }
}

/// Without a conversation nothing is said, and everything that was asked is answered for.
#[test]
fn nothing_can_be_asked_before_or_after_a_conversation() {
    for row in rows() {
        let name = row.protocol.facts().name;
        let (login, others) = row.deeds.split_first().unwrap();
        let (_, asked) = others.split_last().unwrap();
        let check = |rig: &mut Rig<'_>, when: &str| {
            for &deed in asked {
                let before = rig.trace.written.len();
                rig.act(deed);
                assert_eq!(rig.owed(), [], "{name}: {deed:?} {when}");
                assert_eq!(rig.trace.written.len(), before, "{name}: {deed:?} {when}");
            }
        };
        check(&mut Rig::new(&row), "before the login");
        let mut rig = Rig::new(&row);
        converse(&mut rig, &row);
        check(&mut rig, "after the good-bye");
        let mut rig = Rig::new(&row);
        rig.act(*login);
        let login_token = rig.owed().to_vec();
        let before = rig.trace.written.len();
        for &deed in asked {
            rig.act(deed);
            assert_eq!(rig.owed(), login_token, "{name}: {deed:?} before the upgrade");
        }
        assert_eq!(rig.trace.written.len(), before, "{name}: said before the upgrade");
    }
}
