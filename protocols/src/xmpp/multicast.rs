//! One message to many (XEP-0033): finding the service that spreads it, and sending.

use super::element::Element;
use super::option;
use super::session::{XmppSession, send};
use super::stanza::{self, Id, NS_ADDRESS};
use model::{Effects, FaultClass, RoomId, RoomName, Token};

/// Most services of a domain that are asked whether they spread messages.
const SERVICES_MAX: usize = 32;
/// Most messages that wait for the service to be found.
const WAITING_MAX: usize = 64;

/// What is known of the service.
#[derive(Default)]
pub(super) enum Service {
    /// Nobody has asked.
    #[default]
    Unknown,
    /// Those that may be it have been asked.
    Sought(Box<Search>),
    /// It has this address.
    At(Box<str>),
    /// The domain has none.
    Absent,
}

/// A search under way.
#[derive(Default)]
pub(super) struct Search {
    /// Who was asked; the first is the domain, which is also asked for the others.
    asked: Vec<Box<str>>,
    /// Answers to come.
    open: usize,
    waiting: Vec<Waiting>,
}

/// A message that waits for the service.
struct Waiting {
    token: Token,
    list: RoomId,
    text: Box<str>,
}

impl Service {
    /// Everything that waits for it.
    pub(super) fn into_tokens(self) -> impl Iterator<Item = Token> {
        let waiting = match self {
            Service::Sought(search) => search.waiting,
            _ => Vec::new(),
        };
        waiting.into_iter().map(|waiting| waiting.token)
    }
}

impl XmppSession {
    /// One message with the addresses of everybody on a list.
    pub(super) fn multicast(
        &mut self,
        token: Token,
        list: RoomName<'_>,
        text: &str,
        fx: &mut Effects,
    ) {
        if self.shared.list(list.id).is_none() {
            return self.refuse(token, format!("`{}` is no list", list.name), fx);
        }
        if matches!(self.direct.service, Service::Unknown) {
            self.seek_service(fx);
        }
        match &mut self.direct.service {
            Service::Sought(search) if search.waiting.len() == WAITING_MAX => {
                let detail = format!("{WAITING_MAX} messages wait for the multicast service");
                fx.failed(token, FaultClass::Backlog, detail);
            }
            Service::Sought(search) => {
                search.waiting.push(Waiting { token, list: list.id, text: text.into() });
            }
            _ => self.spread(token, list.id, text, fx),
        }
    }

    /// Sends to the service, if there is one.
    fn spread(&self, token: Token, list: RoomId, text: &str, fx: &mut Effects) {
        let (Service::At(service), Some(people)) = (&self.direct.service, self.shared.list(list))
        else {
            let detail = format!("{} offers no multicast (XEP-0033)", self.home());
            return self.refuse(token, detail, fx);
        };
        let mut addresses = self.addresses(people).peekable();
        if addresses.peek().is_some() {
            let kind = option(&self.shared.options, "addresses");
            let id = Id::of('m', token);
            send(fx, &stanza::multicast(service, (kind, addresses), text, &id));
        }
    }

    /// Takes the service from the options, or asks the domain for it and for its services.
    fn seek_service(&mut self, fx: &mut Effects) {
        self.direct.service = match option(&self.shared.options, "multicast") {
            "" => {
                let home = self.home();
                send(fx, &stanza::disco_info(home, "", &Id::of('i', Token(1))));
                send(fx, &stanza::disco_items(home, &Id::of('i', Token(0))));
                let asked = vec![home.into()];
                Service::Sought(Box::new(Search { asked, open: 2, waiting: Vec::new() }))
            }
            service => Service::At(service.into()),
        };
    }

    /// The domain's list of services (`place` 0), or what the service at a place offers.
    pub(super) fn on_service(&mut self, place: u32, iq: Element<'_>, fx: &mut Effects) {
        let Service::Sought(search) = &mut self.direct.service else { return };
        let from = iq.tag.value("from").unwrap_or_default();
        let place = place as usize;
        let Some(asked) = search.asked.get(place.max(1) - 1) else { return };
        // An answer of somebody else's is none. That of the own domain may come without an address.
        if *from != **asked && !(from.is_empty() && place < 2) {
            return;
        }
        search.open = search.open.saturating_sub(1);
        let query = iq.child("query").filter(|_| iq.tag.attribute("type") == Some("result"));
        match query {
            Some(query) if place == 0 && search.asked.len() == 1 => {
                for jid in query.children().filter_map(|item| item.tag.value("jid")) {
                    if search.asked.len() == SERVICES_MAX {
                        break;
                    }
                    search.asked.push(jid.as_ref().into());
                    search.open += 1;
                    let id = Id::of('i', Token(search.asked.len() as u32));
                    send(fx, &stanza::disco_info(&jid, "", &id));
                }
            }
            Some(query) if place > 0 && spreads(query) => {
                let found = Service::At(asked.clone());
                return self.settle_service(found, fx);
            }
            _ => {}
        }
        if search.open == 0 {
            self.settle_service(Service::Absent, fx);
        }
    }

    fn settle_service(&mut self, found: Service, fx: &mut Effects) {
        let Service::Sought(search) = std::mem::replace(&mut self.direct.service, found) else {
            return;
        };
        for Waiting { token, list, text } in search.waiting {
            self.spread(token, list, &text, fx);
        }
    }

    /// The service itself refused; what its addressees answer concerns only them.
    pub(super) fn on_multicast_bounce(
        &mut self,
        token: Token,
        error: Element<'_>,
        fx: &mut Effects,
    ) {
        let from = error.tag.value("from").unwrap_or_default();
        match &self.direct.service {
            Service::At(service) if **service == *from => {
                let detail = format!("multicast refused: {}", error.stanza_error());
                self.refuse(token, detail, fx);
            }
            _ => self.on_bounce(token, &error.stanza_error(), fx),
        }
    }
}

/// Whether whoever answers this spreads messages.
fn spreads(query: Element<'_>) -> bool {
    query.children().any(|child| {
        child.tag.local() == "feature" && child.tag.attribute("var") == Some(NS_ADDRESS)
    })
}
