//! Mistakes in what is said to a target: the plan tells them, with file, line and column, before
//! anything is started.

use crate::rig::Folder;

const SCENARIO: &str = "about: a test
target: {url: \"ws://127.0.0.1:9/\", codec: CODEC}
protocol: websocket
websocket: talk.yaml
rooms: [live]
crowds: {people: {size: 2, journey: [login, {join: live}, {say: live}]}}
timeline: [{run: people at once}]
";

const TALK: &str = "codec: json
proto: {file: talk.proto, message: Talk}
opening: {answer: {kind: welcome}}
verbs:
  join: {send: {kind: join, room: {name: \"{room}\"}}}
  say:
    send: {kind: say, count: 3, text: \"{text}\"}
    answer: {kind: said, room.name: \"{room}\"}
    why: text
replies:
  - {when: {kind: ping}, send: {kind: pong}}
";

const PROTO: &str = "syntax = \"proto3\";
message Room { string name = 1; }
message Talk { string kind = 1; Room room = 2; string text = 3; uint32 count = 4; }
";

/// One slip: the codec, what is replaced by what in the description, the reason and its place.
struct Slip(&'static str, &'static str, &'static str, &'static str, &'static str);

const SLIPS: &[Slip] = &[
    Slip("protobuf", "text: \"{text}\"", "words: \"{text}\"", "no field `words`", "talk.yaml:7:33"),
    Slip("protobuf", "{name: \"", "{title: \"", "no field `title`", "talk.yaml:5:36"),
    Slip("protobuf", "room.name:", "room.title:", "no field `title`", "talk.yaml:8:26"),
    Slip("protobuf", "why: text", "why: words", "no field `words`", "talk.yaml:9:5"),
    Slip("protobuf", "count: 3", "count: three", "`three` does not fit", "talk.yaml:7:23"),
    Slip("protobuf", "message: Talk", "message: Tale", "no message `Tale`", "talk.yaml:2:27"),
    Slip("protobuf", "{kind: welcome}", "{kin: welcome}", "no field `kin`", "talk.yaml:3:20"),
    Slip("protobuf", "send: {kind: pong}", "send: pong", "written as a map", "talk.yaml:11:26"),
    Slip("protobuf", "{kind: ping}", "{kino: ping}", "no field `kino`", "talk.yaml:11:13"),
    Slip(
        "text",
        "opening: {answer: {kind: welcome}}\n",
        "",
        "says a text, not a map",
        "talk.yaml:4:10",
    ),
    Slip("text", "x", "x", "known by how they begin", "talk.yaml:3:11"),
    Slip("json", "\"{text}\"", "\"{txt}\"", "no blank `{txt}`", "talk.yaml:7:41"),
    Slip("protobuf", "file: talk.proto", "file: broken.proto", "broken", "talk.yaml:2:9"),
];

#[test]
fn what_a_description_cannot_be_is_told_by_the_plan() {
    let folder = Folder::new("foreseen");
    folder.write("talk.proto", PROTO);
    folder.write("broken.proto", "message broken {");
    let plan = |codec: &str, talk: &str| {
        folder.write("talk.yaml", talk);
        folder.write("scenario.yaml", &SCENARIO.replace("CODEC", codec));
        folder.throng(["plan", "scenario.yaml"])
    };
    for codec in ["json", "protobuf"] {
        let answer = plan(codec, TALK);
        assert_eq!(answer.code, Some(0), "{codec}: {}", answer.stderr);
    }
    for Slip(codec, right, wrong, reason, place) in SLIPS {
        assert!(TALK.contains(right), "{right}");
        let answer = plan(codec, &TALK.replacen(right, wrong, 1));
        assert_eq!(answer.code, Some(2), "{wrong}: {}", answer.stderr);
        let told = answer.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(reason) && told.contains(place), "{wrong}: {}", answer.stderr);
    }
}

#[test]
fn what_an_application_has_no_event_for_is_told_by_the_plan() {
    let folder = Folder::new("unsaid");
    let journey = "[login, {join: typing}, {choose: {50%: {say: joined}, 50%: VERB}}]";
    let scenario = |map: &str, verb: &str| {
        format!(
            "about: a test\ntarget: ws://127.0.0.1:9/\nprotocol: socketio\n{map}rooms: [typing]\n\
             crowds:\n  people:\n    size: 2\n    journey: {}\ntimeline: [{{run: people at once}}]\n",
            journey.replace("VERB", verb)
        )
    };
    let map =
        "socketio: {join: {emit: in}, say: {emit: [says, \"{text}\"]}, members: {emit: who}}\n";
    for (map, verb, place) in [
        ("", "leave", None),
        (map, "members", None),
        ("", "members", Some("scenario.yaml:8:73")),
        ("", "{typing: typing}", Some("scenario.yaml:8:74")),
        (map, "leave", Some("scenario.yaml:9:73")),
    ] {
        folder.write("scenario.yaml", &scenario(map, verb));
        let answer = folder.throng(["plan", "scenario.yaml"]);
        let told = &answer.stderr;
        match place {
            None => assert_eq!(answer.code, Some(0), "{verb}: {told}"),
            Some(place) => {
                assert_eq!(answer.code, Some(2), "{verb}: {told}");
                assert!(told.contains(place) && told.contains("{emit: …}"), "{verb}: {told}");
            }
        }
    }
}
