//! Connection state recovery (Socket.IO 4.6 and later): a conversation whose connection was lost is
//! taken up again, rooms and all, and what was said meanwhile follows.

use model::RoomId;
use serde::Deserialize;

/// Longest private name of a conversation, and longest offset of an event, bytes.
const PART_BYTES_MAX: usize = 200;

/// The data of a packet CONNECT of the target's.
#[derive(Deserialize)]
struct Welcome {
    /// The private name by which the conversation can be taken up; servers that recover send one.
    #[serde(default)]
    pid: Option<String>,
}

/// What is needed to take a conversation up.
#[derive(Default)]
pub(super) struct Resume {
    pid: Box<str>,
    /// Last argument of the last event that had a text there, as JSON has it between its quotes.
    offset: Vec<u8>,
    /// The room entered last.
    room: Option<RoomId>,
    /// The connection was lost, and the next login is to try it.
    is_wanted: bool,
}

impl Resume {
    /// What the target's CONNECT says: whether the conversation goes on of which `kept` is known.
    pub(super) fn welcomed(kept: &mut Option<Box<Resume>>, data: &[u8]) -> bool {
        let welcome: Option<Welcome> = serde_json::from_slice(data).ok();
        let pid = welcome.and_then(|welcome| welcome.pid).filter(|pid| is_plain(pid.as_bytes()));
        match (kept.as_mut(), pid) {
            (Some(kept), Some(pid)) if kept.is_wanted && *kept.pid == *pid => {
                kept.is_wanted = false;
                true
            }
            (_, pid) => {
                let fresh = |pid: String| Box::new(Resume { pid: pid.into(), ..Resume::default() });
                *kept = pid.map(fresh);
                false
            }
        }
    }

    /// An event: the hot path. Its place among all is its last argument, if that is a text.
    #[inline]
    pub(super) fn heard(&mut self, data: &[u8]) {
        if let Some(offset) = offset(data) {
            self.offset.clear();
            self.offset.extend_from_slice(offset);
        }
    }

    /// The connection was lost: whether the conversation can be taken up.
    pub(super) fn lost(&mut self, room: Option<RoomId>) -> bool {
        self.room = room.or(self.room);
        // Without an offset the target does not know what was missed, and refuses.
        self.is_wanted = !self.offset.is_empty();
        self.is_wanted
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// The room entered last.
    pub(super) fn room(&self) -> Option<RoomId> {
        self.room
    }

    /// Appends the data of our CONNECT: `auth` (a JSON map, or nothing) and what is to be taken up.
    pub(super) fn write(&self, auth: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"pid\":\"");
        out.extend_from_slice(self.pid.as_bytes());
        out.extend_from_slice(b"\",\"offset\":\"");
        out.extend_from_slice(&self.offset);
        out.push(b'"');
        match auth.strip_prefix(b"{") {
            Some(more) if more != b"}" => {
                out.push(b',');
                out.extend_from_slice(more);
            }
            _ => out.push(b'}'),
        }
    }
}

/// The last argument of an event, if it is a text that needs no escapes.
fn offset(data: &[u8]) -> Option<&[u8]> {
    let list = data.strip_suffix(b"\"]")?;
    let tail = &list[list.len().saturating_sub(PART_BYTES_MAX + 1)..];
    let start = memchr::memrchr(b'"', tail)?;
    let before = list.len() - tail.len() + start;
    let is_argument = before.checked_sub(1).is_some_and(|at| list[at] == b',');
    let text = &tail[start + 1..];
    (is_argument && is_plain(text)).then_some(text)
}

/// Whether it stands in JSON as it is, and is short.
fn is_plain(text: &[u8]) -> bool {
    let is_plain = |&b: &u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\');
    !text.is_empty() && text.len() <= PART_BYTES_MAX && text.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_of_an_event_is_its_offset() {
        let long = format!("[\"m\",\"{}\"]", "x".repeat(PART_BYTES_MAX + 1));
        let longest = "x".repeat(PART_BYTES_MAX);
        let fits = format!("[\"m\",\"{longest}\"]");
        for (data, expect) in [
            ("[\"m\",{\"a\":\"b\"},\"Nx1\"]", Some("Nx1")),
            ("[\"m\",\"Nx1\"]", Some("Nx1")),
            ("[\"m\",\"a,\"]", Some("a,")),
            (&*fits, Some(&*longest)),
            ("[\"m\"]", None),
            ("[\"m\",1]", None),
            ("[\"m\",\"\"]", None),
            ("[\"m\",[\"b\"]]", None),
            ("[\"m\",{\"a\":\"b\"}]", None),
            ("[\"m\",\"a\\\"b\"]", None),
            ("[\"m\",\"a\\\\\"]", None),
            ("[\"m\",\"two words\"]", None),
            (&*long, None),
            ("\"]", None),
            ("", None),
        ] {
            assert_eq!(offset(data.as_bytes()), expect.map(str::as_bytes), "{data}");
        }
    }

    #[test]
    fn what_is_taken_up_stands_before_the_own_data() {
        let mut kept = None;
        Resume::welcomed(&mut kept, b"{\"sid\":\"a\",\"pid\":\"p\"}");
        let mut resume = kept.unwrap();
        assert!(!resume.lost(Some(3)), "nothing was heard");
        resume.heard(b"[\"m\",\"o\"]");
        assert!(resume.lost(Some(3)));
        for (auth, expect) in [
            ("", r#"{"pid":"p","offset":"o"}"#),
            ("{}", r#"{"pid":"p","offset":"o"}"#),
            (r#"{"token":"x"}"#, r#"{"pid":"p","offset":"o","token":"x"}"#),
        ] {
            let mut out = Vec::new();
            resume.write(auth.as_bytes(), &mut out);
            assert_eq!(out, expect.as_bytes());
        }
        let mut kept = Some(resume);
        assert!(Resume::welcomed(&mut kept, b"{\"pid\":\"p\"}"));
        assert_eq!(kept.as_ref().unwrap().room(), Some(3));
        for answer in ["{\"pid\":\"p\"}", "{\"pid\":\"q\"}", "{}", "", "{\"pid\":\"\\\"\"}"] {
            let goes_on = Resume::welcomed(&mut kept, answer.as_bytes());
            assert!(!goes_on, "{answer}: nobody asked for more");
        }
        assert!(kept.is_none(), "a name that does not fit is none");
    }
}
