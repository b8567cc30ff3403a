//! From an open transport to a bound resource: upgrade, stream, SASL, bind (RFC 6120, RFC 7395).

use super::element::Element;
use super::session::{SUBPROTOCOLS, XmppSession, send};
use super::stanza::{self, Id};
use crate::wire::printable;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{Effects, FaultClass, Token};

/// Most mechanisms of a target that are named in a report.
const MECHANISMS_SHOWN_MAX: usize = 8;

/// How far a conversation has come: what the target has to say next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No transport.
    Idle,
    /// The answer to the upgrade.
    Upgrade,
    /// Its `<open/>`; authenticated or not.
    Open(bool),
    /// The features of a stream that is not authenticated.
    Features,
    /// Nothing: these mechanisms are offered and nobody has logged in.
    Welcome(Offer),
    /// The verdict on our credentials.
    Auth,
    /// The features of the authenticated stream.
    Bindable,
    /// The answer to the resource binding; `true` if a session has to be established after it.
    Bind(bool),
    /// The answer to the session establishment.
    Session,
    /// Whatever it likes.
    Online,
    /// Its half of the good-bye.
    Closing,
}

/// The mechanisms we know that a target offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    anonymous: bool,
    plain: bool,
}

/// A login under way.
pub(super) struct Login {
    pub(super) token: Token,
    name: Box<str>,
    /// The domain that came with the name; empty if none did.
    pub(super) host: Box<str>,
    password: Box<str>,
}

impl Login {
    pub(super) fn new(token: Token, name: &str, password: &str) -> Login {
        let (name, host) = name.split_once('@').unwrap_or((name, ""));
        Login { token, name: name.into(), host: host.into(), password: password.into() }
    }
}

impl XmppSession {
    pub(super) fn request_upgrade(&mut self, fx: &mut Effects) {
        match self.socket.upgrade(&self.shared.endpoint, &[], SUBPROTOCOLS, fx) {
            Ok(()) => self.stage = Stage::Upgrade,
            Err(fault) => self.give_up(fx, fault.class, &fault.detail),
        }
    }

    /// The upgrade was accepted: begin the first stream.
    pub(super) fn open_stream(&mut self, fx: &mut Effects) {
        self.stage = Stage::Open(false);
        send(fx, &stanza::open(self.domain()));
    }

    /// An element before the conversation is online.
    pub(super) fn on_negotiation(&mut self, element: Element<'_>, fx: &mut Effects) {
        match (self.stage, element.tag.local()) {
            (Stage::Open(false), "open") => self.stage = Stage::Features,
            (Stage::Open(true), "open") => self.stage = Stage::Bindable,
            (Stage::Features, "features") => self.on_mechanisms(element, fx),
            (Stage::Auth, "success") => {
                self.stage = Stage::Open(true);
                send(fx, &stanza::open(self.domain()));
            }
            (Stage::Auth, "failure") => {
                let detail = format!("login refused: {}", element.condition());
                self.give_up(fx, FaultClass::LoginRefused, &detail);
            }
            (Stage::Bindable, "features") => self.on_bindable(element, fx),
            (Stage::Bind(_) | Stage::Session, "iq") => self.on_bound(element, fx),
            // Some targets greet before the binding is through; nothing of it concerns the login.
            (Stage::Bind(_) | Stage::Session, "presence" | "message") => {}
            (stage, name) => {
                let awaited = stage.awaited();
                let detail = format!("`{}` came instead of {awaited}", printable(name));
                self.give_up(fx, FaultClass::Protocol, &detail);
            }
        }
    }

    fn on_mechanisms(&mut self, features: Element<'_>, fx: &mut Effects) {
        let mut offer = Offer::default();
        let mut names = Vec::new();
        let list = features.child("mechanisms");
        for mechanism in list.iter().flat_map(Element::children) {
            let name = mechanism.text();
            offer.anonymous |= name == "ANONYMOUS";
            offer.plain |= name == "PLAIN";
            if names.len() < MECHANISMS_SHOWN_MAX {
                names.push(printable(&name));
            }
        }
        match self.login {
            Some(_) => self.authenticate(offer, &names.join(", "), fx),
            None => self.stage = Stage::Welcome(offer),
        }
    }

    /// Logs in with what the account needs: PLAIN with a password, else ANONYMOUS. `offered` is
    /// for the report of a target that does not offer it.
    pub(super) fn authenticate(&mut self, offer: Offer, offered: &str, fx: &mut Effects) {
        let Some(login) = &self.login else { return };
        let mechanism = if login.password.is_empty() { "ANONYMOUS" } else { "PLAIN" };
        let initial = match mechanism {
            "PLAIN" if offer.plain => {
                STANDARD.encode(format!("\0{}\0{}", login.name, login.password))
            }
            "ANONYMOUS" if offer.anonymous => String::new(),
            _ => {
                let detail = format!("login needs SASL {mechanism}; the target offers [{offered}]");
                return self.give_up(fx, FaultClass::LoginRefused, &detail);
            }
        };
        send(fx, &stanza::auth(mechanism, &initial));
        self.stage = Stage::Auth;
    }

    fn on_bindable(&mut self, features: Element<'_>, fx: &mut Effects) {
        if features.child("bind").is_none() {
            let detail = "the authenticated stream offers no resource binding";
            return self.give_up(fx, FaultClass::Protocol, detail);
        }
        let session = features.child("session");
        let needs_session = session.is_some_and(|session| session.child("optional").is_none());
        self.stage = Stage::Bind(needs_session);
        send(fx, &stanza::bind());
    }

    fn on_bound(&mut self, iq: Element<'_>, fx: &mut Effects) {
        let id = iq.tag.attribute("id").and_then(Id::parse);
        let is_answer = match self.stage {
            Stage::Bind(_) => id == Some(Id::Bind),
            _ => id == Some(Id::Session),
        };
        match iq.tag.attribute("type") {
            Some("result") if is_answer && matches!(self.stage, Stage::Bind(_)) => {
                self.note_address(iq);
            }
            _ => {}
        }
        match iq.tag.attribute("type") {
            Some("result") if is_answer && self.stage == Stage::Bind(true) => {
                self.stage = Stage::Session;
                send(fx, &stanza::session());
            }
            Some("result") if is_answer => {
                self.stage = Stage::Online;
                if let Some(login) = self.login.take() {
                    fx.done(login.token);
                }
            }
            Some("error") if is_answer => {
                let detail = format!("binding refused: {}", iq.stanza_error());
                self.give_up(fx, FaultClass::LoginRefused, &detail);
            }
            _ => self.answer(iq, fx),
        }
    }
}

impl Stage {
    /// What the target has to say next, for a report.
    fn awaited(self) -> &'static str {
        match self {
            Stage::Open(_) => "<open/>",
            Stage::Features | Stage::Bindable => "stream features",
            Stage::Auth => "the verdict on the credentials",
            Stage::Bind(_) => "the bound resource",
            Stage::Session => "the session",
            Stage::Welcome(_) => "silence before the login",
            Stage::Idle | Stage::Upgrade | Stage::Online | Stage::Closing => "anything else",
        }
    }
}
