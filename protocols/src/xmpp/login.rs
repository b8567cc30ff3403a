//! From an open transport to somebody who is online: upgrade or TLS, stream, account, SASL, bind
//! or resumption (RFC 6120, RFC 7395, XEP-0077, XEP-0198), or a component's handshake (XEP-0114).

use super::element::Element;
use super::link::Link;
use super::sasl::{self, Mechanism, Offer};
use super::scram::{Hash, Keyring, Scram};
use super::session::{SUBPROTOCOLS, XmppSession, send};
use super::smacks;
use super::stanza::{self, Id};
use super::xml::{Piece, Scanner, Tag, escape};
use super::{REGISTER, SMACKS};
use crate::wire::printable;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{Effects, Event, Fault, FaultClass, Measure, Tick, Token};
use sha1::{Digest, Sha1};

/// Id of the request for an account.
const REGISTRATION: &str = "register";
/// RFC 6120 section 5.4.2.1.
const START_TLS: &str = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>";

/// How far a conversation has come: what the target has to say next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No transport.
    Idle,
    /// No transport, and a conversation that can be taken up again.
    Lost,
    /// The answer to the upgrade.
    Upgrade,
    /// Its `<open/>` or stream header; authenticated or not.
    Open(bool),
    /// The features of a stream that is not authenticated.
    Features,
    /// Its leave to begin the TLS handshake.
    Proceed,
    /// Nothing: the TLS handshake is under way.
    Securing,
    /// Nothing: these mechanisms are offered and nobody has logged in.
    Welcome(Offer),
    /// The answer to the request for an account.
    Register(Offer),
    /// The verdict on our credentials, or what is to be proven.
    Auth,
    /// The verdict on a component's secret.
    Handshake,
    /// The features of the authenticated stream.
    Bindable,
    /// The answer to the resource binding; `true` if a session has to be established after it.
    Bind(bool),
    /// The answer to the session establishment.
    Session,
    /// Its consent to stream management.
    Enable,
    /// Whether the lost conversation goes on.
    Resume,
    /// Whatever it likes.
    Online,
    /// Its half of the good-bye.
    Closing,
}

/// A login under way.
pub(super) struct Login {
    pub(super) token: Token,
    name: Box<str>,
    /// The domain that came with the name; empty if none did.
    pub(super) host: Box<str>,
    password: Box<str>,
    /// When an account was asked for.
    asked: Tick,
    /// The proof that the password is known.
    scram: Option<Scram>,
    /// The features of the authenticated stream: can a resource be bound, has a session to be
    /// established, and can the stream be managed?
    can_bind: bool,
    needs_session: bool,
    can_manage: bool,
}

impl Login {
    pub(super) fn new(token: Token, name: &str, password: &str) -> Login {
        let (name, host) = name.split_once('@').unwrap_or((name, ""));
        Login {
            token,
            name: name.into(),
            host: host.into(),
            password: password.into(),
            asked: Tick::ZERO,
            scram: None,
            can_bind: false,
            needs_session: false,
            can_manage: false,
        }
    }

    /// The domain of a component: its account, below the domain unless it is one itself.
    fn component(&self, domain: &str) -> String {
        match self.name.contains('.') {
            true => String::from(&*self.name),
            false => format!("{}.{domain}", self.name),
        }
    }
}

impl XmppSession {
    pub(super) fn request_upgrade(&mut self, fx: &mut Effects) {
        let Link::Web(socket) = &mut self.link else { return };
        match socket.upgrade(&self.shared.endpoint, &[], SUBPROTOCOLS, fx) {
            Ok(()) => self.stage = Stage::Upgrade,
            Err(fault) => self.give_up(fx, fault.class, &fault.detail),
        }
    }

    /// The transport can carry a stream: begin one.
    pub(super) fn open_stream(&mut self, fx: &mut Effects) {
        self.stage = Stage::Open(false);
        self.link.restart();
        let mut to = self.domain().to_owned();
        if let (Link::Component(_, from), Some(login)) = (&mut self.link, &self.login) {
            to = login.component(&to);
            let mut address = String::from("throng@");
            escape(&mut address, &to);
            address.push_str("/throng");
            self.direct.be(&address);
            *from = address.into();
        }
        send(fx, &self.link.opening(&to));
    }

