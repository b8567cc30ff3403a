//! What people say around the stamp: words, filler or given lines.

use model::stamp::{self, Stamp};
use model::{Rng, Text};

const WORDS: [&str; 48] = [
    "hello", "there", "who", "knows", "what", "time", "the", "stream", "starts", "tonight", "nice",
    "one", "see", "you", "later", "that", "was", "great", "can", "anybody", "hear", "me", "now",
    "yes", "no", "maybe", "we", "should", "try", "again", "please", "mute", "your", "mic", "lol",
    "first", "time", "here", "welcome", "back", "good", "morning", "from", "over", "this", "room",
    "is", "full",
];
const FILLER: u8 = b'.';

/// Writes what is said into `out`: the stamp, then the text the plan asks for. The stamp comes
/// first so that a target that cuts long messages leaves it whole.
pub(crate) fn speak(out: &mut String, stamp: &Stamp, text: Option<&Text>, rng: &mut Rng) {
    out.clear();
    let code = stamp.encode();
    out.extend(code.iter().map(|&byte| char::from(byte)));
    match text {
        None => {}
        Some(Text::Words(low, high)) => {
            for _ in 0..rng.between((*low).into(), (*high).into()) {
                out.push(' ');
                out.push_str(WORDS[rng.below(WORDS.len() as u64) as usize]);
            }
        }
        Some(Text::Bytes(low, high)) => {
            let size = rng.between((*low).into(), (*high).into()) as usize;
            out.extend((stamp::LEN..size).map(|_| char::from(FILLER)));
        }
        Some(Text::Lines(lines)) => {
            if let Some(line) = lines.get(rng.below(lines.len() as u64) as usize) {
                out.push(' ');
                out.push_str(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Tick;

    #[test]
    fn every_text_carries_its_stamp_and_its_size() {
        let at = Tick::from_micros(5);
        let stamp =
            Stamp { run: 1, room: 2, source: 0, number: 3, person: 4, intended: at, sent: at };
        let mut rng = Rng::new(1, 1);
        let mut out = String::from("left over");
        let lines = vec!["a & b".to_owned()];
        for text in
            [Text::Words(2, 2), Text::Bytes(150, 150), Text::Bytes(3, 3), Text::Lines(lines)]
        {
            speak(&mut out, &stamp, Some(&text), &mut rng);
            assert_eq!(stamp::find(out.as_bytes()).collect::<Vec<_>>(), [stamp]);
            match text {
                Text::Words(n, _) => assert_eq!(out.split(' ').count(), n as usize + 1),
                Text::Bytes(n, _) => assert_eq!(out.len(), stamp::LEN.max(n as usize)),
                Text::Lines(lines) => assert!(out.ends_with(&lines[0])),
            }
        }
    }
}
