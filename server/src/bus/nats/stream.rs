//! The log as a stream of JetStream: its name, what is asked about it, and what is answered.

use serde::Deserialize;
use serde_json::json;

use super::wire::Message;

/// From one sign of life of an idle log to the next, in nanoseconds.
const IDLE_BEAT_NS: u64 = 1_000_000_000;
/// `err_code` of JetStream: there is no such stream.
const NO_STREAM: u32 = 10_059;

/// The names of one service.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// The stream.
    pub(crate) stream: String,
    /// Where entries of the log are said.
    pub(crate) log: String,
    /// Where news are said.
    pub(crate) news: String,
}

impl Names {
    /// The names that go with that of a service; it must be a word.
    pub(crate) fn new(service: &str) -> Result<Names, String> {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if service.is_empty() || service.len() > 64 || !service.chars().all(is_fine) {
            return Err(format!(
                "a service's name has 1 to 64 letters, digits, `-` and `_`: {service:?} has not"
            ));
        }
        let part = |part: &str| format!("{service}.{part}");
        Ok(Names { stream: format!("{service}_log"), log: part("log"), news: part("news") })
    }
}

/// What there is of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// What tells it from all other logs: its name, and when it was made.
    pub(crate) log: String,
    /// Of the first entry that is left.
    pub(crate) first: u64,
    /// Of the last entry; 0 if there never was one.
    pub(crate) last: u64,
}

#[derive(Deserialize)]
struct Answer {
    error: Option<ApiError>,
    config: Option<Config>,
    #[serde(default)]
    created: String,
    state: Option<Sequences>,
}

#[derive(Deserialize)]
struct ApiError {
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Config {
    name: String,
    #[serde(default)]
    subjects: Vec<String>,
}

#[derive(Deserialize)]
struct Sequences {
    first_seq: u64,
    last_seq: u64,
}

/// Asks for a stream, as JSON: kept on disk, for good; nobody may take entries out of it.
pub(crate) fn create(names: &Names) -> Vec<u8> {
    let config = json!({
        "name": names.stream, "subjects": [names.log], "retention": "limits", "storage": "file",
        "discard": "new", "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0,
        "max_msg_size": -1, "num_replicas": 1, "deny_delete": true,
    });
    config.to_string().into_bytes()
}

/// Asks for every entry behind `position`, as JSON: as they come, without acknowledgments, and not
/// faster than we say that we have them.
pub(crate) fn consume(names: &Names, deliver: &str, position: u64) -> Vec<u8> {
    let ask = json!({
        "stream_name": names.stream,
        "config": {
            "deliver_subject": deliver, "deliver_policy": "by_start_sequence",
            "opt_start_seq": position + 1, "ack_policy": "none", "replay_policy": "instant",
            "max_deliver": 1, "flow_control": true, "idle_heartbeat": IDLE_BEAT_NS,
            "mem_storage": true, "num_replicas": 1,
        },
    });
    ask.to_string().into_bytes()
}

/// The state of the log from an answer; `None` if there is no log yet.
pub(crate) fn state(names: &Names, answer: &[u8]) -> Result<Option<State>, String> {
    let answer: Answer = parse(answer)?;
    match (answer.error, answer.config, answer.state) {
        (Some(error), ..) if error.err_code == NO_STREAM => Ok(None),
        (Some(error), ..) => Err(format!("JetStream says: {}", error.description)),
        (None, Some(config), Some(state)) => {
            if config.subjects != [names.log.clone()] {
                let why = format!("the stream {} is of {:?}", config.name, config.subjects);
                return Err(format!("{why}, and not of {:?} alone", names.log));
            }
            let log = format!("{} of {}", config.name, answer.created);
            Ok(Some(State { log, first: state.first_seq, last: state.last_seq }))
        }
        _ => Err("JetStream says nothing of the stream".to_owned()),
    }
}

/// Why something was not done, if it was not.
pub(crate) fn refusal(answer: &[u8]) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: Option<ApiError>,
    }
    match parse::<Refusal>(answer)?.error {
        Some(error) => Err(format!("JetStream says: {}", error.description)),
        None => Ok(()),
    }
}

fn parse<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(answer).map_err(|why| format!("JetStream answers no JSON: {why}"))
}

/// The place in the log of a message that JetStream has delivered, by where its acknowledgment
/// would go: `$JS.ACK.stream.consumer.times.place…`, or with domain and account before the stream.
pub(crate) fn position(message: &Message<'_>) -> Option<u64> {
    let words: Vec<&str> = message.reply.strip_prefix("$JS.ACK.")?.split('.').collect();
    match words.len() {
        7 => words[3].parse().ok(),
        length if length >= 9 => words[5].parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_jetstream() {
        let names = Names::new("chat").unwrap();
        let fine = r#"{"type":"x","config":{"name":"chat_log","subjects":["chat.log"],"n":1},
            "created":"2026-01-02T03:04:05.6Z","state":{"messages":2,"first_seq":4,"last_seq":5}}"#;
        let found =
            State { log: "chat_log of 2026-01-02T03:04:05.6Z".to_owned(), first: 4, last: 5 };
        assert_eq!(state(&names, fine.as_bytes()), Ok(Some(found)));
        let none = br#"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#;
        assert_eq!(state(&names, none), Ok(None));
        assert!(refusal(none).unwrap_err().contains("stream not found"));
        for fine in
            ["{\"stream\":\"chat_log\",\"seq\":7}", "{\"config\":{\"deliver_subject\":\"x\"}}"]
        {
            assert_eq!(refusal(fine.as_bytes()), Ok(()));
        }
        let other = fine.replace("chat.log", "everything.>");
        let rows: [(&[u8], &str); 5] = [
            (other.as_bytes(), "everything"),
            (br#"{"error":{"code":503,"err_code":10008,"description":"not ready"}}"#, "not ready"),
            (b"{}", "nothing"),
            (b"", "no JSON"),
            (b"[1]", "no JSON"),
        ];
        for (answer, expect) in rows {
            let why = state(&names, answer).unwrap_err();
            assert!(why.contains(expect), "{why}");
        }
    }

    #[test]
    fn places_and_names() {
        let rows = [
            ("$JS.ACK.chat_log.abc.1.17.3.1700000000.0", Some(17)),
            ("$JS.ACK.hub.A1B2.chat_log.abc.1.17.3.1700000000.0", Some(17)),
            ("$JS.ACK.hub.A1B2.chat_log.abc.1.17.3.1700000000.0.r4nd", Some(17)),
            ("$JS.ACK.chat_log.abc.1.x.3.1700000000.0", None),
            ("$JS.ACK.chat_log.abc.1.17", None),
            ("", None),
        ];
        for (reply, expect) in rows {
            let message = Message { subject: "d", sid: 1, reply, headers: "", payload: b"" };
            assert_eq!(position(&message), expect, "{reply}");
        }
        for wrong in ["", "a.b", "a b", "a*", "ä", &"x".repeat(65)] {
            assert!(Names::new(wrong).is_err(), "{wrong}");
        }
    }
}