    /// The target has opened its stream over TCP.
    pub(super) fn on_header(&mut self, header: &[u8], fx: &mut Effects) {
        let text = str::from_utf8(header).unwrap_or("");
        let tag = match Scanner::new(text).next_piece() {
            Ok(Some(Piece::Open(tag))) if tag.local() == "stream" => tag,
            _ => {
                let detail = "what answers does not open an XMPP stream";
                return self.give_up(fx, FaultClass::Upgrade, detail);
            }
        };
        match (self.stage, &self.link) {
            (Stage::Open(_), Link::Component(..)) => self.shake_hands(tag, fx),
            (Stage::Open(is_known), _) => self.on_open(is_known),
            (stage, _) => self.on_disorder(stage, "stream", fx),
        }
    }

    fn on_open(&mut self, is_known: bool) {
        self.stage = if is_known { Stage::Bindable } else { Stage::Features };
    }

    /// A component proves that it knows its secret (XEP-0114 section 3).
    fn shake_hands(&mut self, header: Tag<'_>, fx: &mut Effects) {
        fx.events.push(Event::Connected);
        let id = header.value("id").unwrap_or_default();
        let secret = self.login.as_ref().map_or("", |login| &login.password);
        let mut digest = Sha1::new();
        digest.update(id.as_bytes());
        digest.update(secret.as_bytes());
        let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        send(fx, &format!("<handshake>{hex}</handshake>"));
        self.stage = Stage::Handshake;
    }

    /// An element before the conversation is online.
    pub(super) fn on_negotiation(&mut self, now: Tick, element: Element<'_>, fx: &mut Effects) {
        let name = element.tag.local();
        match (self.stage, name) {
            (Stage::Open(is_known), "open") => self.on_open(is_known),
            (Stage::Features, "features") => self.on_features(now, element, fx),
            (Stage::Proceed, "proceed") => {
                self.stage = Stage::Securing;
                fx.secure = true;
            }
            (Stage::Proceed, "failure") => {
                self.give_up(fx, FaultClass::Tls, "the target refuses STARTTLS");
            }
            (Stage::Register(offer), "iq") => self.on_registered(offer, element, now, fx),
            (Stage::Auth, "challenge") => self.on_challenge(element, fx),
            (Stage::Auth, "success") => self.on_success(element, fx),
            (Stage::Auth, "failure") => {
                let detail = format!("login refused: {}", element.condition());
                self.give_up(fx, FaultClass::LoginRefused, &detail);
            }
            (Stage::Handshake, "handshake") => self.come_online(fx),
            (Stage::Bindable, "features") => self.on_bindable(element, fx),
            (Stage::Bind(_) | Stage::Session, "iq") => self.on_bound(element, fx),
            (Stage::Enable, "enabled") => {
                self.on_enabled(element);
                self.come_online(fx);
            }
            (Stage::Enable, "failed") => {
                let detail = format!("stream management refused: {}", element.condition());
                self.give_up(fx, FaultClass::LoginRefused, &detail);
            }
            (Stage::Resume, "resumed") => self.on_resumed(element, fx),
            (Stage::Resume, "failed") => self.on_not_resumed(element, fx),
            (Stage::Enable, "iq") => self.answer(element, fx),
            // Some targets greet before the binding is through; nothing of it concerns the login.
            (
                Stage::Bind(_) | Stage::Session | Stage::Enable | Stage::Handshake,
                "presence" | "message",
            ) => {}
            (stage, name) => self.on_disorder(stage, name, fx),
        }
    }

    fn on_disorder(&mut self, stage: Stage, name: &str, fx: &mut Effects) {
        let detail = format!("`{}` came instead of {}", printable(name), stage.awaited());
        self.give_up(fx, FaultClass::Protocol, &detail);
    }

    fn on_features(&mut self, now: Tick, features: Element<'_>, fx: &mut Effects) {
        if !self.link.is_web() {
            match self.wants_tls(features) {
                Ok(true) => {
                    self.stage = Stage::Proceed;
                    return send(fx, START_TLS);
                }
                Ok(false) => fx.events.push(Event::Connected),
                Err(detail) => return self.give_up(fx, FaultClass::Tls, detail),
            }
        }
        let offer = Offer::read(features);
        match self.login {
            Some(_) => self.log_in(now, offer, &sasl::shown(features), fx),
            None => self.stage = Stage::Welcome(offer),
        }
    }

