//! Options of a target: what they may hold, and what they mean for a new room.

use model::Options;

/// Options with one line each.
pub(super) const OPTIONS: &[(&str, &str)] = &[
    ("domain", "domain people log in to (default anon.localhost; over TCP the host of the URL)"),
    ("muc", "domain of the rooms (default room.localhost)"),
    (
        "multicast",
        "address of the multicast service (XEP-0033; default: the domain is asked for it)",
    ),
    ("addresses", "how a multicast names its addressees: to, cc or bcc (default bcc)"),
    (
        "room-config",
        "what is said to a room that one's coming has made (XEP-0045 10.1): instant (the default), \
         none, or a form as in persistentroom=1;moderatedroom=0",
    ),
    ("sasl", "plain, scram-sha-1 or scram-sha-256 (default: the strongest that is offered)"),
    ("tls", "xmpp:// only: starttls where it is offered (the default), required, or off"),
];
const DEFAULTS: [(&str, &str); 5] = [
    ("domain", "anon.localhost"),
    ("muc", "room.localhost"),
    ("addresses", "bcc"),
    ("room-config", "instant"),
    ("tls", "starttls"),
];
/// Options that are one of a few words.
const CHOICES: [(&str, &[&str]); 3] = [
    ("addresses", &["to", "cc", "bcc"]),
    ("sasl", &["plain", "scram-sha-1", "scram-sha-256"]),
    ("tls", &["starttls", "required", "off"]),
];

/// The value of an option, or its default.
pub(super) fn option<'a>(options: &'a Options, name: &str) -> &'a str {
    let default = DEFAULTS.iter().find(|(known, _)| *known == name).map_or("", |row| row.1);
    options.get(name).map_or(default, String::as_str)
}

/// What the name of a field begins with, unless it is written whole.
const FIELD: &str = "muc#roomconfig_";
/// Most fields of a form.
const FIELDS_MAX: usize = 64;

/// What is said to a room that one's coming has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RoomConfig {
    /// Nothing.
    None,
    /// It shall be as the target has it (XEP-0045 section 10.1.2).
    Instant,
    /// A form: names and values (section 10.1.3).
    Form(Vec<(String, String)>),
}

impl RoomConfig {
    /// Reads the option; the error is advice.
    pub(super) fn parse(text: &str) -> Result<RoomConfig, String> {
        match text {
            "none" => return Ok(RoomConfig::None),
            "instant" => return Ok(RoomConfig::Instant),
            _ => {}
        }
        let mut fields = Vec::new();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                format!(
                    "`{part}` in option `room-config` is no field: it is `instant`, `none`, or \
                     fields as in persistentroom=1;moderatedroom=0"
                )
            })?;
            let name = match name.contains('#') {
                true => name.into(),
                false => format!("{FIELD}{name}"),
            };
            fields.push((name, value.into()));
        }
        match fields.len() {
            0 => Err("option `room-config` has no field; for none at all it is `none`".into()),
            1..=FIELDS_MAX => Ok(RoomConfig::Form(fields)),
            _ => Err(format!("option `room-config` has more than {FIELDS_MAX} fields")),
        }
    }
}

/// Checks one option; the error is advice.
pub(super) fn check(name: &str, value: &str) -> Result<(), String> {
    if let Some((_, words)) = CHOICES.iter().find(|row| row.0 == name) {
        return match words.contains(&value) {
            true => Ok(()),
            false => Err(format!("option `{name}` is {}, not `{value}`", words.join(", "))),
        };
    }
    match name {
        "domain" | "muc" | "multicast" if !is_domain(value) => Err(format!(
            "`{value}` is no domain for option `{name}`: it may hold lower-case letters, digits, \
             `.`, `-` and `_`, as in room.localhost"
        )),
        "domain" | "muc" | "multicast" => Ok(()),
        "room-config" => RoomConfig::parse(value).map(drop),
        _ => {
            let names: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
            Err(format!("xmpp has no option `{name}`; it has {}", names.join(", ")))
        }
    }
}

/// Lower case only, so that what the target sends back can be compared byte by byte.
fn is_domain(text: &str) -> bool {
    let fits = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_')
    };
    !text.is_empty() && text.len() <= 253 && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_new_rooms_is_read() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let form = |fields: &[(String, String)]| Ok(RoomConfig::Form(fields.to_vec()));
        let rows = [
            ("none", Ok(RoomConfig::None)),
            ("instant", Ok(RoomConfig::Instant)),
            ("a=1", form(&[pair("muc#roomconfig_a", "1")])),
            ("a=1;b#c=x=y;", form(&[pair("muc#roomconfig_a", "1"), pair("b#c", "x=y")])),
            ("a=", form(&[pair("muc#roomconfig_a", "")])),
        ];
        for (text, expect) in rows {
            assert_eq!(RoomConfig::parse(text), expect, "{text}");
        }
        let many = "a=1;".repeat(FIELDS_MAX + 1);
        for text in ["", ";", "a", "a=1;b", &many] {
            assert!(RoomConfig::parse(text).is_err(), "{text}");
        }
    }
}
