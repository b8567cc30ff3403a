//! Which mechanism to log in with (RFC 6120 section 6): what is offered, wanted and possible.

use super::element::Element;
use super::scram::Hash;
use crate::wire::printable;

/// Most mechanisms of a target that are named in a report.
const MECHANISMS_SHOWN_MAX: usize = 8;

/// A mechanism we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanism {
    Scram(Hash),
    Plain,
    Anonymous,
}

/// All of them, the strongest first: name in SASL, value of the option `sasl`.
const MECHANISMS: [(Mechanism, &str, &str); 4] = [
    (Mechanism::Scram(Hash::Sha256), "SCRAM-SHA-256", "scram-sha-256"),
    (Mechanism::Scram(Hash::Sha1), "SCRAM-SHA-1", "scram-sha-1"),
    (Mechanism::Plain, "PLAIN", "plain"),
    (Mechanism::Anonymous, "ANONYMOUS", "anonymous"),
];

impl Mechanism {
    /// The one that an option names.
    pub(super) fn from_option(value: &str) -> Option<Mechanism> {
        MECHANISMS.iter().find(|row| row.2 == value).map(|row| row.0)
    }

    /// Its name in SASL.
    pub(super) fn name(self) -> &'static str {
        MECHANISMS.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }
}

/// The mechanisms we know that a target offers, a bit each in the order of [`MECHANISMS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offer(u8);

impl Offer {
    /// Reads the features of a stream.
    pub(super) fn read(features: Element<'_>) -> Offer {
        let mut offer = Offer::default();
        for name in names(features) {
            if let Some(place) = MECHANISMS.iter().position(|row| row.1 == name) {
                offer.0 |= 1 << place;
            }
        }
        offer
    }

    fn has(self, mechanism: Mechanism) -> bool {
        let place = MECHANISMS.iter().position(|row| row.0 == mechanism);
        place.is_some_and(|place| self.0 >> place & 1 == 1)
    }

    /// The mechanism to use: the one that is wanted, else the strongest that the account can use.
    /// The error says what was needed.
    pub(super) fn choose(
        self,
        wanted: Option<Mechanism>,
        has_password: bool,
    ) -> Result<Mechanism, &'static str> {
        if !has_password {
            let mechanism = Mechanism::Anonymous;
            return if self.has(mechanism) { Ok(mechanism) } else { Err(mechanism.name()) };
        }
        match wanted {
            Some(mechanism) if self.has(mechanism) => Ok(mechanism),
            Some(mechanism) => Err(mechanism.name()),
            None => {
                let mut known = MECHANISMS.iter().map(|row| row.0);
                known
                    .find(|&mechanism| mechanism != Mechanism::Anonymous && self.has(mechanism))
                    .ok_or("SCRAM-SHA-256, SCRAM-SHA-1 or PLAIN")
            }
        }
    }
}

/// The names of the mechanisms on offer, for a report.
pub(super) fn shown(features: Element<'_>) -> String {
    let names: Vec<String> =
        names(features).take(MECHANISMS_SHOWN_MAX).map(|name| printable(&name)).collect();
    names.join(", ")
}

fn names(features: Element<'_>) -> impl Iterator<Item = String> {
    let list = features.child("mechanisms");
    list.into_iter().flat_map(|list| list.children()).map(|mechanism| mechanism.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xmpp::xml::Scanner;

    #[test]
    fn the_strongest_that_serves_is_chosen() {
        let rows = [
            ("PLAIN SCRAM-SHA-1 SCRAM-SHA-256 X", None, true, Ok("SCRAM-SHA-256")),
            ("SCRAM-SHA-1 PLAIN ANONYMOUS", None, true, Ok("SCRAM-SHA-1")),
            ("ANONYMOUS PLAIN", None, true, Ok("PLAIN")),
            ("ANONYMOUS PLAIN", None, false, Ok("ANONYMOUS")),
            ("PLAIN", None, false, Err("ANONYMOUS")),
            ("ANONYMOUS", None, true, Err("SCRAM-SHA-256, SCRAM-SHA-1 or PLAIN")),
            ("PLAIN SCRAM-SHA-1", Some("plain"), true, Ok("PLAIN")),
            ("PLAIN", Some("scram-sha-1"), true, Err("SCRAM-SHA-1")),
            ("PLAIN ANONYMOUS", Some("anonymous"), true, Ok("ANONYMOUS")),
        ];
        for (offered, wanted, has_password, expect) in rows {
            let list: String =
                offered.split(' ').map(|name| format!("<mechanism>{name}</mechanism>")).collect();
            let text = format!("<features><mechanisms>{list}</mechanisms></features>");
            let mut scanner = Scanner::new(&text);
            let features = Element::next_root(&mut scanner, &text).unwrap().unwrap();
            let wanted = wanted.map(|name| Mechanism::from_option(name).unwrap());
            let found = Offer::read(features).choose(wanted, has_password).map(Mechanism::name);
            assert_eq!(found, expect, "{offered}");
            assert_eq!(shown(features), offered.replace(' ', ", "));
        }
    }
}