    /// Whether to encrypt the connection before anything else (RFC 6120 section 5).
    fn wants_tls(&self, features: Element<'_>) -> Result<bool, &'static str> {
        if self.is_secure {
            return Ok(false);
        }
        let offer = features.child("starttls");
        let is_required = offer.is_some_and(|offer| offer.child("required").is_some());
        match super::option(&self.shared.options, "tls") {
            "off" if is_required => Err("the target insists on STARTTLS; option `tls` is `off`"),
            "off" => Ok(false),
            "required" if offer.is_none() => Err("option `tls` is `required`, and the target \
                                                  offers no STARTTLS"),
            _ => Ok(offer.is_some()),
        }
    }

    /// Makes the account if that is wanted, and logs in. `offered` is for the report of a target
    /// whose mechanisms do not serve.
    pub(super) fn log_in(&mut self, now: Tick, offer: Offer, offered: &str, fx: &mut Effects) {
        let Some(login) = &mut self.login else { return };
        let is_wanted = self.features.has(REGISTER) && !login.password.is_empty();
        if !is_wanted || self.smacks.is_some() {
            return self.authenticate(offer, offered, fx);
        }
        login.asked = now;
        let mut iq = format!(
            "<iq xmlns='jabber:client' type='set' id='{REGISTRATION}'>\
             <query xmlns='jabber:iq:register'><username>"
        );
        escape(&mut iq, &login.name);
        iq.push_str("</username><password>");
        escape(&mut iq, &login.password);
        iq.push_str("</password></query></iq>");
        send(fx, &iq);
        fx.events.push(Event::Asked(Measure::Register, 1));
        self.stage = Stage::Register(offer);
    }

    /// There is an account now, or there was one (XEP-0077 section 3.1.1), or there is none: then
    /// the login will tell.
    fn on_registered(&mut self, offer: Offer, iq: Element<'_>, now: Tick, fx: &mut Effects) {
        let kind = iq.tag.attribute("type");
        let is_answer = iq.tag.attribute("id") == Some(REGISTRATION);
        if !is_answer || !matches!(kind, Some("result" | "error")) {
            return self.answer(iq, fx);
        }
        let condition = iq.stanza_error();
        let outcome = match kind == Some("result") || condition.starts_with("conflict") {
            true => Ok(()),
            false => Err(Fault::new(FaultClass::RequestRefused, condition)),
        };
        let sent = self.login.as_ref().map_or(now, |login| login.asked);
        fx.events.push(Event::Answered { measure: Measure::Register, sent, outcome });
        self.authenticate(offer, "…", fx);
    }

    /// Logs in with what the account needs: ANONYMOUS without a password.
    fn authenticate(&mut self, offer: Offer, offered: &str, fx: &mut Effects) {
        let Some(login) = &mut self.login else { return };
        let wanted = self.shared.options.get("sasl").and_then(|name| Mechanism::from_option(name));
        let mechanism = match offer.choose(wanted, !login.password.is_empty()) {
            Ok(mechanism) => mechanism,
            Err(needed) => {
                let detail = format!("login needs SASL {needed}; the target offers [{offered}]");
                return self.give_up(fx, FaultClass::LoginRefused, &detail);
            }
        };
        let initial = match mechanism {
            Mechanism::Anonymous => String::new(),
            Mechanism::Plain => STANDARD.encode(format!("\0{}\0{}", login.name, login.password)),
            Mechanism::Scram(hash) => login.begin_proof(hash, fx),
        };
        send(fx, &stanza::auth(mechanism.name(), &initial));
        self.stage = Stage::Auth;
    }

    fn on_challenge(&mut self, element: Element<'_>, fx: &mut Effects) {
        let ring = self.shared.made(|_| Keyring::default());
        let proof = self.login.as_mut().and_then(|login| {
            let Login { scram, password, .. } = &mut **login;
            scram.as_mut().map(|scram| scram.answer(&element.text(), password, &ring))
        });
        match proof {
            Some(Ok(proof)) => {
                let namespace = "urn:ietf:params:xml:ns:xmpp-sasl";
                send(fx, &format!("<response xmlns='{namespace}'>{proof}</response>"));
            }
            Some(Err(detail)) => self.give_up(fx, FaultClass::LoginRefused, &detail),
            None => self.on_disorder(Stage::Auth, "challenge", fx),
        }
    }

    fn on_success(&mut self, element: Element<'_>, fx: &mut Effects) {
        let scram = self.login.as_mut().and_then(|login| login.scram.take());
        if let Some(Err(detail)) = scram.map(|scram| scram.verify(&element.text())) {
            return self.give_up(fx, FaultClass::LoginRefused, &detail);
        }
        self.stage = Stage::Open(true);
        self.link.restart();
        send(fx, &self.link.opening(self.domain()));
    }

    fn on_bindable(&mut self, features: Element<'_>, fx: &mut Effects) {
        let session = features.child("session");
        if let Some(login) = &mut self.login {
            login.can_bind = features.child("bind").is_some();
            login.needs_session = session.is_some_and(|offer| offer.child("optional").is_none());
            login.can_manage = smacks::is_offered(features);
        }
        match self.ask_to_resume(fx) {
            true => self.stage = Stage::Resume,
            false => self.bind(fx),
        }
    }

    /// The lost conversation is over: a new one begins on the same stream (XEP-0198 section 5).
    fn on_not_resumed(&mut self, element: Element<'_>, fx: &mut Effects) {
        let detail = format!("the conversation was not resumed: {}", element.condition());
        let (login, link) = (self.login.take(), std::mem::replace(&mut self.link, Link::none()));
        let is_secure = self.is_secure;
        self.reset(fx, FaultClass::Offline, &detail);
        (self.login, self.link, self.is_secure) = (login, link, is_secure);
        self.bind(fx);
    }

    fn bind(&mut self, fx: &mut Effects) {
        let Some(login) = &self.login else { return };
        if !login.can_bind {
            let detail = "the authenticated stream offers no resource binding";
            return self.give_up(fx, FaultClass::Protocol, detail);
        }
        self.stage = Stage::Bind(login.needs_session);
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
            Some("result") if is_answer => self.manage_stream(fx),
            Some("error") if is_answer => {
                let detail = format!("binding refused: {}", iq.stanza_error());
                self.give_up(fx, FaultClass::LoginRefused, &detail);
            }
            _ => self.answer(iq, fx),
        }
    }

    /// The last step of a login, where it is wanted: a target that does not manage streams would
    /// be measured as if it did.
    fn manage_stream(&mut self, fx: &mut Effects) {
        let can_manage = self.login.as_ref().is_some_and(|login| login.can_manage);
        match self.features.has(SMACKS) {
            false => self.come_online(fx),
            true if can_manage => {
                send(fx, &smacks::enable());
                self.stage = Stage::Enable;
            }
            true => {
                let detail = "feature `smacks`: the target offers no stream management (XEP-0198)";
                self.give_up(fx, FaultClass::LoginRefused, detail);
            }
        }
    }

    pub(super) fn come_online(&mut self, fx: &mut Effects) {
        self.stage = Stage::Online;
        if let Some(login) = self.login.take() {
            fx.done(login.token);
        }
    }
}

impl Login {
    fn begin_proof(&mut self, hash: Hash, fx: &mut Effects) -> String {
        let mut nonce = [0; 18];
        for part in nonce.chunks_mut(8) {
            part.copy_from_slice(&fx.rng.u64().to_le_bytes()[..part.len()]);
        }
        self.scram.insert(Scram::new(hash, &self.name, &nonce)).initial()
    }
}

impl Stage {
    /// What the target has to say next, for a report.
    fn awaited(self) -> &'static str {
        match self {
            Stage::Open(_) => "the opening of its stream",
            Stage::Features | Stage::Bindable => "stream features",
            Stage::Proceed => "<proceed/>",
            Stage::Register(_) => "the account",
            Stage::Auth | Stage::Handshake => "the verdict on the credentials",
            Stage::Bind(_) => "the bound resource",
            Stage::Session => "the session",
            Stage::Enable => "stream management",
            Stage::Resume => "the resumption",
            Stage::Welcome(_) => "silence before the login",
            Stage::Idle
            | Stage::Lost
            | Stage::Upgrade
            | Stage::Securing
            | Stage::Online
            | Stage::Closing => "anything else",
        }
    }
}
